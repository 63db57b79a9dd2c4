//! Questions to API objects, which stay raw JSON so that nothing is lost when they are written back.

use super::names;
use crate::sandbox::apiserver::validate::quantity::Quantity;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A text field, empty when absent.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// `namespace/name`.
pub fn key(object: &Value) -> String {
    format!("{}/{}", text(object, "/metadata/namespace"), name(object))
}

/// Whether deletion has begun.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Replaces the finalizers; an empty list leaves no field.
pub fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
}

/// An annotation's value.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// Sets an annotation; says whether that changed anything.
pub fn annotate(object: &mut Value, key: &str, value: &str) -> bool {
    if annotation(object, key) == Some(value) {
        return false;
    }
    let annotations = child(object, "metadata").map(|metadata| metadata.entry("annotations").or_insert(json!({})));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(key.to_owned(), json!(value));
    }
    true
}

/// Removes an annotation and an annotation map that becomes empty; says whether that changed anything.
pub fn remove_annotation(object: &mut Value, key: &str) -> bool {
    let Some(metadata) = child(object, "metadata") else { return false };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return false };
    let was_there = annotations.remove(key).is_some();
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    was_there
}

/// A top-level map such as `spec`, made if it is missing. `None` only for a value that is no object.
pub fn child<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let parent = object.as_object_mut()?;
    let entry = parent.entry(field).or_insert_with(|| json!({}));
    if entry.is_null() {
        *entry = json!({});
    }
    entry.as_object_mut()
}

/// Class of a claim or volume: beta annotation if present, else the field.
pub fn class(object: &Value) -> &str {
    annotation(object, names::BETA_CLASS).unwrap_or_else(|| text(object, "/spec/storageClassName"))
}

/// Whether a claim says anything about its class; an empty text counts.
pub fn has_class(claim: &Value) -> bool {
    annotation(claim, names::BETA_CLASS).is_some()
        || claim.pointer("/spec/storageClassName").is_some_and(|class| !class.is_null())
}

/// Class of attributes; absent = empty.
pub fn attributes_class(object: &Value) -> &str {
    text(object, "/spec/volumeAttributesClassName")
}

/// Volume mode; absent = `Filesystem`.
pub fn mode(object: &Value) -> &str {
    match text(object, "/spec/volumeMode") {
        "" => "Filesystem",
        mode => mode,
    }
}

/// The set of access modes.
pub fn access_modes(object: &Value) -> BTreeSet<&str> {
    let modes = object.pointer("/spec/accessModes").and_then(Value::as_array);
    modes.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The storage that a claim requests, in billionths of a byte; what cannot be read counts as 0.
pub fn requested_nanos(claim: &Value) -> i128 {
    nanos(text(claim, "/spec/resources/requests/storage"))
}

/// The storage of a volume, in billionths of a byte; what cannot be read counts as 0.
pub fn capacity_nanos(volume: &Value) -> i128 {
    nanos(text(volume, "/spec/capacity/storage"))
}

/// A quantity in billionths.
pub fn nanos(quantity: &str) -> i128 {
    Quantity::parse(quantity).map_or(0, Quantity::nanos)
}

/// `metadata.name` and namespace of the claim that a volume names, as a key.
pub fn claim_key(volume: &Value) -> Option<String> {
    let reference = volume.pointer("/spec/claimRef").filter(|reference| reference.is_object())?;
    Some(format!("{}/{}", text(reference, "/namespace"), text(reference, "/name")))
}

/// UID of the claim that a volume names.
pub fn claim_uid(volume: &Value) -> &str {
    text(volume, "/spec/claimRef/uid")
}

/// Whether the volume is reserved for or owned by the claim.
pub fn owns(volume: &Value, claim: &Value) -> bool {
    claim_key(volume).is_some_and(|key| key == self::key(claim))
        && (claim_uid(volume).is_empty() || claim_uid(volume) == uid(claim))
}

/// Phase in the status.
pub fn phase(object: &Value) -> &str {
    text(object, "/status/phase")
}

/// Whether a pod has ended: by phase, or because it is being deleted and no container runs any more.
pub fn is_terminated(pod: &Value) -> bool {
    if matches!(phase(pod), "Failed" | "Succeeded") {
        return true;
    }
    let running = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"].iter().any(|list| {
        let statuses = pod.pointer(&format!("/status/{list}")).and_then(Value::as_array);
        statuses.into_iter().flatten().any(|status| status.pointer("/state/running").is_some())
    });
    is_deleting(pod) && !running
}

/// Keys of the claims that a pod uses, also those made for it.
pub fn claims_of(pod: &Value) -> Vec<String> {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let claim = |volume: &Value| match text(volume, "/persistentVolumeClaim/claimName") {
        "" if volume.get("ephemeral").is_some() => Some(format!("{}-{}", name(pod), text(volume, "/name"))),
        "" => None,
        claim => Some(claim.to_owned()),
    };
    let namespace = text(pod, "/metadata/namespace");
    volumes.into_iter().flatten().filter_map(claim).map(|claim| format!("{namespace}/{claim}")).collect()
}
