//! Translates objects of the seven former in-tree plug-ins to their CSI form and back (migration.md).
//!
//! Promises:
//! - pure: the same input gives the same output, and the input is never changed;
//! - any JSON value is answered with a translation or a [`TranslateError`], never with a panic;
//! - fields of a volume object that no rule names survive.
//!
//! Not here: when a translation is due during provisioning (the workers decide), and reading or
//! writing objects.
//!
//! Read next: [`tables`] for names and keys, [`topology`] for the zone algorithms, then one file per plug-in.

pub mod affinity;
pub mod aws_ebs;
pub mod azure_disk;
pub mod azure_file;
mod cinder;
mod class;
pub mod deletion;
mod error;
mod fields;
pub mod gce_pd;
mod inline;
pub mod object;
mod portworx;
pub mod region;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod topology;
mod volume;
mod vsphere;

pub use error::TranslateError;
pub use tables::Plugin;

use crate::model::{Class, Driver};
use serde_json::Value;

/// In-tree name of the plug-in that `driver` replaced; exact and case sensitive (migration.md 1).
pub fn in_tree_name(driver: &str) -> Option<&'static str> {
    Plugin::by_driver(driver).map(Plugin::in_tree_name)
}

/// Driver that replaced the in-tree plug-in; exact and case sensitive (migration.md 1).
pub fn driver_name(in_tree: &str) -> Option<&'static str> {
    Plugin::by_in_tree(in_tree).map(Plugin::driver_name)
}

/// Whether the class has to be translated: its provisioner is the driver's in-tree name (migration.md 5.2).
pub fn is_translated(class: &Class, driver: &Driver) -> bool {
    driver.in_tree_name.as_deref() == Some(class.provisioner.as_str())
}

/// The class as the driver understands it; the plug-in is found by the class provisioner (migration.md 8).
///
/// Fails for a provisioner that is no in-tree name, for a zone parameter next to allowed topologies and for
/// parameters that contradict each other.
pub fn translate_class(class: &Class) -> Result<Class, TranslateError> {
    match Plugin::by_in_tree(&class.provisioner) {
        Some(plugin) => plugin.translate_class(class),
        None => Err(TranslateError::NoTranslation {
            object: class::title(class),
            name: class.provisioner.clone(),
            known_as: "an in-tree provisioner",
        }),
    }
}

/// Whether the volume object has exactly one source and that of a listed plug-in; a CSI volume has not.
pub fn is_migratable(pv: &Value) -> bool {
    Plugin::of_volume(pv).is_some()
}

/// A volume object with in-tree source in its CSI form (migration.md 10).
pub fn volume_to_csi(pv: &Value) -> Result<Value, TranslateError> {
    match Plugin::of_volume(pv) {
        Some(plugin) => plugin.volume_to_csi(pv),
        None => Err(TranslateError::NotMigratable { object: object::VolumeObject::read(pv)?.title().to_owned() }),
    }
}

/// A volume object with CSI source in the in-tree form of the plug-in that its driver replaced (migration.md 9).
pub fn volume_to_in_tree(pv: &Value) -> Result<Value, TranslateError> {
    volume::plugin_of_driver(pv)?.volume_to_in_tree(pv)
}

/// A volume written into a pod, as the CSI volume object that stands for it (migration.md 15). The volume mode is
/// always set.
pub fn inline_to_csi(pod_volume: &Value, pod_namespace: &str) -> Result<Value, TranslateError> {
    inline::to_csi(pod_volume, pod_namespace)
}

/// A handle with its `UNSPECIFIED` parts filled in from the node that the volume is attached to (migration.md 13).
///
/// Only gce-pd has such parts; a driver that replaced no plug-in is an error.
pub fn repair_handle(driver: &str, handle: &str, node_id: &str) -> Result<String, TranslateError> {
    match Plugin::by_driver(driver) {
        Some(Plugin::GcePd) => gce_pd::repair_handle(handle, node_id),
        Some(
            Plugin::AwsEbs
            | Plugin::AzureDisk
            | Plugin::AzureFile
            | Plugin::Cinder
            | Plugin::Vsphere
            | Plugin::Portworx,
        ) => Ok(handle.to_owned()),
        None => Err(TranslateError::NoTranslation {
            object: format!("volume handle \"{handle}\""),
            name: driver.to_owned(),
            known_as: "a driver that replaced an in-tree plug-in",
        }),
    }
}

impl Plugin {
    /// The class as this plug-in's driver understands it, whatever the class provisioner says (migration.md 8).
    pub fn translate_class(self, class: &Class) -> Result<Class, TranslateError> {
        class::translate(self, class)
    }

    /// A volume object with this plug-in's source in its CSI form (migration.md 10).
    pub fn volume_to_csi(self, pv: &Value) -> Result<Value, TranslateError> {
        volume::to_csi(self, pv)
    }

    /// A CSI volume object in this plug-in's form, whatever driver it names (migration.md 9).
    pub fn volume_to_in_tree(self, pv: &Value) -> Result<Value, TranslateError> {
        volume::to_in_tree(self, pv)
    }

    /// A pod volume of this plug-in as a CSI volume object; the volume mode only where the plug-in sets it
    /// (migration.md 15).
    pub fn inline_to_csi(self, pod_volume: &Value, pod_namespace: &str) -> Result<Value, TranslateError> {
        inline::of_plugin(self, pod_volume, pod_namespace)
    }
}
