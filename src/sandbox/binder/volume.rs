//! What a volume needs next (cluster-volume-controllers.md A.5).

use super::bind::{to_volume_phase, unbind};
use super::migrated;
use super::names::{MIGRATED_TO, PROVISIONED_BY};
use super::objects::{annotation, claim_key, claim_uid, key, mode, name, phase, text, uid};
use super::plan::{Action, Plan, View, about_claim, about_volume};
use serde_json::Value;

/// The writes and events that are due for the volume. Empty for a volume that is not there.
pub fn sync_volume(view: &View, volume: &str) -> Plan {
    let mut plan = Plan::default();
    let Some(held) = view.volumes.get(volume) else { return plan };
    let mut volume = (**held).clone();
    if migrated::mark_volume(&mut volume) {
        plan.act(Action::WriteVolume(volume.clone()));
    }
    let owner_key = claim_key(&volume);
    let Some(owner_key) = owner_key.filter(|_| !claim_uid(&volume).is_empty()) else {
        to_volume_phase(&mut plan, volume, "Available", "");
        return plan;
    };
    let Some(claim) = owner(view, &volume, &owner_key) else {
        release(&mut plan, &volume);
        return plan;
    };
    let wanted = text(claim, "/spec/volumeName");
    if wanted.is_empty() && mode(&volume) != mode(claim) {
        tell_of_modes(&mut plan, &volume, claim);
    } else if wanted.is_empty() {
        plan.act(Action::WakeClaim(key(claim)));
    } else if wanted == name(&volume) {
        to_volume_phase(&mut plan, volume, "Bound", "");
    } else if annotation(&volume, PROVISIONED_BY).is_some()
        && text(&volume, "/spec/persistentVolumeReclaimPolicy") == "Delete"
    {
        release(&mut plan, &volume);
    } else {
        unbind(&mut plan, &volume);
    }
    plan
}

/// The claim that owns the volume. A claim of the same name with another UID is not it, and before that is believed
/// the API is asked.
fn owner<'a>(view: &'a View, volume: &Value, owner_key: &str) -> Option<&'a Value> {
    let settled = is_settled(volume);
    let held = match view.claims.get(owner_key) {
        None if settled => None,
        None => view.live_claim(owner_key),
        Some(claim) => Some(claim),
    }?;
    if uid(held) == claim_uid(volume) {
        return Some(held);
    }
    let live = view.live_claim(owner_key)?;
    (uid(live) == claim_uid(volume)).then_some(live)
}

fn is_settled(volume: &Value) -> bool {
    matches!(phase(volume), "Released" | "Failed")
}

/// The owner is gone: Released, then whatever the policy asks for.
fn release(plan: &mut Plan, volume: &Value) {
    if !is_settled(volume) {
        to_volume_phase(plan, volume.clone(), "Released", "");
    }
    if annotation(volume, MIGRATED_TO).is_some_and(|driver| !driver.is_empty()) {
        return;
    }
    match text(volume, "/spec/persistentVolumeReclaimPolicy") {
        "Retain" => {}
        "Delete" => plan.act(Action::Delete(name(volume).to_owned())),
        "Recycle" => plan.act(Action::Recycle(name(volume).to_owned())),
        _ => {
            let message = "Volume has unrecognized PersistentVolumeReclaimPolicy";
            super::reclaim::failed(plan, volume, "VolumeUnknownReclaimPolicy", message);
        }
    }
}

fn tell_of_modes(plan: &mut Plan, volume: &Value, claim: &Value) {
    let what = "due to incompatible volumeMode.";
    plan.warning(
        about_volume(volume),
        "VolumeMismatch",
        format!("Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} {what}", name(claim)),
    );
    plan.warning(
        about_claim(claim),
        "VolumeMismatch",
        format!("Cannot bind PersistentVolume {:?} to requested PersistentVolumeClaim {what}", name(volume)),
    );
}
