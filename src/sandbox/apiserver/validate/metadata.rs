//! Rules about metadata, which all kinds share.

use super::findings::Findings;
use super::syntax;
use crate::sandbox::apiserver::resources::Resource;
use crate::sandbox::apiserver::world::{finalizers, is_terminating, meta};
use serde_json::{Map, Value};

/// Bytes of all annotations together.
const ANNOTATIONS_MAX: usize = 262_144;
/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Checks the metadata of an object.
pub fn check(resource: &Resource, object: &Value, findings: &mut Findings) {
    let name = meta(object, "name");
    let name_rule = if resource.plural == "namespaces" { syntax::label } else { syntax::subdomain };
    if name.is_empty() {
        findings.required("metadata.name", "name or generateName is required");
    } else {
        findings.syntax("metadata.name", name, name_rule(name));
    }
    let map = |key: &str| object.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_object);
    if let Some(labels) = map("labels") {
        check_labels(labels, "metadata.labels", findings);
    }
    if let Some(annotations) = map("annotations") {
        check_annotations(annotations, findings);
    }
    for (at, finalizer) in finalizers(object).into_iter().enumerate() {
        let field = format!("metadata.finalizers[{at}]");
        findings.syntax("metadata.finalizers", finalizer, syntax::qualified_name(finalizer));
        if !resource.custom && !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            findings.invalid(field, &Value::from(finalizer), why);
        }
    }
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    check_owners(owners.map_or(&[], Vec::as_slice), findings);
}

/// Checks a map of labels.
pub fn check_labels(labels: &Map<String, Value>, field: &str, findings: &mut Findings) {
    for (key, value) in labels {
        findings.syntax(field, key, syntax::qualified_name(key));
        match value.as_str() {
            Some(text) => findings.syntax(field, text, syntax::label_value(text)),
            None => findings.invalid(field, value, "must be a text"),
        }
    }
}

fn check_annotations(annotations: &Map<String, Value>, findings: &mut Findings) {
    let mut bytes = 0;
    for (key, value) in annotations {
        findings.syntax("metadata.annotations", key, syntax::qualified_name(&key.to_ascii_lowercase()));
        match value.as_str() {
            Some(text) => bytes += key.len() + text.len(),
            None => findings.invalid("metadata.annotations", value, "must be a text"),
        }
    }
    if bytes > ANNOTATIONS_MAX {
        findings.too_long("metadata.annotations", ANNOTATIONS_MAX);
    }
}

fn check_owners(owners: &[Value], findings: &mut Findings) {
    for (at, owner) in owners.iter().enumerate() {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
                findings.required(format!("metadata.ownerReferences[{at}].{key}"), "must not be empty");
            }
        }
    }
    let controllers = owners.iter().filter(|owner| owner.get("controller") == Some(&Value::Bool(true))).count();
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true";
        findings.invalid("metadata.ownerReferences", &Value::from(owners), why);
    }
}

/// Checks what a write may change in the metadata.
pub fn check_change(old: &Value, new: &Value, findings: &mut Findings) {
    if !is_terminating(old) {
        return;
    }
    let held = finalizers(old);
    let added: Vec<&str> = finalizers(new).into_iter().filter(|finalizer| !held.contains(finalizer)).collect();
    if !added.is_empty() {
        let why =
            format!("no new finalizers can be added if the object is being deleted, found new finalizers {added:?}");
        findings.forbidden("metadata.finalizers", &why);
    }
}
