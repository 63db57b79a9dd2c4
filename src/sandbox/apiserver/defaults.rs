//! What the server fills in: defaults, first status, canonical quantities.
//!
//! Pure; the admission part that needs other objects (default class) is in `create`.

use super::resources::{Resource, StatusRule};
use super::validate::quantity::Quantity;
use super::world::set_field;
use serde_json::{Map, Value, json};

/// Prepares a new object.
pub fn on_create(resource: &Resource, object: &mut Value) {
    first_status(resource, object);
    match resource.plural {
        "persistentvolumeclaims" => legacy_source(object),
        "namespaces" => set_field(object, "spec", Some(json!({"finalizers": ["kubernetes"]}))),
        _ => {}
    }
    on_update(resource, object);
}

/// Fills in what may be left out of any version of an object.
pub fn on_update(resource: &Resource, object: &mut Value) {
    match resource.plural {
        "persistentvolumeclaims" => {
            default(object, "spec", "volumeMode", json!("Filesystem"));
            both_sources(object);
            drop_empty_texts(object, "/spec", &["volumeName"]);
            for path in
                ["/spec/resources/requests", "/spec/resources/limits", "/status/capacity", "/status/allocatedResources"]
            {
                canonical(object, path);
            }
        }
        "persistentvolumes" => {
            default(object, "spec", "volumeMode", json!("Filesystem"));
            default(object, "spec", "persistentVolumeReclaimPolicy", json!("Retain"));
            canonical(object, "/spec/capacity");
            drop_empty_texts(object, "/spec", &["storageClassName"]);
            drop_empty_texts(object, "/spec/csi", &["fsType"]);
        }
        "storageclasses" => {
            default(object, "", "reclaimPolicy", json!("Delete"));
            default(object, "", "volumeBindingMode", json!("Immediate"));
        }
        "csidrivers" => csi_driver(object),
        "csistoragecapacities" => {
            canonical_field(object, "capacity");
            canonical_field(object, "maximumVolumeSize");
        }
        "namespaces" => namespace_label(object),
        "secrets" => secret(object),
        "configmaps" => drop_empty(object, "data"),
        "events" => {
            default(object, "", "eventTime", Value::Null);
            default(object, "", "reportingComponent", json!(""));
            default(object, "", "reportingInstance", json!(""));
        }
        "pods" => pod(object),
        "deployments" | "replicasets" | "statefulsets" => default(object, "spec", "replicas", json!(1)),
        _ => {}
    }
}

fn first_status(resource: &Resource, object: &mut Value) {
    let status = match resource.plural {
        "persistentvolumeclaims" | "persistentvolumes" | "pods" => json!({"phase": "Pending"}),
        "namespaces" => json!({"phase": "Active"}),
        "volumeattachments" => json!({"attached": false}),
        // A node brings its status along.
        "nodes" => return,
        _ if resource.status == StatusRule::Alone => return set_field(object, "status", None),
        _ if resource.status == StatusRule::WithMetadata => json!({}),
        _ => return,
    };
    set_field(object, "status", Some(status));
}

fn part<'a>(object: &'a mut Value, part: &str) -> Option<&'a mut Map<String, Value>> {
    if part.is_empty() { object.as_object_mut() } else { object.get_mut(part).and_then(Value::as_object_mut) }
}

fn default(object: &mut Value, of: &str, key: &str, value: Value) {
    if let Some(fields) = part(object, of) {
        let held = fields.entry(key).or_insert(Value::Null);
        if held.is_null() || held == "" {
            *held = value;
        }
    }
}

fn drop_empty(object: &mut Value, key: &str) {
    let empty = object.get(key).and_then(Value::as_object).is_some_and(Map::is_empty);
    if let Some(fields) = object.as_object_mut().filter(|_| empty) {
        fields.remove(key);
    }
}

/// Texts that a typed server does not store when empty.
fn drop_empty_texts(object: &mut Value, path: &str, keys: &[&str]) {
    let Some(fields) = object.pointer_mut(path).and_then(Value::as_object_mut) else { return };
    fields.retain(|key, value| !(keys.contains(&key.as_str()) && value == ""));
}

fn canonical(object: &mut Value, path: &str) {
    let Some(amounts) = object.pointer_mut(path).and_then(Value::as_object_mut) else { return };
    for amount in amounts.values_mut() {
        *amount = canonical_value(amount);
    }
}

fn canonical_field(object: &mut Value, key: &str) {
    if let Some(amount) = object.get_mut(key) {
        *amount = canonical_value(amount);
    }
}

/// The same quantity in its canonical text; what is no quantity stays for the field rules to refuse.
fn canonical_value(amount: &Value) -> Value {
    let text = match amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return other.clone(),
    };
    Quantity::parse(&text).map_or_else(|| amount.clone(), |quantity| json!(quantity.canonical()))
}

