//! Volume objects between their in-tree and their CSI form: what all plug-ins share (migration.md 9 and 10).
//!
//! Promises that only the source, the affinity and the labels, annotations and access modes that a rule names change.

use super::error::TranslateError;
use super::object::VolumeObject;
use super::region::RegionRule;
use super::tables::Plugin;
use super::{aws_ebs, azure_disk, azure_file, cinder, gce_pd, portworx, topology, vsphere};
use serde_json::Value;

/// The plug-in that the driver of a CSI volume replaced.
pub(super) fn plugin_of_driver(value: &Value) -> Result<Plugin, TranslateError> {
    let pv = VolumeObject::read(value)?;
    let csi = pv.source("csi")?.ok_or_else(|| TranslateError::NotCsi { object: pv.title().to_owned() })?;
    let driver = csi.text("driver")?;
    Plugin::by_driver(driver).ok_or_else(|| TranslateError::NoTranslation {
        object: pv.title().to_owned(),
        name: driver.to_owned(),
        known_as: "a driver that replaced an in-tree plug-in",
    })
}

/// In-tree to CSI.
pub(super) fn to_csi(plugin: Plugin, value: &Value) -> Result<Value, TranslateError> {
    let mut pv = VolumeObject::read(value)?;
    let field = plugin.source_field();
    let source = pv.source(field)?.ok_or_else(|| TranslateError::SourceMissing {
        object: pv.title().to_owned(),
        field: format!("spec.{field}"),
    })?;
    let csi = match plugin {
        Plugin::AwsEbs => aws_ebs::to_csi(&source)?,
        Plugin::GcePd => gce_pd::to_csi(&source, &gce_pd::place_of(&pv)?)?,
        Plugin::AzureDisk => azure_disk::to_csi(&source, azure_disk::EmptyCaching::Kept)?,
        Plugin::AzureFile => azure_file::to_csi(&source, &azure_file::Belonging::of_volume(&pv, &source)?)?,
        Plugin::Cinder => cinder::to_csi(&source)?,
        Plugin::Vsphere => vsphere::to_csi(&source)?,
        Plugin::Portworx => portworx::to_csi(&source, portworx::Secret::of_volume(&pv).as_ref())?,
    };
    pv.replace_source(field, "csi", csi);
    match plugin {
        Plugin::GcePd => gce_pd::repair_access_modes_of(&mut pv)?,
        Plugin::Vsphere => vsphere::topology_to_csi(&mut pv)?,
        Plugin::AwsEbs | Plugin::Cinder | Plugin::AzureDisk | Plugin::AzureFile | Plugin::Portworx => {}
    }
    if let Some(zone_key) = kubernetes_zones(plugin) {
        topology::to_csi(&mut pv, zone_key)?;
    }
    Ok(pv.into_value())
}

/// CSI to in-tree.
pub(super) fn to_in_tree(plugin: Plugin, value: &Value) -> Result<Value, TranslateError> {
    let mut pv = VolumeObject::read(value)?;
    let csi = pv.source("csi")?.ok_or_else(|| TranslateError::NotCsi { object: pv.title().to_owned() })?;
    let mut resource_group = None;
    let source = match plugin {
        Plugin::AwsEbs => aws_ebs::to_in_tree(&csi)?,
        Plugin::GcePd => gce_pd::to_in_tree(&csi)?,
        Plugin::AzureDisk => azure_disk::to_in_tree(&csi)?,
        Plugin::AzureFile => {
            let (source, group) = azure_file::to_in_tree(&csi)?;
            resource_group = group;
            source
        }
        Plugin::Cinder => cinder::to_in_tree(&csi)?,
        Plugin::Vsphere => vsphere::to_in_tree(&csi)?,
        Plugin::Portworx => portworx::to_in_tree(&csi)?,
    };
    pv.replace_source("csi", plugin.source_field(), source);
    if let Some(group) = resource_group {
        pv.set_annotation(super::tables::AZURE_FILE_RESOURCE_GROUP, &group);
    }
    if plugin == Plugin::Vsphere {
        vsphere::topology_to_in_tree(&mut pv);
    }
    if let Some(zone_key) = kubernetes_zones(plugin) {
        topology::to_in_tree(&mut pv, zone_key, region_rule(plugin))?;
    }
    Ok(pv.into_value())
}

/// Zone key of the plug-ins that follow the common topology rules. azure-disk keeps its driver's key in both forms and
/// vSphere has rules of its own.
fn kubernetes_zones(plugin: Plugin) -> Option<&'static str> {
    match plugin {
        Plugin::AwsEbs | Plugin::GcePd | Plugin::Cinder => plugin.zone_key(),
        Plugin::AzureDisk | Plugin::AzureFile | Plugin::Vsphere | Plugin::Portworx => None,
    }
}

fn region_rule(plugin: Plugin) -> Option<RegionRule> {
    match plugin {
        Plugin::AwsEbs => Some(RegionRule::Aws),
        Plugin::GcePd => Some(RegionRule::Gce),
        Plugin::AzureDisk | Plugin::AzureFile | Plugin::Cinder | Plugin::Vsphere | Plugin::Portworx => None,
    }
}
