//! Rules about persistent volumes.

use super::claim::check_access_modes;
use super::findings::Findings;
use super::quantity::Quantity;
use super::syntax;
use serde_json::{Map, Value, json};

/// The names under which a volume's source may stand in the spec, in the order in which the real server looks.
pub const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Checks a volume; with `old` also what may not change.
pub fn check(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    let empty = Map::new();
    let spec = new.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    check_access_modes(spec, "", findings);
    check_capacity(spec, findings);
    findings.one_of(
        "spec.persistentVolumeReclaimPolicy",
        spec.get("persistentVolumeReclaimPolicy"),
        &["Delete", "Recycle", "Retain"],
    );
    findings.one_of("spec.volumeMode", spec.get("volumeMode"), &["Block", "Filesystem"]);
    if let Some(affinity) = spec.get("nodeAffinity") {
        check_affinity(affinity, findings);
    }
    check_source(spec, findings);
    let class = spec.get("storageClassName").and_then(Value::as_str).unwrap_or_default();
    if !class.is_empty() {
        findings.syntax("spec.storageClassName", class, syntax::subdomain(class));
    }
    match spec.get("volumeAttributesClassName").and_then(Value::as_str) {
        Some("") => findings.required("spec.volumeAttributesClassName", "an empty string is disallowed"),
        Some(class) => {
            findings.syntax("spec.volumeAttributesClassName", class, syntax::subdomain(class));
            if !spec.contains_key("csi") {
                findings.required("spec.csi", "has to be specified when using volumeAttributesClassName");
            }
        }
        None => {}
    }
    if let Some(held) = old.and_then(|old| old.get("spec")).and_then(Value::as_object) {
        check_change(held, spec, findings);
    }
}

fn check_capacity(spec: &Map<String, Value>, findings: &mut Findings) {
    let empty = Map::new();
    let capacity = spec.get("capacity").and_then(Value::as_object).unwrap_or(&empty);
    if capacity.is_empty() {
        findings.required("spec.capacity", "");
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        findings.unsupported("spec.capacity", spec.get("capacity").unwrap_or(&Value::Null), &["storage"]);
    }
    for (key, value) in capacity {
        check_positive(&format!("spec.capacity[{key}]"), value, findings);
    }
}

/// The value is a quantity above zero.
pub fn check_positive(field: &str, value: &Value, findings: &mut Findings) {
    match quantity(value) {
        Some(found) if found.nanos() > 0 => {}
        Some(_) => findings.invalid(field, value, "must be greater than zero"),
        None => findings.invalid(field, value, "must be a valid resource quantity"),
    }
}

/// Reads a quantity from a text or a number.
pub fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn check_source(spec: &Map<String, Value>, findings: &mut Findings) {
    let found: Vec<&str> = SOURCES.into_iter().filter(|source| spec.contains_key(*source)).collect();
    if found.is_empty() {
        findings.required("spec", "must specify a volume type");
    }
    for extra in found.iter().skip(1) {
        findings.forbidden(format!("spec.{extra}"), "may not specify more than 1 volume type");
    }
    if spec.contains_key("local") && !spec.contains_key("nodeAffinity") {
        findings.required("spec.nodeAffinity", "Local volume requires node affinity");
    }
    let Some(csi) = spec.get("csi") else { return };
    let driver = csi.get("driver").and_then(Value::as_str).unwrap_or_default();
    check_driver_name("spec.csi.driver", driver, findings);
    if csi.get("volumeHandle").and_then(Value::as_str).unwrap_or_default().is_empty() {
        findings.required("spec.csi.volumeHandle", "");
    }
    let references =
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];
    for key in references {
        let Some(reference) = csi.get(key) else { continue };
        for part in ["name", "namespace"] {
            let field = format!("spec.csi.{key}.{part}");
            match reference.get(part).and_then(Value::as_str).unwrap_or_default() {
                "" => findings.required(field, ""),
                text if part == "name" => findings.syntax(&field, text, syntax::subdomain(text)),
                text => findings.syntax(&field, text, syntax::label(text)),
            }
        }
    }
}

/// The name of a CSI driver.
pub fn check_driver_name(field: &str, name: &str, findings: &mut Findings) {
    if name.is_empty() {
        return findings.required(field, "");
    }
    if name.len() > 63 {
        findings.too_long(field, 63);
    }
    findings.syntax(field, name, syntax::subdomain(&name.to_ascii_lowercase()));
}

fn check_affinity(affinity: &Value, findings: &mut Findings) {
    let Some(required) = affinity.get("required") else {
        return findings.required("spec.nodeAffinity.required", "must specify required node constraints");
    };
    let field = "spec.nodeAffinity.required.nodeSelectorTerms";
    let terms = required.get("nodeSelectorTerms").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if terms.is_empty() {
        findings.required(field, "must have at least one node selector term");
    }
    for (at, term) in terms.iter().enumerate() {
        for list in ["matchExpressions", "matchFields"] {
            let rules = term.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for (index, rule) in rules.iter().enumerate() {
                check_requirement(
                    &format!("{field}[{at}].{list}[{index}]"),
                    rule,
                    list == "matchExpressions",
                    findings,
                );
            }
        }
    }
}

fn check_requirement(field: &str, rule: &Value, is_label: bool, findings: &mut Findings) {
    let values = rule.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let in_values = format!("{field}.values");
    match rule.get("operator").and_then(Value::as_str).unwrap_or_default() {
        "In" | "NotIn" if values.is_empty() => {
            findings.required(in_values.clone(), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            findings.forbidden(in_values.clone(), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Gt" | "Lt" if values.len() != 1 => {
            findings.required(in_values.clone(), "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => findings.invalid(format!("{field}.operator"), &json!(other), "not a valid selector operator"),
    }
    if is_label {
        let key = rule.get("key").and_then(Value::as_str).unwrap_or_default();
        findings.syntax(&format!("{field}.key"), key, syntax::qualified_name(key));
        for (at, value) in values.iter().enumerate() {
            let text = value.as_str().unwrap_or_default();
            findings.syntax(&format!("{in_values}[{at}]"), text, syntax::label_value(text));
        }
    }
}

fn check_change(held: &Map<String, Value>, spec: &Map<String, Value>, findings: &mut Findings) {
    let source = |spec: &Map<String, Value>, forget: bool| -> Map<String, Value> {
        let mut found: Map<String, Value> =
            SOURCES.into_iter().filter_map(|key| Some((key.to_owned(), spec.get(key)?.clone()))).collect();
        if let Some(csi) = found.get_mut("csi").and_then(Value::as_object_mut).filter(|_| forget) {
            csi.remove("controllerExpandSecretRef");
        }
        found
    };
    // This one reference may still be set when it is absent.
    let may_set = held.get("csi").is_some_and(|csi| csi.get("controllerExpandSecretRef").is_none());
    if source(held, may_set) != source(spec, may_set) {
        findings.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation");
    }
    if held.get("volumeMode") != spec.get("volumeMode") {
        findings.invalid("volumeMode", spec.get("volumeMode").unwrap_or(&Value::Null), "field is immutable");
    }
    let affinity = held.get("nodeAffinity");
    if affinity.is_some() && affinity != spec.get("nodeAffinity") {
        let told = spec.get("nodeAffinity").unwrap_or(&Value::Null);
        findings.invalid("nodeAffinity", told, "field is immutable, except for updating from beta label to GA");
    }
    if held.contains_key("volumeAttributesClassName") && !spec.contains_key("volumeAttributesClassName") {
        findings.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
    }
}
