//! Rules about the smaller kinds: classes, capacities, CSI nodes and drivers, attachments, leases, secrets.

use super::findings::Findings;
use super::syntax;
use super::volume::{check_driver_name, quantity};
use serde_json::{Map, Value, json};

const PARAMETERS_MAX: usize = 512;
const PARAMETER_BYTES_MAX: usize = 262_144;
/// Content of a secret or config map, in bytes.
const DATA_BYTES_MAX: usize = 1_048_576;

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Checks a storage class.
pub fn storage_class(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    check_provisioner("provisioner", text(new, "provisioner"), findings);
    check_parameters(new, findings);
    findings.one_of("reclaimPolicy", new.get("reclaimPolicy"), &["Delete", "Retain"]);
    findings.one_of("volumeBindingMode", new.get("volumeBindingMode"), &["Immediate", "WaitForFirstConsumer"]);
    let terms = new.get("allowedTopologies").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (at, term) in terms.iter().enumerate() {
        let rules = term.get("matchLabelExpressions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, rule) in rules.iter().enumerate() {
            let field = format!("allowedTopologies[{at}].matchLabelExpressions[{index}]");
            findings.syntax(&format!("{field}.key"), text(rule, "key"), syntax::qualified_name(text(rule, "key")));
            if rule.get("values").and_then(Value::as_array).is_none_or(Vec::is_empty) {
                findings.required(format!("{field}.values"), "");
            }
        }
    }
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        findings.unchanged(field, old, new);
    }
}

fn check_provisioner(field: &str, name: &str, findings: &mut Findings) {
    if name.is_empty() {
        return findings.required(field, "");
    }
    findings.syntax(field, name, syntax::qualified_name(&name.to_ascii_lowercase()));
}

fn check_parameters(new: &Value, findings: &mut Findings) {
    let empty = Map::new();
    let parameters = new.get("parameters").and_then(Value::as_object).unwrap_or(&empty);
    if parameters.len() > PARAMETERS_MAX {
        return findings.too_long("parameters", PARAMETERS_MAX);
    }
    if parameters.contains_key("") {
        findings.invalid("parameters", &json!(""), "field can not be empty.");
    }
    let bytes: usize = parameters.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > PARAMETER_BYTES_MAX {
        findings.too_long("parameters", PARAMETER_BYTES_MAX);
    }
}

/// Checks a volume attributes class.
pub fn attributes_class(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    check_provisioner("driverName", text(new, "driverName"), findings);
    check_parameters(new, findings);
    if new.get("parameters").and_then(Value::as_object).is_none_or(Map::is_empty) {
        findings.required("parameters", "must contain at least one key/value pair");
    }
    for field in ["driverName", "parameters"] {
        if old.is_some_and(|old| old.get(field) != new.get(field)) {
            findings.forbidden(field, &format!("updates to {field} are forbidden."));
        }
    }
}

/// Checks a capacity object.
pub fn capacity(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    findings.syntax(
        "storageClassName",
        text(new, "storageClassName"),
        syntax::subdomain(text(new, "storageClassName")),
    );
    for key in ["capacity", "maximumVolumeSize"] {
        if let Some(size) = new.get(key).filter(|size| quantity(size).is_none_or(|size| size.nanos() < 0)) {
            findings.invalid(key, size, "must be greater than or equal to 0");
        }
    }
    if let Some(labels) = new.pointer("/nodeTopology/matchLabels").and_then(Value::as_object) {
        super::metadata::check_labels(labels, "nodeTopology.matchLabels", findings);
    }
    for field in ["nodeTopology", "storageClassName"] {
        findings.unchanged(field, old, new);
    }
}

