//! Volumes written into a pod, as the CSI volume objects that stand for them (migration.md 15).
//!
//! The provisioner never meets them; the sandbox and other callers of the translation do.

use super::error::TranslateError;
use super::fields::Fields;
use super::tables::Plugin;
use super::{aws_ebs, azure_disk, azure_file, cinder, gce_pd, portworx, vsphere};
use serde_json::{Value, json};

/// The volume object of a pod volume, with a volume mode in any case.
pub(super) fn to_csi(value: &Value, pod_namespace: &str) -> Result<Value, TranslateError> {
    let Some(plugin) = Plugin::of_source_holder(value) else {
        return Err(match value.as_object() {
            None => TranslateError::NotAnObject { kind: KIND },
            Some(_) => TranslateError::NotMigratable { object: title(value) },
        });
    };
    let mut pv = of_plugin(plugin, value, pod_namespace)?;
    if let Some(spec) = pv.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("volumeMode").or_insert_with(|| FILESYSTEM.into());
    }
    Ok(pv)
}

const KIND: &str = "pod volume";
const FILESYSTEM: &str = "Filesystem";

fn title(value: &Value) -> String {
    format!("{KIND} \"{}\"", value.get("name").and_then(Value::as_str).unwrap_or_default())
}

/// The same for one plug-in, which leaves the volume mode open where its rules do.
pub(super) fn of_plugin(plugin: Plugin, value: &Value, pod_namespace: &str) -> Result<Value, TranslateError> {
    let Value::Object(map) = value else {
        return Err(TranslateError::NotAnObject { kind: KIND });
    };
    let title = title(value);
    let volume = Fields::of_object(&title, map);
    let field = plugin.source_field();
    let source = volume
        .inner(field)?
        .ok_or_else(|| TranslateError::SourceMissing { object: title.clone(), field: field.to_owned() })?;
    let csi = match plugin {
        Plugin::AwsEbs => aws_ebs::to_csi(&source)?,
        Plugin::GcePd => gce_pd::to_csi(&source, &gce_pd::Place::Unknown)?,
        Plugin::AzureDisk => azure_disk::to_csi(&source, azure_disk::EmptyCaching::LeftOut)?,
        Plugin::AzureFile => {
            let namespace = if pod_namespace.is_empty() { azure_file::DEFAULT_NAMESPACE } else { pod_namespace };
            azure_file::to_csi(&source, &azure_file::Belonging::of_pod(volume.text("name")?, namespace))?
        }
        Plugin::Cinder => cinder::to_csi(&source)?,
        Plugin::Vsphere => vsphere::to_csi(&source)?,
        Plugin::Portworx => portworx::to_csi(&source, None)?,
    };
    let read_only = source.flag("readOnly")?;
    let by_flag = if read_only { "ReadOnlyMany" } else { "ReadWriteOnce" };
    let handle = csi.get("volumeHandle").and_then(Value::as_str).unwrap_or_default();
    let (name, access_mode) = match plugin {
        Plugin::AwsEbs | Plugin::Cinder | Plugin::Vsphere => (prefixed(plugin, handle), "ReadWriteOnce"),
        Plugin::AzureDisk => (handle.to_owned(), "ReadWriteOnce"),
        Plugin::AzureFile => (handle.to_owned(), "ReadWriteMany"),
        Plugin::GcePd => (prefixed(plugin, source.text("pdName")?), by_flag),
        Plugin::Portworx => (prefixed(plugin, handle), by_flag),
    };
    let mut pv = json!({ "metadata": { "name": name }, "spec": { "accessModes": [access_mode] } });
    if let Some(spec) = pv.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("csi".to_owned(), Value::Object(csi));
        if plugin == Plugin::GcePd {
            spec.insert("volumeMode".to_owned(), FILESYSTEM.into());
        }
    }
    Ok(pv)
}

fn prefixed(plugin: Plugin, id: &str) -> String {
    format!("{}-{id}", plugin.driver_name())
}
