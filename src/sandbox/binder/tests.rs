//! The rules of the binder, one by one.

use super::claim::sync_claim;
use super::names::{BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER};
use super::objects::{annotation, key, name, phase, text};
use super::plan::{Action, Plan, View};
use super::provision::{default_class, provision};
use super::reclaim;
use super::volume::sync_volume;
use serde_json::{Value, json};
use std::sync::Arc;

fn claim(class: &Value) -> Value {
    json!({
        "metadata": {"namespace": "default", "name": "data", "uid": "u1", "resourceVersion": "7"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": class,
        },
        "status": {"phase": "Pending"},
    })
}

fn volume(name: &str, size: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size},
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "fast",
        },
        "status": {"phase": "Available"},
    })
}

/// A volume as the sidecar saves it for the claim.
fn provisioned() -> Value {
    let mut volume = volume("pvc-u1", "2Gi");
    volume["metadata"]["annotations"] = json!({PROVISIONED_BY: "d.example.com"});
    volume["spec"]["claimRef"] = json!({"namespace": "default", "name": "data", "uid": "u1"});
    volume["spec"]["csi"] = json!({"driver": "d.example.com"});
    volume["status"]["phase"] = json!("Pending");
    volume
}

fn class(name: &str, mode: &str) -> Value {
    json!({"metadata": {"name": name}, "provisioner": "d.example.com", "volumeBindingMode": mode})
}

fn view(claims: &[Value], volumes: &[Value], classes: &[Value]) -> View {
    let named = |objects: &[Value]| objects.iter().map(|it| (name(it).to_owned(), Arc::new(it.clone()))).collect();
    View {
        claims: claims.iter().map(|it| (key(it), Arc::new(it.clone()))).collect(),
        volumes: named(volumes),
        classes: named(classes),
        ..View::default()
    }
}

fn reasons(plan: &Plan) -> Vec<&str> {
    let reason = |action: &Action| if let Action::Tell(note) = action { Some(note.reason) } else { None };
    plan.actions.iter().filter_map(reason).collect::<Vec<&'static str>>()
}

#[test]
fn claim_of_a_class_starts_provisioning_and_its_phase_is_left_alone() {
    let view = view(&[claim(&json!("fast"))], &[], &[class("fast", "Immediate")]);
    assert_eq!(sync_claim(&view, "default/data").actions, [Action::Provision("default/data".into())]);
}

#[test]
fn provisioning_names_the_provisioner_in_both_annotations_and_says_so() {
    let plan = provision(&view(&[claim(&json!("fast"))], &[], &[class("fast", "Immediate")]), "default/data");
    let Some(Action::WriteClaim(claim)) = plan.actions.first() else { panic!("{plan:?}") };
    assert_eq!(annotation(claim, STORAGE_PROVISIONER), Some("d.example.com"));
    assert_eq!(annotation(claim, "volume.beta.kubernetes.io/storage-provisioner"), Some("d.example.com"));
    assert_eq!(reasons(&plan), ["ExternalProvisioning"]);
}

#[test]
fn claim_that_names_its_provisioner_already_is_not_written_again() {
    let mut named = claim(&json!("fast"));
    named["metadata"]["annotations"] = json!({STORAGE_PROVISIONER: "d.example.com"});
    let plan = provision(&view(&[named], &[], &[class("fast", "Immediate")]), "default/data");
    assert!(matches!(plan.actions.as_slice(), [Action::Tell(_)]), "{plan:?}");
}

#[test]
fn missing_class_is_told_and_is_no_error() {
    let plan = provision(&view(&[claim(&json!("fast"))], &[], &[]), "default/data");
    assert_eq!((reasons(&plan), plan.error.as_deref()), (vec!["ProvisioningFailed"], None));
}

#[test]
fn late_binding_waits_for_the_node_and_goes_on_with_it() {
    let late = class("fast", "WaitForFirstConsumer");
    let plan = sync_claim(
        &view(&[claim(&json!("fast"))], &[volume("free", "1Gi")], std::slice::from_ref(&late)),
        "default/data",
    );
    assert_eq!(reasons(&plan), ["WaitForFirstConsumer"], "a free volume is the scheduler's choice");
    let mut chosen = claim(&json!("fast"));
    chosen["metadata"]["annotations"] = json!({SELECTED_NODE: "node"});
    let plan = sync_claim(&view(&[chosen], &[], &[late]), "default/data");
    assert_eq!(plan.actions, [Action::Provision("default/data".into())]);
}

#[test]
fn provisioned_volume_is_bound_with_three_writes_and_gets_no_mark() {
    let plan =
        sync_claim(&view(&[claim(&json!("fast"))], &[provisioned()], &[class("fast", "Immediate")]), "default/data");
    let [Action::WriteVolumeStatus(volume), Action::WriteClaim(named), Action::WriteClaimStatus(bound)] =
        plan.actions.as_slice()
    else {
        panic!("{plan:?}")
    };
    assert_eq!((phase(volume), annotation(volume, BOUND_BY_CONTROLLER)), ("Bound", None));
    assert_eq!(text(named, "/spec/volumeName"), "pvc-u1");
    assert_eq!((annotation(named, BIND_COMPLETED), annotation(named, BOUND_BY_CONTROLLER)), (Some("yes"), Some("yes")));
    assert_eq!((phase(bound), text(bound, "/status/capacity/storage")), ("Bound", "2Gi"));
    assert_eq!(bound["status"]["accessModes"], json!(["ReadWriteOnce"]));
}

