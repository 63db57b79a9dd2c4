//! The operations on a released volume (cluster-volume-controllers.md A.8), without in-tree plug-ins: what a CSI driver
//! must delete is left to its sidecar, everything else fails with the reason.

use super::bind::to_volume_phase;
use super::names::{IN_TREE_PREFIX, MIGRATED_TO, PROVISIONED_BY};
use super::objects::{annotation, claim_key, claim_uid, claims_of, is_terminated, key, name, phase, text, uid};
use super::plan::{Plan, View, about_volume};
use serde_json::Value;

/// The Delete operation.
pub fn delete(view: &View, volume: &str) -> Plan {
    let mut plan = Plan::default();
    if let Some(volume) = view.volumes.get(volume)
        && let Some(reason) = no_deleter(volume)
    {
        failed(&mut plan, volume, "VolumeFailedDelete", &reason);
    }
    plan
}

/// Why nobody can delete the volume; `None` = an outside provisioner can.
fn no_deleter(volume: &Value) -> Option<String> {
    match annotation(volume, PROVISIONED_BY).filter(|name| !name.is_empty()) {
        Some(provisioner) if provisioner.starts_with(IN_TREE_PREFIX) => {
            Some(format!("no volume plugin matched name: {provisioner}"))
        }
        Some(_) => None,
        None if annotation(volume, MIGRATED_TO).is_some() || volume.pointer("/spec/csi").is_some() => None,
        None => {
            Some(format!("error getting deleter volume plugin for volume {:?}: no volume plugin matched", name(volume)))
        }
    }
}

/// The Recycle operation.
pub fn recycle(view: &View, volume: &str) -> Plan {
    let mut plan = Plan::default();
    let Some(volume) = view.volumes.get(volume).filter(|volume| is_released(view, volume)) else { return plan };
    let owner = claim_key(volume).unwrap_or_default();
    let uses = |pod: &&Value| claims_of(pod).contains(&owner) && !is_terminated(pod);
    let pods: Vec<String> = view.pods.values().map(AsRef::as_ref).filter(uses).map(key).collect();
    if !pods.is_empty() && !view.claims.contains_key(&owner) {
        plan.normal(about_volume(volume), "VolumeFailedRecycle", format!("Volume is used by pods: {}", pods.join(",")));
    } else {
        failed(&mut plan, volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!");
    }
    plan
}

/// Whether the volume still belongs to a claim that is gone or uses another volume.
fn is_released(view: &View, volume: &Value) -> bool {
    let Some(owner) = claim_key(volume).filter(|_| !claim_uid(volume).is_empty()) else { return false };
    view.claims.get(&owner).is_none_or(|claim| {
        let wanted = text(claim, "/spec/volumeName");
        uid(claim) != claim_uid(volume) || (!wanted.is_empty() && wanted != name(volume))
    })
}

/// Phase Failed with a message, and a Warning when that is news.
pub(super) fn failed(plan: &mut Plan, volume: &Value, reason: &'static str, message: &str) {
    if phase(volume) != "Failed" {
        to_volume_phase(plan, volume.clone(), "Failed", message);
        plan.warning(about_volume(volume), reason, message.to_owned());
    }
}