/// A new claim's `dataSource` other than a claim or snapshot is dropped unless `dataSourceRef` tells it too.
fn legacy_source(object: &mut Value) {
    let Some(spec) = part(object, "spec") else { return };
    let known = spec.get("dataSource").is_some_and(|source| {
        let text = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default();
        matches!(
            (text("apiGroup"), text("kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        )
    });
    if !known && !spec.contains_key("dataSourceRef") {
        spec.remove("dataSource");
    }
}

/// Either source field is filled from the other, unless the reference crosses namespaces.
fn both_sources(object: &mut Value) {
    let Some(spec) = part(object, "spec") else { return };
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".into(), source);
        }
        (None, Some(mut reference)) => {
            let crosses =
                reference.get("namespace").and_then(Value::as_str).is_some_and(|namespace| !namespace.is_empty());
            if !crosses {
                reference.as_object_mut().map(|fields| fields.remove("namespace"));
                spec.insert("dataSource".into(), reference);
            }
        }
        _ => {}
    }
    // A source in the core group says so with a null.
    for key in ["dataSource", "dataSourceRef"] {
        if let Some(source) = spec.get_mut(key).and_then(Value::as_object_mut) {
            source.entry("apiGroup").or_insert(Value::Null);
        }
    }
}

fn namespace_label(object: &mut Value) {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
    if let Some(metadata) = part(object, "metadata") {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".into(), name);
        }
    }
}

fn csi_driver(object: &mut Value) {
    let defaults = [
        ("attachRequired", json!(true)),
        ("podInfoOnMount", json!(false)),
        ("storageCapacity", json!(false)),
        ("fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
        ("volumeLifecycleModes", json!(["Persistent"])),
        ("requiresRepublish", json!(false)),
        ("seLinuxMount", json!(false)),
    ];
    for (key, value) in defaults {
        default(object, "spec", key, value);
    }
}

fn secret(object: &mut Value) {
    default(object, "", "type", json!("Opaque"));
    let Some(fields) = object.as_object_mut() else { return };
    let Some(Value::Object(plain)) = fields.remove("stringData") else { return };
    let data = fields.entry("data").or_insert_with(|| json!({}));
    if let Some(data) = data.as_object_mut() {
        for (key, value) in plain {
            data.insert(key, json!(base64(value.as_str().unwrap_or_default().as_bytes())));
        }
    }
}

fn pod(object: &mut Value) {
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
        ("securityContext", json!({})),
    ] {
        default(object, "spec", key, value);
    }
}

/// Base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |six: u32| LETTERS.get(six as usize & 63).copied().map_or('=', char::from);
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        text.push(letter(bits >> 18));
        text.push(letter(bits >> 12));
        text.push(if chunk.len() > 1 { letter(bits >> 6) } else { '=' });
        text.push(if chunk.len() > 2 { letter(bits) } else { '=' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::apiserver::resources::by_plural;

    fn created(plural: &str, mut object: Value) -> Value {
        on_create(by_plural(plural).expect("served"), &mut object);
        object
    }

    #[test]
    fn claim_starts_pending_with_file_system_mode() {
        let claim = created(
            "persistentvolumeclaims",
            json!({"spec": {"resources": {"requests": {"storage": "1024Mi"}}}, "status": {"phase": "Bound"}}),
        );
        assert_eq!(claim["status"], json!({"phase": "Pending"}));
        assert_eq!(claim["spec"]["volumeMode"], "Filesystem");
        assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "1Gi");
    }

    #[test]
    fn claim_source_is_told_in_both_fields() {
        let source = json!({"apiGroup": null, "kind": "PersistentVolumeClaim", "name": "a"});
        let claim = created("persistentvolumeclaims", json!({"spec": {"dataSource": source}}));
        assert_eq!(claim["spec"]["dataSourceRef"], source);
        let back = created("persistentvolumeclaims", json!({"spec": {"dataSourceRef": source}}));
        assert_eq!(back["spec"]["dataSource"], source);
    }

    #[test]
    fn source_of_another_namespace_stays_a_reference() {
        let claim = created(
            "persistentvolumeclaims",
            json!({"spec": {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "b"}}}),
        );
        assert_eq!(claim["spec"].get("dataSource"), None);
    }

    #[test]
    fn old_style_source_of_an_unknown_kind_is_dropped() {
        let claim = created(
            "persistentvolumeclaims",
            json!({"spec": {"dataSource": {"apiGroup": "x.io", "kind": "Y", "name": "a"}}}),
        );
        assert_eq!(claim["spec"].get("dataSource"), None);
    }

    #[test]
    fn volume_is_retained_unless_told_otherwise() {
        assert_eq!(
            created("persistentvolumes", json!({"spec": {}}))["spec"]["persistentVolumeReclaimPolicy"],
            "Retain"
        );
    }

    #[test]
    fn class_deletes_and_binds_at_once_unless_told_otherwise() {
        let class = created("storageclasses", json!({}));
        assert_eq!((&class["reclaimPolicy"], &class["volumeBindingMode"]), (&json!("Delete"), &json!("Immediate")));
    }

    #[test]
    fn plain_text_of_a_secret_is_stored_encoded() {
        let secret = created("secrets", json!({"stringData": {"a": "", "b": "x", "c": "xy", "d": "xyz"}}));
        assert_eq!(secret["data"], json!({"a": "", "b": "eA==", "c": "eHk=", "d": "eHl6"}));
        assert_eq!(secret.get("stringData"), None);
    }

    #[test]
    fn custom_resource_starts_without_status() {
        assert_eq!(created("volumesnapshots", json!({"status": {"readyToUse": true}})).get("status"), None);
    }
}
