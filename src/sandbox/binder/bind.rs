//! The edits of binding and unbinding (cluster-volume-controllers.md A.7).

use super::names::{BIND_COMPLETED, BOUND_BY_CONTROLLER, PRE_RESIZE_CAPACITY, YES};
use super::objects::{
    annotate, annotation, attributes_class, child, claim_uid, name, nanos, owns, phase, remove_annotation, text, uid,
};
use super::plan::{Action, Plan};
use crate::sandbox::apiserver::validate::quantity::Quantity;
use serde_json::{Map, Value, json};

/// Up to four writes, each only when it changes something: volume, its status, claim, its status.
pub fn bind(plan: &mut Plan, volume: &Value, claim: &Value) {
    let mut volume = volume.clone();
    if reserve(&mut volume, claim) {
        plan.act(Action::WriteVolume(volume.clone()));
    }
    if set_volume_phase(&mut volume, "Bound", "") {
        plan.act(Action::WriteVolumeStatus(volume.clone()));
    }
    let mut claim = claim.clone();
    if point(&mut claim, name(&volume)) {
        plan.act(Action::WriteClaim(claim.clone()));
    }
    match set_claim_status(&mut claim, "Bound", Some(&volume)) {
        Ok(true) => plan.act(Action::WriteClaimStatus(claim)),
        Ok(false) => {}
        Err(error) => plan.error = Some(error),
    }
}

/// Frees a volume: one that a controller reserved loses its reference, one that a person reserved only the UID.
pub fn unbind(plan: &mut Plan, volume: &Value) {
    let mut volume = volume.clone();
    if remove_annotation(&mut volume, BOUND_BY_CONTROLLER) {
        if let Some(spec) = child(&mut volume, "spec") {
            spec.remove("claimRef");
        }
    } else if let Some(reference) = volume.pointer_mut("/spec/claimRef").and_then(Value::as_object_mut) {
        reference.remove("uid");
    }
    plan.act(Action::WriteVolume(volume.clone()));
    to_volume_phase(plan, volume, "Available", "");
}

/// Points the volume at the claim; says whether that changed anything.
fn reserve(volume: &mut Value, claim: &Value) -> bool {
    let was_owned = owns(volume, claim);
    if was_owned && claim_uid(volume) == uid(claim) {
        return false;
    }
    let mut reference = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1"});
    if let Some(fields) = reference.as_object_mut() {
        for field in ["namespace", "name", "uid", "resourceVersion"] {
            fields.insert(field.to_owned(), json!(text(claim, &format!("/metadata/{field}"))));
        }
    }
    if let Some(spec) = child(volume, "spec") {
        spec.insert("claimRef".to_owned(), reference);
    }
    if !was_owned {
        annotate(volume, BOUND_BY_CONTROLLER, YES);
    }
    true
}

/// Points the claim at the volume; says whether that changed anything.
fn point(claim: &mut Value, volume: &str) -> bool {
    let mut changed = false;
    if text(claim, "/spec/volumeName") != volume {
        if let Some(spec) = child(claim, "spec") {
            spec.insert("volumeName".to_owned(), json!(volume));
        }
        if annotation(claim, BOUND_BY_CONTROLLER).is_none() {
            annotate(claim, BOUND_BY_CONTROLLER, YES);
        }
        changed = true;
    }
    if annotation(claim, BIND_COMPLETED).is_none() {
        changed |= annotate(claim, BIND_COMPLETED, YES);
    }
    changed
}

/// Adds the status write of a volume unless it is in the phase already.
pub fn to_volume_phase(plan: &mut Plan, mut volume: Value, phase: &str, message: &str) {
    if set_volume_phase(&mut volume, phase, message) {
        plan.act(Action::WriteVolumeStatus(volume));
    }
}

fn set_volume_phase(volume: &mut Value, wanted: &str, message: &str) -> bool {
    if phase(volume) == wanted {
        return false;
    }
    if let Some(status) = child(volume, "status") {
        status.insert("phase".to_owned(), json!(wanted));
        if message.is_empty() {
            status.remove("message");
        } else {
            status.insert("message".to_owned(), json!(message));
        }
    }
    true
}

/// Adds the status write of a claim without a volume, if it changes anything.
pub fn to_claim_phase(plan: &mut Plan, mut claim: Value, phase: &str) {
    // Without a volume nothing can be wrong.
    if set_claim_status(&mut claim, phase, None) == Ok(true) {
        plan.act(Action::WriteClaimStatus(claim));
    }
}

fn set_claim_status(claim: &mut Value, wanted: &str, volume: Option<&Value>) -> Result<bool, String> {
    let was = phase(claim).to_owned();
    let before = claim.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut after = before.clone();
    after.insert("phase".to_owned(), json!(wanted));
    match volume {
        None => {
            for field in ["accessModes", "capacity", "currentVolumeAttributesClassName"] {
                after.remove(field);
            }
        }
        Some(volume) => {
            take(&mut after, "accessModes", volume.pointer("/spec/accessModes"));
            if was != wanted {
                take_capacity(&mut after, volume)?;
            }
            if was == "Pending" && wanted == "Bound" && !attributes_class(volume).is_empty() {
                after.insert("currentVolumeAttributesClassName".to_owned(), json!(attributes_class(volume)));
            }
        }
    }
    if after == before {
        return Ok(false);
    }
    if let Some(claim) = claim.as_object_mut() {
        claim.insert("status".to_owned(), Value::Object(after));
    }
    Ok(true)
}

fn take(status: &mut Map<String, Value>, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => status.insert(field.to_owned(), value.clone()),
        None => status.remove(field),
    };
}

/// Capacity is taken over only when the phase changes; later changes are the resizer's.
fn take_capacity(status: &mut Map<String, Value>, volume: &Value) -> Result<(), String> {
    let size = text(volume, "/spec/capacity/storage");
    if size.is_empty() {
        return Err(format!("PersistentVolume {:?} is without a storage capacity", name(volume)));
    }
    let shown = status.get("capacity").map(|capacity| text(capacity, "/storage").to_owned()).unwrap_or_default();
    match annotation(volume, PRE_RESIZE_CAPACITY).filter(|size| Quantity::parse(size).is_some()) {
        Some(before_resize) => {
            status.insert("capacity".to_owned(), json!({"storage": before_resize}));
        }
        None if shown.is_empty() || nanos(&shown) != nanos(size) => {
            take(status, "capacity", volume.pointer("/spec/capacity"));
        }
        None => {}
    }
    Ok(())
}
