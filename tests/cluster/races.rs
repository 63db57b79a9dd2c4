//! Sources in every order of events (field faults L04, S07, S08, X02), under the sample role: what is copied stays until
//! nobody needs it, and goes within seconds then.

use crate::support::api::{VOLUMES, text};
use crate::support::driver::{Call, Driver};
use crate::support::objects::{claim, class};
use crate::support::sidecar::Sidecar;
use crate::support::snapshot::{has_finalizer, snapshot, unbound};
use crate::support::wait::{SOON, holds_for, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::time::Duration;

const CLONE_PROTECTION: &str = "provisioner.storage.kubernetes.io/cloning-protection";
/// What "within seconds" means on a busy machine.
const SECONDS: Duration = Duration::from_secs(5);

fn started(name: &str, flags: &[&str]) -> (World, Driver, Sidecar) {
    let world = World::new(name);
    world.create(class("fast"));
    let driver = Driver::bench(&world).flag("--clone").flag("--snapshots").started();
    let sidecar = Sidecar::ours(&world, "sidecar", &driver.socket());
    let sidecar = flags.iter().fold(sidecar, |sidecar, flag| sidecar.flag(flag)).started();
    (world, driver, sidecar)
}

fn volume_name(world: &World, claim: &str) -> String {
    format!("pvc-{}", text(&world.api.get(&world.claim(claim)), "/metadata/uid"))
}

/// Creations of a claim's volume.
fn creations(world: &World, driver: &Driver, claim: &str) -> Vec<Call> {
    let name = volume_name(world, claim);
    let mut calls = driver.calls("CreateVolume");
    calls.retain(|call| call.key == name);
    calls
}

fn is_being_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_snapshot_deleted_while_it_is_restored_goes_right_after() {
    let (world, driver, _sidecar) = started("race-snapshot", &[]);
    let monday = snapshot(&world, "monday");
    driver.script(&json!([{"method": "CreateVolume", "before": "2s", "count": 1}]));
    world.create(claim("data").restored_from("monday"));
    wait_until("the driver restores", SOON, || driver.calls("CreateVolume").len() == 1);
    world.api.delete(&monday.path());
    holds_for("the snapshot stays", Duration::from_secs(1), || {
        is_being_deleted(&monday.object()) && monday.is_protected()
    });
    // While it is kept it can be restored, as beside the Go sidecar, and that one is waited for too.
    world.create(claim("late").restored_from("monday"));
    world.bound("late");
    world.bound("data");
    wait_until("the snapshot goes", SECONDS, || !monday.exists());
    world.settles_with(&driver, 2);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_snapshot_that_only_others_keep_is_not_restored_any_more() {
    let (world, driver, _sidecar) = started("race-terminating", &[]);
    let monday = snapshot(&world, "monday");
    let others = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
    world.api.merge(&monday.path(), &json!({"metadata": {"finalizers": [others]}}));
    world.api.delete(&monday.path());
    world.create(claim("late").restored_from("monday"));
    world.tells("late", "ProvisioningFailed", "is being deleted");
    assert!(has_finalizer(&monday.object(), others) && !monday.is_protected());
    holds_for("nothing is made", Duration::from_secs(1), || driver.calls("CreateVolume").is_empty());
    world.api.merge(&monday.path(), &json!({"metadata": {"finalizers": null}}));
    wait_until("the snapshot goes", SECONDS, || !monday.exists());
    world.delete_claim("late");
    world.settles_with(&driver, 0);
}

/// A source of the same name is another source: what was read of the first one must not reach the driver.
#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_clone_of_a_source_that_was_replaced_gets_the_new_content() {
    let (world, driver, _sidecar) = started("race-replaced", &[]);
    let asked = |copy: &str| {
        world.bound(copy);
        creations(&world, &driver, copy)[0].request["volumeContentSource"]["volume"]["volumeId"].clone()
    };
    for copy in ["one", "two"] {
        world.create(claim("source"));
        let handle = text(&world.bound("source"), "/spec/csi/volumeHandle").to_owned();
        world.create(claim(copy).clone_of("source"));
        assert_eq!(asked(copy), handle);
        world.delete_claim("source");
    }
    world.settles_with(&driver, 2);
}

/// The driver does not say whether it restored; claim and snapshot are both deleted meanwhile (external-provisioner#1449).
#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_unresolved_restore_keeps_its_deleted_snapshot_and_leaves_nothing() {
    let (world, driver, _sidecar) = started("race-both", &["--timeout=1s"]);
    let monday = snapshot(&world, "monday");
    driver.script(&json!([{"method": "CreateVolume", "after": "3s"}]));
    world.create(claim("data").restored_from("monday"));
    wait_until("the driver restores", SOON, || !driver.calls("CreateVolume").is_empty());
    world.delete_claim("data");
    world.api.delete(&monday.path());
    holds_for("the snapshot stays", Duration::from_secs(2), || {
        is_being_deleted(&monday.object()) && monday.is_protected()
    });
    driver.script(&json!([]));
    wait_until("the volume was made known and deleted", SOON, || driver.calls("DeleteVolume").len() == 1);
    wait_until("the snapshot goes", SECONDS, || !monday.exists());
    world.settles_with(&driver, 0);
    let calls = driver.calls("CreateVolume");
    assert!(calls.len() >= 2 && calls.iter().all(|call| call.request == calls[0].request), "{calls:#?}");
}

