//! Why an object cannot be translated, in words that name the object, the field and the next step.
//!
//! Texts name objects, never print them whole: a volume object may carry what its users would not want in an event
//! (migration.md 16).

use thiserror::Error;

/// Why an object cannot be translated. Values in quotes are those of the object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TranslateError {
    /// No object was given.
    #[error("a {kind} was expected, but there is no such object; pass the object as the API server returned it")]
    NotAnObject {
        /// Kind that was expected.
        kind: &'static str,
    },
    /// A field has a type that the API does not allow.
    #[error("{object}: field {field} must be {expected}; correct the field")]
    WrongType {
        /// Kind and name.
        object: String,
        /// Path of the field.
        field: String,
        /// What the API allows.
        expected: &'static str,
    },
    /// The name belongs to no migrated plug-in.
    #[error("{object}: \"{name}\" is not {known_as} with a known translation; use one of the seven migrated plug-ins")]
    NoTranslation {
        /// Kind and name.
        object: String,
        /// The name that was looked up.
        name: String,
        /// What a name with a translation would be.
        known_as: &'static str,
    },
    /// The volume object has no source, or none of exactly one migrated plug-in.
    #[error(
        "{object}: there is not exactly one source of a migrated in-tree plug-in; check which source the object has"
    )]
    NotMigratable {
        /// Kind and name.
        object: String,
    },
    /// The source of the plug-in is absent.
    #[error("{object}: source {field} is not set, so the object belongs to another plug-in; check its source")]
    SourceMissing {
        /// Kind and name.
        object: String,
        /// Path of the source.
        field: String,
    },
    /// There is no CSI source.
    #[error("{object}: spec.csi is not set, so it is no CSI volume; check which source the object has")]
    NotCsi {
        /// Kind and name.
        object: String,
    },
    /// The in-tree source belongs to a plug-in that another driver replaced.
    #[error("{object}: its {plugin} volume belongs to driver \"{owner}\", not to \"{driver}\"; run that driver")]
    OtherDriver {
        /// Kind and name.
        object: String,
        /// In-tree name of the plug-in.
        plugin: &'static str,
        /// Driver that replaced it.
        owner: &'static str,
        /// Driver that was to act.
        driver: String,
    },
    /// Zones are given twice.
    #[error("{object}: parameter {parameter} and allowedTopologies both choose zones; remove one of them")]
    ZonesGivenTwice {
        /// Kind and name.
        object: String,
        /// The parameter, as spelled in the class.
        parameter: String,
    },
    /// Two parameters set the same thing to different values.
    #[error("{object}: parameters {first} and {second} set the same thing to different values; remove one of them")]
    ParametersContradict {
        /// Kind and name.
        object: String,
        /// One parameter, as spelled in the class.
        first: String,
        /// The other one.
        second: String,
    },
    /// A volume id or handle is not of the expected form.
    #[error("{object}: \"{handle}\" is not of the form {expected}; correct the volume id")]
    HandleInvalid {
        /// What carries the handle.
        object: String,
        /// The handle.
        handle: String,
        /// The form that is understood.
        expected: &'static str,
    },
    /// A node id is not of the expected form.
    #[error("node id \"{node_id}\" is not of the form {expected}; check what the driver reports for the node")]
    NodeIdInvalid {
        /// The node id.
        node_id: String,
        /// The form that is understood.
        expected: &'static str,
    },
    /// The partition attribute is no number.
    #[error("{object}: volume attribute partition is \"{partition}\", which is no whole number; correct the attribute")]
    PartitionInvalid {
        /// Kind and name.
        object: String,
        /// The attribute.
        partition: String,
    },
    /// The Azure disk is not a managed one.
    #[error("{object}: azureDisk.kind \"{kind}\" has no CSI form, only Managed has; convert the disk to a managed one")]
    DiskKindUnsupported {
        /// Kind and name.
        object: String,
        /// The kind.
        kind: String,
    },
    /// Nothing says in which namespace the secret of an Azure share is.
    #[error("{object}: no namespace for the secret; set azureFile.secretNamespace, or leave it out on a bound volume")]
    SecretNamespaceMissing {
        /// Kind and name.
        object: String,
    },
    /// There is no zone where one is needed.
    #[error("{object}: no zone is given in a topology that needs one; check the topology that the driver reports")]
    ZonesMissing {
        /// What carries the topology.
        object: String,
    },
    /// A zone name does not tell its region.
    #[error("{object}: zone \"{zone}\" is not of the form {expected}, so its region is unknown; check the zone's name")]
    ZoneInvalid {
        /// What carries the zone.
        object: String,
        /// The zone.
        zone: String,
        /// The forms that are understood.
        expected: &'static str,
    },
    /// Zones that must share a region do not.
    #[error("{object}: zones of several regions ({regions}) in one topology; use zones of one region")]
    SeveralRegions {
        /// What carries the zones.
        object: String,
        /// The regions, sorted.
        regions: String,
    },
}

impl TranslateError {
    /// Stable identifier of the rule that decided; the texts may change, this does not.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::NotAnObject { .. } => "object-missing",
            Self::WrongType { .. } => "field-type-wrong",
            Self::NoTranslation { .. } => "translation-unknown",
            Self::NotMigratable { .. } => "volume-not-migratable",
            Self::SourceMissing { .. } => "source-missing",
            Self::NotCsi { .. } => "volume-not-csi",
            Self::OtherDriver { .. } => "volume-of-other-driver",
            Self::ZonesGivenTwice { .. } => "zones-given-twice",
            Self::ParametersContradict { .. } => "parameters-contradict",
            Self::HandleInvalid { .. } => "handle-invalid",
            Self::NodeIdInvalid { .. } => "node-id-invalid",
            Self::PartitionInvalid { .. } => "partition-invalid",
            Self::DiskKindUnsupported { .. } => "disk-kind-unsupported",
            Self::SecretNamespaceMissing { .. } => "secret-namespace-missing",
            Self::ZonesMissing { .. } => "zones-missing",
            Self::ZoneInvalid { .. } => "zone-invalid",
            Self::SeveralRegions { .. } => "several-regions",
        }
    }
}
