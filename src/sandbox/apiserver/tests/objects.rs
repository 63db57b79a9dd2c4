//! Objects come, change and go.

use super::*;
use crate::sandbox::apiserver::patch::PatchKind;
use crate::sandbox::apiserver::refusal::{Reason, Refusal};

fn reason<T: std::fmt::Debug>(result: Result<T, Refusal>) -> Option<Reason> {
    result.err().map(|refusal| refusal.reason)
}

fn merge(server: &ApiServer, plural: &str, at: (&str, &str), patch: &Value) -> Result<Value, Refusal> {
    server.patch(plural, at, PatchKind::Merge, patch)
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn same_seed_gives_the_same_objects() {
    let run = || {
        let server = server();
        let prefix = json!({"metadata": {"generateName": "c-"}, "spec": claim("")["spec"]});
        server.create("persistentvolumeclaims", "default", prefix).expect("created")
    };
    assert_eq!(run(), run());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn generated_name_has_five_letters_behind_its_prefix() {
    let prefix = json!({"metadata": {"generateName": "c-"}, "spec": claim("")["spec"]});
    let made = server().create("persistentvolumeclaims", "default", prefix).expect("created");
    let name = made["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("c-") && name.len() == 7, "{name}");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn namespace_must_exist_and_not_be_going_away() {
    let server = server();
    assert_eq!(reason(server.create("configmaps", "shop", json!({"metadata": {"name": "a"}}))), Some(Reason::NotFound));
    server.ensure_namespace("shop");
    let held = json!({"metadata": {"name": "a", "finalizers": ["x.io/y"]}});
    server.create("configmaps", "shop", held).expect("created");
    server.delete("namespaces", "", "shop", &DeleteOptions::default()).expect("deleted");
    assert_eq!(
        reason(server.create("configmaps", "shop", json!({"metadata": {"name": "b"}}))),
        Some(Reason::Forbidden)
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deleted_namespace_takes_its_objects_along_and_waits_for_finalizers() {
    let server = server();
    server.ensure_namespace("shop");
    server.create("configmaps", "shop", json!({"metadata": {"name": "a"}})).expect("created");
    server.create("secrets", "shop", json!({"metadata": {"name": "b", "finalizers": ["x.io/y"]}})).expect("created");
    server.delete("namespaces", "", "shop", &DeleteOptions::default()).expect("deleted");
    assert_eq!(server.list("configmaps", "shop").expect("listed"), Vec::<Value>::new());
    assert_eq!(server.get("namespaces", "", "shop").expect("still there")["status"]["phase"], "Terminating");
    merge(&server, "secrets", ("shop", "b"), &json!({"metadata": {"finalizers": null}})).expect("patched");
    assert_eq!(reason(server.get("namespaces", "", "shop")), Some(Reason::NotFound));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn write_that_changes_nothing_gets_no_revision() {
    let server = server();
    server.create("persistentvolumes", "", volume("v")).expect("created");
    let before = server.revision();
    merge(&server, "persistentvolumes", ("", "v"), &json!({"spec": {"volumeMode": "Filesystem"}})).expect("patched");
    assert_eq!(server.revision(), before);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn main_write_keeps_the_status_and_status_write_keeps_the_rest() {
    let server = server();
    let mut made = server.create("persistentvolumes", "", volume("v")).expect("created");
    made["status"]["phase"] = json!("Bound");
    made["spec"]["storageClassName"] = json!("fast");
    let main = server.update("persistentvolumes", "", made.clone()).expect("updated");
    assert_eq!((&main["status"]["phase"], &main["spec"]["storageClassName"]), (&json!("Pending"), &json!("fast")));
    made["metadata"]["resourceVersion"] = main["metadata"]["resourceVersion"].clone();
    made["spec"]["storageClassName"] = json!("slow");
    let status = server.update_status("persistentvolumes", "", made).expect("updated");
    assert_eq!((&status["status"]["phase"], &status["spec"]["storageClassName"]), (&json!("Bound"), &json!("fast")));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn phase_change_of_a_volume_is_stamped() {
    let server = server();
    server.create("persistentvolumes", "", volume("v")).expect("created");
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    let bound = json!({"status": {"phase": "Bound"}});
    let changed = server.patch_status("persistentvolumes", ("", "v"), PatchKind::Merge, &bound).expect("patched");
    assert_eq!(changed["status"]["lastPhaseTransitionTime"], "1970-01-01T00:01:00Z");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn custom_resource_needs_a_version_to_be_replaced_and_counts_generations() {
    let server = server();
    let snapshot = json!({"metadata": {"name": "s"}, "spec": {"source": {"persistentVolumeClaimName": "c"}}});
    let mut made = server.create("volumesnapshots", "default", snapshot).expect("created");
    let version = made["metadata"]["resourceVersion"].take();
    assert_eq!(reason(server.update("volumesnapshots", "default", made.clone())), Some(Reason::Invalid));
    made["metadata"]["resourceVersion"] = version;
    made["spec"]["volumeSnapshotClassName"] = json!("x");
    let changed = server.update("volumesnapshots", "default", made).expect("updated");
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn strategic_patch_of_a_custom_resource_is_unsupported() {
    let server = server();
    let class = json!({"metadata": {"name": "s"}, "driver": "d", "deletionPolicy": "Delete"});
    server.create("volumesnapshotclasses", "", class).expect("created");
    let patched = server.patch("volumesnapshotclasses", ("", "s"), PatchKind::Strategic, &json!({}));
    assert_eq!(reason(patched), Some(Reason::UnsupportedMediaType));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_without_class_gets_the_newest_default_class() {
    let server = server();
    for name in ["old", "new"] {
        let class = json!({"metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "d"});
        server.create("storageclasses", "", class).expect("created");
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
    }
    let made = server.create("persistentvolumeclaims", "default", claim("c")).expect("created");
    assert_eq!(made["spec"]["storageClassName"], "new");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn protection_finalizers_can_be_switched_off() {
    let server = server();
    server.in_use_protection(false);
    let made = server.create("persistentvolumes", "", volume("v")).expect("created");
    assert_eq!(made["metadata"].get("finalizers"), None);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn finalizer_cannot_be_added_while_the_object_goes() {
    let server = server();
    server.create("persistentvolumes", "", volume("v")).expect("created");
    server.delete("persistentvolumes", "", "v", &DeleteOptions::default()).expect("deleted");
    let added = json!({"metadata": {"finalizers": ["kubernetes.io/pv-protection", "x.io/y"]}});
    assert_eq!(reason(merge(&server, "persistentvolumes", ("", "v"), &added)), Some(Reason::Invalid));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn second_deletion_does_not_move_the_stamp() {
    let server = server();
    server.create("persistentvolumes", "", volume("v")).expect("created");
    let first = server.delete("persistentvolumes", "", "v", &DeleteOptions::default()).expect("deleted");
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    let second = server.delete("persistentvolumes", "", "v", &DeleteOptions::default()).expect("deleted");
    assert_eq!(first, second);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletion_with_another_uid_or_version_is_a_conflict() {
    let server = server();
    server.create("persistentvolumes", "", volume("v")).expect("created");
    let other_uid = DeleteOptions { uid: Some("x".into()), ..DeleteOptions::default() };
    let other_version = DeleteOptions { version: Some("1".into()), ..DeleteOptions::default() };
    for options in [other_uid, other_version] {
        assert_eq!(reason(server.delete("persistentvolumes", "", "v", &options)), Some(Reason::Conflict));
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn pod_on_a_node_waits_for_its_kubelet() {
    let server = server();
    let pod =
        |name: &str, node: Value| json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": []}});
    server.create("pods", "default", pod("placed", json!("n1"))).expect("created");
    server.create("pods", "default", pod("unplaced", Value::Null)).expect("created");
    let delete = |name: &str, grace| {
        server.delete("pods", "default", name, &DeleteOptions { grace_secs: grace, ..DeleteOptions::default() })
    };
    assert!(matches!(delete("unplaced", None), Ok(Deleted::Gone(_))));
    let Ok(Deleted::Waiting(waiting)) = delete("placed", None) else { panic!("a running pod waits") };
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(matches!(delete("placed", Some(0)), Ok(Deleted::Gone(_))));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn only_a_claim_of_a_growing_class_may_grow() {
    let server = server();
    for (name, grows) in [("fixed", false), ("growing", true)] {
        let class = json!({"metadata": {"name": name}, "provisioner": "d", "allowVolumeExpansion": grows});
        server.create("storageclasses", "", class).expect("created");
        let mut wanted = claim(name);
        wanted["spec"]["storageClassName"] = json!(name);
        server.create("persistentvolumeclaims", "default", wanted).expect("created");
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        server.patch_status("persistentvolumeclaims", ("default", name), PatchKind::Merge, &bound).expect("patched");
    }
    let grow = |name: &str| {
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        reason(merge(&server, "persistentvolumeclaims", ("default", name), &more))
    };
    assert_eq!((grow("fixed"), grow("growing")), (Some(Reason::Forbidden), None));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn put_of_an_absent_lease_creates_it() {
    let made = server().update("leases", "default", json!({"metadata": {"name": "l"}, "spec": {}})).expect("created");
    assert_eq!(made["kind"], "Lease");
    let absent = server().update("secrets", "default", json!({"metadata": {"name": "s"}}));
    assert_eq!(reason(absent), Some(Reason::NotFound));
}
