//! The settings that decisions depend on, resolved from flags and gates.

/// Settings of the decisions; field names follow the flags (provisioning.md 1.3, 1.7).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one field per flag")]
pub struct Options {
    /// `--volume-name-prefix`.
    pub volume_name_prefix: String,
    /// `--volume-name-uuid-length`; -1 = the whole UID with dashes, else 0 to 32.
    pub volume_name_uuid_length: i32,
    /// `--default-fstype`, may be empty.
    pub default_fstype: String,
    /// `--extra-create-metadata`.
    pub extra_create_metadata: bool,
    /// `--controller-publish-readonly`.
    pub controller_publish_readonly: bool,
    /// `--prevent-volume-mode-conversion`.
    pub prevent_volume_mode_conversion: bool,
    /// `--strict-topology`.
    pub strict_topology: bool,
    /// `--immediate-topology`.
    pub immediate_topology: bool,
    /// Gate `Topology`.
    pub topology: bool,
    /// Gate `CrossNamespaceVolumeDataSource`.
    pub cross_namespace_source: bool,
    /// Gate `VolumeAttributesClass`, after discovery.
    pub attributes_class: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            volume_name_prefix: "pvc".to_owned(),
            volume_name_uuid_length: -1,
            default_fstype: String::new(),
            extra_create_metadata: false,
            controller_publish_readonly: false,
            prevent_volume_mode_conversion: true,
            strict_topology: false,
            immediate_topology: true,
            topology: true,
            cross_namespace_source: false,
            attributes_class: true,
        }
    }
}