/// Checks a CSI node.
pub fn csi_node(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    let drivers = |node: Option<&Value>| {
        node.and_then(|node| node.pointer("/spec/drivers")).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut names: Vec<String> = Vec::new();
    for (at, driver) in drivers(Some(new)).iter().enumerate() {
        let field = format!("spec.drivers[{at}]");
        let name = text(driver, "name");
        check_driver_name(&format!("{field}.name"), name, findings);
        match text(driver, "nodeID").len() {
            0 => findings.required(format!("{field}.nodeID"), ""),
            257.. => findings.invalid(
                format!("{field}.nodeID"),
                &json!(text(driver, "nodeID")),
                "must be 256 characters or less",
            ),
            _ => {}
        }
        if names.iter().any(|known| known == name) {
            findings.duplicate(format!("{field}.name"), &json!(name));
        }
        names.push(name.to_owned());
        let keys = driver.get("topologyKeys").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for key in keys.iter().filter_map(Value::as_str) {
            findings.syntax(&field, key, syntax::qualified_name(key));
        }
    }
    // A registered driver's entry stays as it is, but for the number of attachable volumes.
    let entry = |mut driver: Value| {
        driver.as_object_mut().map(|fields| fields.remove("allocatable"));
        (text(&driver, "name").to_owned(), driver)
    };
    let held: Vec<(String, Value)> = drivers(old).into_iter().map(entry).collect();
    for (name, driver) in drivers(Some(new)).into_iter().map(entry) {
        if held.iter().any(|(known, before)| *known == name && *before != driver) {
            findings.invalid("spec.drivers", &driver, "field is immutable");
        }
    }
}

/// Checks a CSI driver object.
pub fn driver(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    if !new.get("spec").is_some_and(Value::is_object) {
        findings.required("spec", "");
    }
    for field in ["spec.attachRequired", "spec.volumeLifecycleModes"] {
        findings.unchanged(field, old, new);
    }
}

/// Checks an attachment.
pub fn attachment(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    let spec = new.get("spec").cloned().unwrap_or_default();
    check_driver_name("spec.attacher", text(&spec, "attacher"), findings);
    findings.syntax("spec.nodeName", text(&spec, "nodeName"), syntax::subdomain(text(&spec, "nodeName")));
    let source = |key: &str| spec.get("source").is_some_and(|source| source.get(key).is_some());
    match (source("persistentVolumeName"), source("inlineVolumeSpec")) {
        (false, false) => {
            findings.required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName");
        }
        (true, true) => {
            findings.forbidden("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName");
        }
        (true, false) | (false, true) => {}
    }
    findings.unchanged("spec", old, new);
}

/// Checks a lease.
pub fn lease(new: &Value, findings: &mut Findings) {
    let number = |key: &str| new.get("spec").and_then(|spec| spec.get(key)).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        findings.invalid("spec.leaseDurationSeconds", &json!(seconds), "must be greater than 0");
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        findings.invalid("spec.leaseTransitions", &json!(count), "must be greater than or equal to 0");
    }
}

/// Checks a secret; its content never reaches a message.
pub fn secret(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    findings.unchanged("type", old, new);
    let immutable = old.is_some_and(|old| old.get("immutable") == Some(&Value::Bool(true)));
    if data_bytes(new, "data") > DATA_BYTES_MAX * 4 / 3 {
        findings.too_long("data", DATA_BYTES_MAX);
    }
    if immutable && old.is_some_and(|old| old.get("data") != new.get("data")) {
        findings.forbidden("data", "field is immutable when `immutable` is set");
    }
}

/// Checks a config map.
pub fn config_map(new: &Value, findings: &mut Findings) {
    if data_bytes(new, "data") + data_bytes(new, "binaryData") > DATA_BYTES_MAX {
        findings.too_long("[]", DATA_BYTES_MAX);
    }
}

fn data_bytes(object: &Value, key: &str) -> usize {
    let data = object.get(key).and_then(Value::as_object);
    data.into_iter().flatten().filter_map(|(_, value)| value.as_str()).map(str::len).sum()
}

/// Checks an event: it lives where the object is that it tells about, or in `default` for cluster-scoped ones.
pub fn event(new: &Value, findings: &mut Findings) {
    let told = new.pointer("/involvedObject/namespace").and_then(Value::as_str).unwrap_or_default();
    let held = new.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let allowed = if told.is_empty() { matches!(held, "default" | "kube-system") } else { told == held };
    if !allowed {
        findings.invalid("involvedObject.namespace", &json!(told), "does not match event.namespace");
    }
}
