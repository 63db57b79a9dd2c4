//! `kubernetes.io/gce-pd`: class parameters, source fields, disk handles and their repair, access modes.

use super::aws_ebs::{partition, with_partition};
use super::class::{Draft, Given};
use super::error::TranslateError;
use super::fields::{Built, Fields};
use super::object::VolumeObject;
use super::region::RegionRule;
use super::tables::{BETA_ZONE, FSTYPE_PARAMETER, Plugin, STABLE_ZONE, ZONE_SEPARATOR};
use serde_json::{Map, Value};

/// Stands in a handle for what the in-tree object does not say.
const UNSPECIFIED: &str = "UNSPECIFIED";
const HANDLE_FORM: &str =
    "projects/{project}/zones/{zone}/disks/{name} or projects/{project}/regions/{region}/disks/{name}";
const NODE_FORM: &str = "projects/{project}/zones/{zone}/instances/{name}";

/// One class parameter.
pub(super) fn parameter(draft: &mut Draft, given: &Given<'_>) -> Result<(), TranslateError> {
    if draft.takes_zones(given)? {
        return Ok(());
    }
    match given.name.as_str() {
        "fstype" => draft.put(FSTYPE_PARAMETER, given.value, given.key),
        _ => draft.keep(given),
    }
}

/// Where a disk is, as far as the object's labels tell.
pub(super) enum Place {
    Unknown,
    Zone(String),
    Region(String),
}

/// Place by the zone labels, the beta one first; the affinity plays no part (migration.md 13 and 17, W6).
pub(super) fn place_of(pv: &VolumeObject) -> Result<Place, TranslateError> {
    let label = |key| pv.label(key).filter(|zones| !zones.is_empty());
    let Some(zones) = label(BETA_ZONE).or_else(|| label(STABLE_ZONE)) else { return Ok(Place::Unknown) };
    if zones.contains(ZONE_SEPARATOR) {
        RegionRule::Gce.region_of(zones.split(ZONE_SEPARATOR), pv.title()).map(Place::Region)
    } else {
        Ok(Place::Zone(zones.to_owned()))
    }
}

/// CSI source of an in-tree source.
pub(super) fn to_csi(source: &Fields<'_>, place: &Place) -> Result<Map<String, Value>, TranslateError> {
    let name = source.text("pdName")?;
    let handle = match place {
        Place::Unknown => format!("projects/{UNSPECIFIED}/zones/{UNSPECIFIED}/disks/{name}"),
        Place::Zone(zone) => format!("projects/{UNSPECIFIED}/zones/{zone}/disks/{name}"),
        Place::Region(region) => format!("projects/{UNSPECIFIED}/regions/{region}/disks/{name}"),
    };
    let partition = match source.number("partition")? {
        0 => String::new(),
        number => number.to_string(),
    };
    Ok(Built::default()
        .with("driver", Plugin::GcePd.driver_name())
        .with("volumeHandle", handle)
        .with_text("fsType", source.text("fsType")?)
        .with_flag("readOnly", source.flag("readOnly")?)
        .with("volumeAttributes", Built::default().with("partition", partition).done())
        .done())
}

/// In-tree source of a CSI source.
pub(super) fn to_in_tree(csi: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    let handle = csi.text("volumeHandle")?;
    let name = handle.split('/').nth(5).ok_or_else(|| invalid(csi.object(), handle))?;
    let attributes = csi.text_map("volumeAttributes")?;
    let partition = match attributes.get("partition").copied().unwrap_or_default() {
        "" => 0,
        text => partition(text, csi.object())?,
    };
    let built = Built::default()
        .with("pdName", name)
        .with_text("fsType", csi.text("fsType")?)
        .with_flag("readOnly", csi.flag("readOnly")?);
    Ok(with_partition(built, partition).done())
}

/// A handle with unspecified parts, completed from the node's id (migration.md 13). A known project means that the
/// handle is complete.
pub fn repair_handle(handle: &str, node_id: &str) -> Result<String, TranslateError> {
    let object = "volume handle";
    let parts: Vec<&str> = handle.split('/').collect();
    let [_, project, kind, place, _, name, ..] = parts.as_slice() else { return Err(invalid(object, handle)) };
    if *project != UNSPECIFIED {
        return Ok(handle.to_owned());
    }
    let node_parts: Vec<&str> = node_id.split('/').collect();
    let [_, node_project, _, node_zone, _, _, ..] = node_parts.as_slice() else {
        return Err(TranslateError::NodeIdInvalid { node_id: node_id.to_owned(), expected: NODE_FORM });
    };
    let known = *place != UNSPECIFIED;
    let place = match *kind {
        "zones" | "regions" if known => (*place).to_owned(),
        "zones" => (*node_zone).to_owned(),
        "regions" => RegionRule::Gce.region_of([*node_zone], "node id")?,
        _ => return Err(invalid(object, handle)),
    };
    Ok(format!("projects/{node_project}/{kind}/{place}/disks/{name}"))
}

fn invalid(object: &str, handle: &str) -> TranslateError {
    TranslateError::HandleInvalid { object: object.to_owned(), handle: handle.to_owned(), expected: HANDLE_FORM }
}

/// Access modes that the driver takes (migration.md 14): the in-tree plug-in checked none and treated `ReadWriteMany` as
/// `ReadWriteOnce`. `None`, an absent list, stays absent.
pub fn repair_access_modes(modes: Option<&[&str]>) -> Option<Vec<&'static str>> {
    let modes = modes?;
    let has = |mode: &str| modes.contains(&mode);
    let read_only = has("ReadOnlyMany") && !has("ReadWriteOnce") && !has("ReadWriteMany");
    Some(vec![if read_only { "ReadOnlyMany" } else { "ReadWriteOnce" }])
}

/// The same within a volume object.
pub(super) fn repair_access_modes_of(pv: &mut VolumeObject) -> Result<(), TranslateError> {
    let modes = match pv.spec()? {
        Some(spec) => repair_access_modes(spec.set_texts("accessModes")?.as_deref()),
        None => None,
    };
    if let Some(modes) = modes {
        pv.set_spec("accessModes", modes.into());
    }
    Ok(())
}
