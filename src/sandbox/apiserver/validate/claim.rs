//! Rules about claims.

use super::findings::Findings;
use super::quantity::Quantity;
use super::syntax;
use super::volume::{check_positive, quantity};
use serde_json::{Map, Value, json};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const BETA_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

/// Checks a claim; with `old` also what may not change.
pub fn check(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    let empty = Map::new();
    let spec = new.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    check_access_modes(spec, "at least 1 access mode is required", findings);
    match new.pointer("/spec/resources/requests/storage") {
        Some(size) => check_positive("spec.resources[storage]", size, findings),
        None => findings.required("spec.resources[storage]", ""),
    }
    findings.one_of("spec.volumeMode", spec.get("volumeMode"), &["Block", "Filesystem"]);
    for key in ["storageClassName", "volumeAttributesClassName"] {
        let class = spec.get(key).and_then(Value::as_str).unwrap_or_default();
        if !class.is_empty() {
            findings.syntax(&format!("spec.{key}"), class, syntax::subdomain(class));
        }
    }
    check_sources(spec, findings);
    if let Some(old) = old {
        check_change(old, new, findings);
    }
}

/// Checks the status of a claim.
pub fn check_status(new: &Value, findings: &mut Findings) {
    let capacity = new.pointer("/status/capacity").and_then(Value::as_object);
    for (key, value) in capacity.into_iter().flatten() {
        if quantity(value).is_none_or(|found| found.nanos() < 0) {
            findings.invalid(format!("status.capacity[{key}]"), value, "must be a valid resource quantity");
        }
    }
}

/// The access modes of a volume or claim.
pub fn check_access_modes(spec: &Map<String, Value>, why_required: &str, findings: &mut Findings) {
    let modes = spec.get("accessModes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if modes.is_empty() {
        findings.required("spec.accessModes", why_required);
    }
    for mode in modes {
        findings.one_of("spec.accessModes", Some(mode), &MODES);
    }
    let alone = modes.iter().filter(|mode| *mode == "ReadWriteOncePod").count();
    if alone > 0 && alone < modes.len() {
        findings.forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes");
    }
}

fn check_sources(spec: &Map<String, Value>, findings: &mut Findings) {
    for key in ["dataSource", "dataSourceRef"] {
        let Some(source) = spec.get(key) else { continue };
        let text = |part: &str| source.get(part).and_then(Value::as_str).unwrap_or_default();
        for part in ["name", "kind"] {
            if text(part).is_empty() {
                findings.required(format!("spec.{key}.{part}"), "");
            }
        }
        match text("apiGroup") {
            "" if text("kind") != "PersistentVolumeClaim" => findings.invalid(
                format!("spec.{key}"),
                &json!(text("kind")),
                "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
            ),
            "" => {}
            group => findings.syntax(&format!("spec.{key}.apiGroup"), group, syntax::subdomain(group)),
        }
    }
    let (Some(source), Some(reference)) = (spec.get("dataSource"), spec.get("dataSourceRef")) else { return };
    let part = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if !part(reference, "namespace").is_empty() {
        let why = "may not be specified when dataSourceRef.namespace is specified";
        findings.invalid("spec", &json!("spec.dataSource"), why);
    } else if ["apiGroup", "kind", "name"].iter().any(|key| part(source, key) != part(reference, key)) {
        findings.invalid("spec", &json!("spec.dataSource"), "must match dataSourceRef");
    }
}

fn check_change(old: &Value, new: &Value, findings: &mut Findings) {
    let bound = new.pointer("/status/phase").and_then(Value::as_str) == Some("Bound");
    let rest = |claim: &Value| comparable(claim, old, bound);
    if rest(old) != rest(new) {
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        findings.forbidden("spec", why);
    }
    if old.pointer(BETA_CLASS) != new.pointer(BETA_CLASS) {
        let field = "metadata.annotations[volume.beta.kubernetes.io/storage-class]";
        findings.invalid(field, new.pointer(BETA_CLASS).unwrap_or(&Value::Null), "field is immutable");
    }
    let size = |claim: &Value, path: &str| claim.pointer(path).and_then(quantity).map_or(0, Quantity::nanos);
    let (asked, before) =
        (size(new, "/spec/resources/requests/storage"), size(old, "/spec/resources/requests/storage"));
    if asked < before && asked <= size(old, "/status/capacity/storage") {
        findings.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
    }
    let class = |claim: &Value| claim.pointer("/spec/volumeAttributesClassName").cloned().unwrap_or(json!(""));
    let applied = old.pointer("/status/currentVolumeAttributesClassName").is_some();
    if applied && class(old) != class(new) && class(new) == "" {
        let why =
            "update to nil or an empty string is forbidden when status.currentVolumeAttributesClassName is not nil";
        findings.forbidden("spec.volumeAttributesClassName", why);
    }
}

/// The part of a claim's spec that may not change, given the claim before.
fn comparable(claim: &Value, old: &Value, bound: bool) -> Value {
    let mut spec = claim.get("spec").cloned().unwrap_or_default();
    let Some(fields) = spec.as_object_mut() else { return spec };
    let unset = |path: &str| old.pointer(path).and_then(Value::as_str).unwrap_or_default().is_empty();
    if unset("/spec/volumeName") {
        fields.remove("volumeName");
    }
    // A claim without any class may get one later (retroactive default class).
    if old.pointer("/spec/storageClassName").is_none() && unset(BETA_CLASS) {
        fields.remove("storageClassName");
    }
    if bound {
        fields.remove("volumeAttributesClassName");
        if let Some(requests) =
            fields.get_mut("resources").and_then(|it| it.get_mut("requests")).and_then(Value::as_object_mut)
        {
            requests.remove("storage");
        }
    }
    spec
}
