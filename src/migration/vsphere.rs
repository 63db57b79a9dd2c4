//! `kubernetes.io/vsphere-volume`: class parameters, source fields and a topology of its own (migration.md 11.4).
//!
//! Read-only flag and storage policy have no place on the way back and are lost there (migration.md 17, W9).

use super::affinity;
use super::class::{Draft, Given};
use super::error::TranslateError;
use super::fields::{Built, Fields};
use super::object::VolumeObject;
use super::tables::{FSTYPE_PARAMETER, Plugin, VSPHERE_REGION};
use super::topology::{self, Generation};
use serde_json::{Map, Value};

/// Class parameter that tells the driver about the migration.
pub(super) const MARKER: &str = "csimigration";

/// One class parameter. The driver refuses what it does not know, so unknown ones are dropped.
pub(super) fn parameter(draft: &mut Draft, given: &Given<'_>) -> Result<(), TranslateError> {
    match given.name.as_str() {
        "fstype" => draft.put(FSTYPE_PARAMETER, given.value, given.key),
        "storagepolicyname" => draft.put(&given.name, given.value, given.key),
        "datastore"
        | "diskformat"
        | "hostfailurestotolerate"
        | "forceprovisioning"
        | "cachereservation"
        | "diskstripes"
        | "objectspacereservation"
        | "iopslimit" => draft.put(&format!("{}-migrationparam", given.name), given.value, given.key),
        _ => Ok(()),
    }
}

/// CSI source of an in-tree source.
pub(super) fn to_csi(source: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    let built = Built::default()
        .with("driver", Plugin::Vsphere.driver_name())
        .with("volumeHandle", source.text("volumePath")?)
        .with_text("fsType", source.text("fsType")?);
    Ok(match source.text("storagePolicyName")? {
        "" => built.done(),
        policy => built.with("volumeAttributes", Built::default().with("storagepolicyname", policy).done()).done(),
    })
}

/// In-tree source of a CSI source. The path is in an attribute, because the handle of a volume that the driver made is
/// an id.
pub(super) fn to_in_tree(csi: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    let attributes = csi.text_map("volumeAttributes")?;
    Ok(Built::default()
        .with("volumePath", attributes.get("initialvolumefilepath").copied().unwrap_or_default())
        .with_text("fsType", csi.text("fsType")?)
        .done())
}

/// Key of the driver and key of Kubernetes, for zone and region.
fn key_pairs(pv: &VolumeObject) -> [(&'static str, &'static str); 2] {
    let generation = Generation::of(pv);
    let zone = Plugin::Vsphere.zone_key().unwrap_or_default();
    [(zone, generation.zone()), (VSPHERE_REGION, generation.region())]
}

/// Zone and region keys to those of the driver, each by itself; a label counts as one value.
pub(super) fn topology_to_csi(pv: &mut VolumeObject) -> Result<(), TranslateError> {
    for (driver, kubernetes) in key_pairs(pv) {
        if !affinity::values_of(pv, kubernetes).is_empty() {
            affinity::rename(pv, kubernetes, driver);
        } else if let Some(label) = pv.label(kubernetes).map(str::to_owned) {
            topology::append_label(pv, driver, &[&label])?;
        }
    }
    Ok(())
}

/// Zone and region keys back to those of Kubernetes; a missing label gets the first value.
pub(super) fn topology_to_in_tree(pv: &mut VolumeObject) {
    for (driver, kubernetes) in key_pairs(pv) {
        affinity::rename(pv, driver, kubernetes);
        if let Some(first) = affinity::values_of(pv, kubernetes).first() {
            pv.add_label(kubernetes, first);
        }
    }
}