/// Another driver's provisioner sees the same claims come and go, but not what is open here.
#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_sidecar_of_another_driver_leaves_a_restored_snapshot_alone() {
    let (other, others_driver, _others) = started("race-other", &[]);
    other.create(claim("warm"));
    other.bound("warm");
    let (world, driver, _sidecar) = started("race-both-here", &["--timeout=1s"]);
    let monday = snapshot(&world, "monday");
    driver.script(&json!([{"method": "CreateVolume", "after": "2s"}]));
    world.create(claim("data").restored_from("monday"));
    wait_until("the driver restores", SOON, || !driver.calls("CreateVolume").is_empty());
    world.delete_claim("data");
    holds_for("the snapshot stays protected", Duration::from_secs(3), || monday.is_protected());
    driver.script(&json!([]));
    wait_until("the snapshot is free", SECONDS, || !monday.is_protected());
    world.settles_with(&driver, 0);
    other.settles_with(&others_driver, 1);
}

/// Every way in which a restore ends without success.
#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_snapshot_is_free_after_a_restore_that_failed_or_whose_process_was_killed() {
    let (world, driver, mut sidecar) = started("race-failed", &[]);
    let monday = snapshot(&world, "monday");
    driver.script(&json!([{"method": "CreateVolume", "code": "Internal", "message": "disk on fire"}]));
    world.create(claim("failed").restored_from("monday"));
    world.tells("failed", "ProvisioningFailed", "disk on fire");
    assert!(monday.is_protected());
    world.delete_claim("failed");
    wait_until("the snapshot is free after a final error", SECONDS, || !monday.is_protected());

    driver.script(&json!([{"method": "CreateVolume", "before": "1s", "code": "Internal"}]));
    world.create(claim("killed").restored_from("monday"));
    let before = driver.calls("CreateVolume").len();
    wait_until("the driver restores", SOON, || driver.calls("CreateVolume").len() > before);
    sidecar.kill();
    assert!(monday.is_protected());
    world.delete_claim("killed");
    sidecar.start();
    wait_until("the snapshot is free after a kill", SOON, || !monday.is_protected());
    world.settles_with(&driver, 0);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_snapshots_that_become_ready_are_restored() {
    let (world, driver, _sidecar) = started("race-ready", &[]);
    world.create(claim("early").restored_from("later"));
    world.tells("early", "ProvisioningFailed", "does not exist");
    let later = unbound(&world, &world.name, "later");
    world.tells("early", "ProvisioningFailed", "is not bound to a content yet");
    later.bind(false);
    world.tells("early", "ProvisioningFailed", "is not ready to use yet");
    assert!(!later.is_protected(), "nothing is written before all is checked");
    assert!(driver.calls("CreateVolume").is_empty());
    later.bind(true);
    world.bound("early");
    wait_until("the snapshot is free", SECONDS, || !later.is_protected());
    world.settles_with(&driver, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_volume_mode_changes_only_with_the_administrators_word() {
    let (world, driver, _sidecar) = started("race-mode", &[]);
    let monday = snapshot(&world, "monday");
    let permission = |value: Value| {
        let annotation = json!({"snapshot.storage.kubernetes.io/allow-volume-mode-change": value});
        world.api.merge(&monday.content_path(), &json!({"metadata": {"annotations": annotation}}));
    };
    world.create(claim("data").restored_from("monday").block());
    for (value, told) in [(Value::Null, "is not set"), ("yes".into(), "\"yes\""), ("false".into(), "is false")] {
        permission(value);
        world.tells("data", "ProvisioningFailed", told);
    }
    assert!(driver.calls("CreateVolume").is_empty() && !monday.is_protected());
    permission("true".into());
    assert_eq!(text(&world.bound("data"), "/spec/volumeMode"), "Block");
    world.settles_with(&driver, 1);
}

/// external-provisioner#422: too early before, never after.
#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_deleted_clone_source_waits_for_both_clones_and_says_why() {
    let (world, driver, _sidecar) = started("race-clones", &[]);
    world.create(claim("source"));
    world.bound("source");
    world.create(claim("one"));
    world.bound("one");
    world.delete_claim("one");
    // The first clone takes a while, the second fails.
    driver.script(&json!([
        {"method": "CreateVolume", "before": "2s", "count": 1},
        {"method": "CreateVolume", "code": "Internal", "message": "disk on fire"},
    ]));
    world.create(claim("running").clone_of("source"));
    wait_until("the driver copies", SOON, || !creations(&world, &driver, "running").is_empty());
    world.create(claim("failing").clone_of("source"));
    world.tells("failing", "ProvisioningFailed", "disk on fire");
    world.api.delete(&world.claim("source"));
    world.tells("source", "CloneInProgress", "unfinished clone");
    world.bound("running");
    let path = world.claim("source");
    holds_for("the source stays for the other", Duration::from_secs(1), || {
        world.api.find(&path).is_some_and(|source| has_finalizer(&source, CLONE_PROTECTION))
    });
    world.create(claim("late").clone_of("source"));
    world.tells("late", "ProvisioningFailed", "is being deleted");
    world.delete_claim("late");
    world.delete_claim("failing");
    wait_until("the source goes", SECONDS, || world.api.find(&path).is_none());
    world.settles_with(&driver, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_clone_waits_for_a_source_that_is_still_pending() {
    let (world, driver, _sidecar) = started("race-pending", &[]);
    driver.script(&json!([{"method": "CreateVolume", "code": "ResourceExhausted", "message": "full"}]));
    world.create(claim("source"));
    world.tells("source", "ProvisioningFailed", "full");
    world.create(claim("copy").clone_of("source"));
    world.tells("copy", "ProvisioningFailed", "is Pending, not Bound");
    assert!(creations(&world, &driver, "copy").is_empty());
    assert!(!has_finalizer(&world.api.get(&world.claim("source")), CLONE_PROTECTION));
    driver.script(&json!([]));
    let handle = text(&world.bound("source"), "/spec/csi/volumeHandle").to_owned();
    world.bound("copy");
    let source = creations(&world, &driver, "copy")[0].request["volumeContentSource"].clone();
    assert_eq!(source, json!({"volume": {"volumeId": handle}}));
    world.settles_with(&driver, 2);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_clone_of_a_claim_without_its_volume_is_refused() {
    let (world, driver, _sidecar) = started("race-lost", &[]);
    world.create(claim("source"));
    let volume = text(&world.bound("source"), "/metadata/name").to_owned();
    let path = format!("{VOLUMES}/{volume}");
    // An administrator takes the object away, the storage stays.
    world.api.delete(&path);
    world.api.merge(&path, &json!({"metadata": {"finalizers": null}}));
    wait_until("the volume object is gone", SOON, || world.api.find(&path).is_none());
    world.create(claim("copy").clone_of("source"));
    world.tells("copy", "ProvisioningFailed", "\"source\"");
    let events = world.events("copy");
    let told = |words: &str| events.iter().any(|(_, message)| message.contains(words));
    assert!(told("is Lost, not Bound") || told("its volume object does not exist"), "{events:?}");
    holds_for("nothing is made", Duration::from_secs(1), || creations(&world, &driver, "copy").is_empty());
    world.delete_claim("copy");
}
