//! Which volume a claim gets (cluster-volume-controllers.md A.9a), and whether a volume that it names will do (A.6).

use super::objects::{
    access_modes, attributes_class, capacity_nanos, class, is_deleting, mode, name, owns, phase, requested_nanos,
};
use super::selector;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NANOS: i128 = 1_000_000_000;

/// The best volume for a claim without a volume name.
///
/// Volumes are tried in groups of equal access modes, smallest group first; a group that yields one wins, so that a
/// free volume of a smaller group beats one reserved in a larger group. With late binding only reserved volumes count.
/// An error for a selector that is none.
pub fn find<'a>(
    volumes: impl IntoIterator<Item = &'a Arc<Value>>,
    claim: &Value,
    late_binding: bool,
) -> Result<Option<&'a Arc<Value>>, String> {
    let wanted = access_modes(claim);
    let mut groups: BTreeMap<(usize, BTreeSet<&str>), Vec<&Arc<Value>>> = BTreeMap::new();
    for volume in volumes {
        let modes = access_modes(volume);
        if wanted.is_subset(&modes) {
            groups.entry((modes.len(), modes)).or_default().push(volume);
        }
    }
    for group in groups.values() {
        if let Some(volume) = best_of(group, claim, late_binding)? {
            return Ok(Some(volume));
        }
    }
    Ok(None)
}

fn best_of<'a>(group: &[&'a Arc<Value>], claim: &Value, late: bool) -> Result<Option<&'a Arc<Value>>, String> {
    let selector = claim.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let mut best: Option<(Reverse<i128>, &Arc<Value>)> = None;
    for volume in group {
        let reserved = owns(volume, claim);
        let free = volume.pointer("/spec/claimRef").is_none_or(Value::is_null);
        let fits = (free || reserved)
            && capacity_nanos(volume) >= requested_nanos(claim)
            && mode(volume) == mode(claim)
            && attributes_class(volume) == attributes_class(claim)
            && !is_deleting(volume);
        if !fits {
            continue;
        }
        if reserved {
            return Ok(Some(volume));
        }
        if late || phase(volume) != "Available" {
            continue;
        }
        let labels = volume.pointer("/metadata/labels").and_then(Value::as_object);
        if !selector::fits(selector, labels)? || class(volume) != class(claim) {
            continue;
        }
        let size = Reverse(capacity_nanos(volume));
        if best.is_none_or(|(smallest, _)| size > smallest) {
            best = Some((size, volume));
        }
    }
    Ok(best.map(|(_, volume)| volume))
}

/// Why a volume that the claim names cannot be its volume; `None` = it can.
pub fn mismatch(volume: &Value, claim: &Value) -> Option<String> {
    let whole = |nanos: i128| nanos.div_euclid(NANOS) + i128::from(nanos.rem_euclid(NANOS) > 0);
    if is_deleting(volume) {
        Some(format!("the volume is marked for deletion {:?}", name(volume)))
    } else if whole(capacity_nanos(volume)) < whole(requested_nanos(claim)) {
        Some("requested PV is too small".to_owned())
    } else if class(volume) != class(claim) {
        Some("storageClassName does not match".to_owned())
    } else if attributes_class(volume) != attributes_class(claim) {
        Some("volumeAttributesClassName does not match".to_owned())
    } else if mode(volume) != mode(claim) {
        Some("incompatible volumeMode".to_owned())
    } else if !access_modes(claim).is_subset(&access_modes(volume)) {
        Some("incompatible accessMode".to_owned())
    } else {
        None
    }
}