#[test]
fn smallest_free_volume_that_is_large_enough_is_reserved_with_the_mark() {
    let volumes = [volume("a", "10Gi"), volume("b", "2Gi"), volume("c", "500Mi")];
    let plan = sync_claim(&view(&[claim(&json!("fast"))], &volumes, &[class("fast", "Immediate")]), "default/data");
    let Some(Action::WriteVolume(reserved)) = plan.actions.first() else { panic!("{plan:?}") };
    assert_eq!((name(reserved), text(reserved, "/spec/claimRef/uid")), ("b", "u1"));
    assert_eq!(annotation(reserved, BOUND_BY_CONTROLLER), Some("yes"));
}

#[test]
fn claim_without_a_class_gets_the_newest_default_one() {
    let marked = |name: &str, time: &str| {
        let mut class = class(name, "Immediate");
        class["metadata"]["creationTimestamp"] = json!(time);
        class["metadata"]["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        class
    };
    let view = view(
        &[claim(&Value::Null)],
        &[],
        &[marked("old", "2020-01-01T00:00:00Z"), marked("new", "2021-01-01T00:00:00Z")],
    );
    assert_eq!(default_class(&view), Some("new"));
    let plan = sync_claim(&view, "default/data");
    let [Action::WriteClaim(written)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert_eq!(text(written, "/spec/storageClassName"), "new");
}

#[test]
fn claim_with_an_empty_class_never_gets_a_default() {
    let mut default = class("fast", "Immediate");
    default["metadata"]["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let plan = sync_claim(&view(&[claim(&json!(""))], &[], &[default]), "default/data");
    assert_eq!(reasons(&plan), ["FailedBinding"]);
}

#[test]
fn bound_claim_whose_volume_is_gone_is_lost_and_keeps_no_capacity() {
    let mut bound = claim(&json!("fast"));
    bound["metadata"]["annotations"] = json!({BIND_COMPLETED: "yes"});
    bound["spec"]["volumeName"] = json!("pvc-u1");
    bound["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
    let plan = sync_claim(&view(&[bound], &[], &[]), "default/data");
    let Some(Action::WriteClaimStatus(lost)) = plan.actions.first() else { panic!("{plan:?}") };
    assert_eq!((phase(lost), lost["status"].get("capacity")), ("Lost", None));
    assert_eq!(reasons(&plan), ["ClaimLost"]);
}

#[test]
fn volume_that_the_claim_names_must_fit() {
    let mut named = claim(&json!("fast"));
    named["spec"]["volumeName"] = json!("small");
    let plan = sync_claim(&view(&[named], &[volume("small", "1Mi")], &[]), "default/data");
    assert_eq!(reasons(&plan), ["VolumeMismatch"]);
}

#[test]
fn saved_volume_wakes_its_claim_and_keeps_its_phase() {
    let plan = sync_volume(&view(&[claim(&json!("fast"))], &[provisioned()], &[]), "pvc-u1");
    assert_eq!(plan.actions, [Action::WakeClaim("default/data".into())]);
}

#[test]
fn volume_is_released_when_its_claim_is_gone_or_another_of_that_name() {
    let mut other = claim(&json!("fast"));
    other["metadata"]["uid"] = json!("u2");
    for claims in [vec![], vec![other]] {
        let plan = sync_volume(&view(&claims, &[provisioned()], &[]), "pvc-u1");
        let [Action::WriteVolumeStatus(released), Action::Delete(_)] = plan.actions.as_slice() else {
            panic!("{plan:?}")
        };
        assert_eq!(phase(released), "Released");
    }
}

#[test]
fn released_volume_of_a_driver_is_left_to_its_sidecar() {
    assert_eq!(reclaim::delete(&view(&[], &[provisioned()], &[]), "pvc-u1"), Plan::default());
}

#[test]
fn retained_volume_stays_released() {
    let mut kept = provisioned();
    kept["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
    kept["status"]["phase"] = json!("Released");
    assert_eq!(sync_volume(&view(&[], &[kept], &[]), "pvc-u1"), Plan::default());
}

#[test]
fn in_tree_volume_that_nobody_can_delete_fails_once_with_the_reason() {
    let mut in_tree = volume("old", "1Gi");
    in_tree["spec"]["claimRef"] = json!({"namespace": "default", "name": "data", "uid": "u1"});
    in_tree["status"]["phase"] = json!("Released");
    let plan = reclaim::delete(&view(&[], std::slice::from_ref(&in_tree), &[]), "old");
    assert_eq!(reasons(&plan), ["VolumeFailedDelete"]);
    in_tree["status"]["phase"] = json!("Failed");
    assert_eq!(reclaim::delete(&view(&[], &[in_tree], &[]), "old"), Plan::default());
}

#[test]
fn second_volume_of_one_claim_is_freed_or_deleted() {
    let mut bound = claim(&json!("fast"));
    bound["spec"]["volumeName"] = json!("other");
    let plan = sync_volume(&view(std::slice::from_ref(&bound), &[provisioned()], &[]), "pvc-u1");
    assert!(matches!(plan.actions.as_slice(), [Action::WriteVolumeStatus(_), Action::Delete(_)]), "{plan:?}");
    let mut by_hand = provisioned();
    by_hand["metadata"] = json!({"name": "pvc-u1"});
    let plan = sync_volume(&view(&[bound], &[by_hand], &[]), "pvc-u1");
    let Some(Action::WriteVolume(freed)) = plan.actions.first() else { panic!("{plan:?}") };
    assert_eq!(freed.pointer("/spec/claimRef/uid"), None);
    assert_eq!(text(freed, "/spec/claimRef/name"), "data");
}
