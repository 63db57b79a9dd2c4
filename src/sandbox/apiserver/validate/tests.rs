//! One test per rule that clients of storage objects meet.

use super::*;
use crate::sandbox::apiserver::resources::by_plural;
use serde_json::json;

fn refused(plural: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    match object(by_plural(plural).expect("served"), new, old) {
        Ok(()) => Vec::new(),
        Err(refusal) => {
            assert_eq!(refusal.code(), 422);
            refusal.details.causes.into_iter().map(|cause| cause.field).collect()
        }
    }
}

fn volume() -> Value {
    json!({"metadata": {"name": "v"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
        "csi": {"driver": "d.example.org", "volumeHandle": "h"}}})
}

fn claim() -> Value {
    json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Pending"}})
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    let (parent, key) = path.rsplit_once('/').expect("a path");
    object.pointer_mut(parent).and_then(Value::as_object_mut).expect("a map").insert(key.to_owned(), value);
    object
}

fn without(mut object: Value, path: &str) -> Value {
    let (parent, key) = path.rsplit_once('/').expect("a path");
    object.pointer_mut(parent).and_then(Value::as_object_mut).expect("a map").remove(key);
    object
}

#[test]
fn good_volume_and_claim_pass() {
    assert_eq!(refused("persistentvolumes", &volume(), None), Vec::<String>::new());
    assert_eq!(refused("persistentvolumeclaims", &claim(), None), Vec::<String>::new());
}

#[test]
fn volume_needs_capacity_above_zero() {
    assert_eq!(
        refused("persistentvolumes", &with(volume(), "/spec/capacity", json!({"storage": "0"})), None),
        ["spec.capacity[storage]"]
    );
    assert_eq!(
        refused("persistentvolumes", &without(volume(), "/spec/capacity"), None),
        ["spec.capacity", "spec.capacity"]
    );
}

#[test]
fn volume_needs_access_modes() {
    assert_eq!(
        refused("persistentvolumes", &with(volume(), "/spec/accessModes", json!([])), None),
        ["spec.accessModes"]
    );
    assert_eq!(
        refused("persistentvolumes", &with(volume(), "/spec/accessModes", json!(["Some"])), None),
        ["spec.accessModes"]
    );
}

#[test]
fn volume_has_exactly_one_source() {
    assert_eq!(refused("persistentvolumes", &without(volume(), "/spec/csi"), None), ["spec"]);
    assert_eq!(
        refused("persistentvolumes", &with(volume(), "/spec/nfs", json!({"server": "s", "path": "/"})), None),
        ["spec.csi"]
    );
}

#[test]
fn csi_volume_needs_driver_and_handle() {
    assert_eq!(
        refused("persistentvolumes", &with(volume(), "/spec/csi", json!({})), None),
        ["spec.csi.driver", "spec.csi.volumeHandle"]
    );
}

#[test]
fn csi_secret_reference_needs_both_names() {
    let bad = with(volume(), "/spec/csi/nodePublishSecretRef", json!({"name": "a"}));
    assert_eq!(refused("persistentvolumes", &bad, None), ["spec.csi.nodePublishSecretRef.namespace"]);
}

#[test]
fn node_affinity_must_be_made_of_labels() {
    let rule = json!({"key": "bad key", "operator": "In", "values": ["-"]});
    let bad = with(
        volume(),
        "/spec/nodeAffinity",
        json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}),
    );
    let at = "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0]";
    assert_eq!(refused("persistentvolumes", &bad, None), [format!("{at}.key"), format!("{at}.values[0]")]);
}

#[test]
fn source_and_mode_of_a_volume_cannot_change() {
    let other = with(volume(), "/spec/csi/volumeHandle", json!("other"));
    assert_eq!(refused("persistentvolumes", &other, Some(&volume())), ["spec.persistentvolumesource"]);
    let block = with(volume(), "/spec/volumeMode", json!("Block"));
    assert_eq!(refused("persistentvolumes", &block, Some(&volume())), ["volumeMode"]);
}

#[test]
fn expand_secret_of_a_volume_may_be_added_later() {
    let later = with(volume(), "/spec/csi/controllerExpandSecretRef", json!({"name": "a", "namespace": "b"}));
    assert_eq!(refused("persistentvolumes", &later, Some(&volume())), Vec::<String>::new());
}

#[test]
fn claim_needs_size_and_modes() {
    assert_eq!(
        refused("persistentvolumeclaims", &without(claim(), "/spec/resources"), None),
        ["spec.resources[storage]"]
    );
    assert_eq!(refused("persistentvolumeclaims", &without(claim(), "/spec/accessModes"), None), ["spec.accessModes"]);
}

#[test]
fn claim_spec_cannot_change_but_for_its_first_volume_name() {
    assert_eq!(
        refused("persistentvolumeclaims", &with(claim(), "/spec/volumeName", json!("v")), Some(&claim())),
        Vec::<String>::new()
    );
    let bound = with(claim(), "/spec/volumeName", json!("v"));
    assert_eq!(refused("persistentvolumeclaims", &claim(), Some(&bound)), ["spec"]);
    assert_eq!(
        refused("persistentvolumeclaims", &with(claim(), "/spec/volumeMode", json!("Block")), Some(&claim())),
        ["spec"]
    );
}

#[test]
fn only_a_bound_claim_may_grow() {
    let bigger = |claim: Value| with(claim, "/spec/resources/requests/storage", json!("2Gi"));
    assert_eq!(refused("persistentvolumeclaims", &bigger(claim()), Some(&claim())), ["spec"]);
    let bound = with(claim(), "/status", json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}));
    assert_eq!(refused("persistentvolumeclaims", &bigger(bound.clone()), Some(&bound)), Vec::<String>::new());
}

#[test]
fn claim_without_class_may_get_one_later() {
    let later = with(claim(), "/spec/storageClassName", json!("fast"));
    assert_eq!(refused("persistentvolumeclaims", &later, Some(&claim())), Vec::<String>::new());
    assert_eq!(
        refused("persistentvolumeclaims", &with(claim(), "/spec/storageClassName", json!("slow")), Some(&later)),
        ["spec"]
    );
}

#[test]
fn snapshot_has_exactly_one_source() {
    let snapshot = |source: Value| json!({"metadata": {"name": "s"}, "spec": {"source": source}});
    assert_eq!(refused("volumesnapshots", &snapshot(json!({})), None), ["spec.source"]);
    assert_eq!(
        refused("volumesnapshots", &snapshot(json!({"persistentVolumeClaimName": "c"})), None),
        Vec::<String>::new()
    );
}

#[test]
fn keys_of_labels_annotations_and_finalizers_are_checked() {
    let metadata =
        json!({"name": "a", "labels": {"x y": "1", "ok": "-"}, "annotations": {"/b": ""}, "finalizers": ["plain"]});
    let fields = ["metadata.labels", "metadata.labels", "metadata.annotations", "metadata.finalizers[0]"];
    let mut found = refused("configmaps", &json!({"metadata": metadata}), None);
    found.sort();
    let mut wanted = fields.map(str::to_owned).to_vec();
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn class_settings_cannot_change() {
    let class = json!({"metadata": {"name": "s"}, "provisioner": "d.example.org", "parameters": {"a": "1"}});
    let other = with(class.clone(), "/parameters", json!({"a": "2"}));
    assert_eq!(refused("storageclasses", &other, Some(&class)), ["parameters"]);
}

#[test]
fn registered_driver_of_a_node_stays_as_it_is() {
    let node = |id: &str| json!({"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "d", "nodeID": id}]}});
    assert_eq!(refused("csinodes", &node("b"), Some(&node("a"))), ["spec.drivers"]);
}

#[test]
fn object_larger_than_the_store_takes_is_refused() {
    let big = json!({"metadata": {"name": "a"}, "more": {"x": "y".repeat(OBJECT_BYTES_MAX)}});
    assert_eq!(object(by_plural("configmaps").expect("served"), &big, None).map_err(|it| it.code()), Err(500));
}

#[test]
fn config_map_holds_one_mebibyte() {
    let map = |bytes: usize| json!({"metadata": {"name": "a"}, "data": {"x": "y".repeat(bytes)}});
    assert_eq!(refused("configmaps", &map(1_048_576), None), Vec::<String>::new());
    assert_eq!(refused("configmaps", &map(1_048_577), None), ["[]"]);
}

#[test]
fn event_lives_with_what_it_tells_about() {
    let event = |of: &str| json!({"metadata": {"name": "e", "namespace": "n"}, "involvedObject": {"namespace": of}});
    assert_eq!(refused("events", &event("n"), None), Vec::<String>::new());
    assert_eq!(refused("events", &event("m"), None), ["involvedObject.namespace"]);
}
