//! Claims filled from other claims and from snapshots, and what protects those meanwhile.

use crate::support::api::{VOLUMES, text};
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::plane::Plane;
use crate::support::wait::{SOON, holds_for, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const CLONE_PROTECTION: &str = "provisioner.storage.kubernetes.io/cloning-protection";
const SNAPSHOT_PROTECTION: &str = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";
const CONTENTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";

fn has_finalizer(object: &Value, name: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}

/// What the driver was asked to fill the claim's volume from.
fn source_asked_for(world: &World, driver: &Driver, claim: &str) -> Value {
    let volume = text(&world.bound(claim), "/metadata/name").to_owned();
    let calls = driver.calls("CreateVolume");
    calls.iter().find(|call| call.key == volume).expect("the driver made it").request["volumeContentSource"].clone()
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_cloned_claim_stays_until_its_copy_is_made() {
    let world = World::new("clone");
    world.create(class("fast"));
    let driver = Driver::bench(&world).flag("--clone").started();
    let _sidecar = world.sidecar(&driver);
    world.create(claim("source"));
    let source = text(&world.bound("source"), "/spec/csi/volumeHandle").to_owned();
    driver.script(&json!([{"method": "CreateVolume", "before": "3s", "count": 1}]));
    world.create(claim("copy").clone_of("source"));
    wait_until("the driver copies", SOON, || driver.calls("CreateVolume").len() == 2);
    world.api.delete(&world.claim("source"));
    holds_for("the source stays", Duration::from_secs(1), || {
        world.api.find(&world.claim("source")).is_some_and(|claim| has_finalizer(&claim, CLONE_PROTECTION))
    });
    assert_eq!(source_asked_for(&world, &driver, "copy"), json!({"volume": {"volumeId": source}}));
    wait_until("the source goes", SOON, || world.api.find(&world.claim("source")).is_none());
    world.settles_with(&driver, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_snapshot_is_waited_for_and_protected_while_it_is_restored() {
    let world = World::new("snapshot");
    world.create(class("fast"));
    let driver = Driver::bench(&world).flag("--snapshots").started();
    let _sidecar = world.sidecar(&driver);
    let snapshots = format!("/apis/snapshot.storage.k8s.io/v1/namespaces/{}/volumesnapshots", world.name);
    let content = format!("content-{}", world.name);
    let spec = json!({"source": {"volumeSnapshotContentName": content}});
    world.api.create(
        &snapshots,
        &json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
        "metadata": {"name": "monday"}, "spec": spec}),
    );
    let path = format!("{snapshots}/monday");
    let uid = text(&world.api.get(&path), "/metadata/uid").to_owned();
    world.api.create(
        CONTENTS,
        &json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": content},
        "spec": {"driver": world.driver_name(), "deletionPolicy": "Retain", "source": {"snapshotHandle": "snap-7"},
            "volumeSnapshotRef": {"namespace": world.name, "name": "monday", "uid": uid}}}),
    );
    let status = json!({"snapshotHandle": "snap-7", "readyToUse": true, "restoreSize": 1 << 30});
    world.api.merge(&format!("{CONTENTS}/{content}/status"), &json!({"status": status}));
    let status = |ready: bool| json!({"status": {"boundVolumeSnapshotContentName": content, "readyToUse": ready, "restoreSize": "1Gi"}});
    world.api.merge(&format!("{path}/status"), &status(false));

    world.create(claim("small").restored_from("monday").wants("512Mi"));
    world.create(claim("data").restored_from("monday"));
    world.tells("data", "ProvisioningFailed", "monday");
    driver.script(&json!([{"method": "CreateVolume", "before": "2s", "count": 1}]));
    world.api.merge(&format!("{path}/status"), &status(true));
    wait_until("the driver restores", SOON, || driver.calls("CreateVolume").len() == 1);
    assert!(has_finalizer(&world.api.get(&path), SNAPSHOT_PROTECTION), "protected while it is read");
    assert_eq!(source_asked_for(&world, &driver, "data"), json!({"snapshot": {"snapshotId": "snap-7"}}));
    // Who still waits for it keeps it.
    world.tells("small", "ProvisioningFailed", "1073741824");
    assert!(has_finalizer(&world.api.get(&path), SNAPSHOT_PROTECTION));
    world.delete_claim("small");
    wait_until("the protection ends", SOON, || !has_finalizer(&world.api.get(&path), SNAPSHOT_PROTECTION));
    world.settles_with(&driver, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_without_snapshot_types_is_served() {
    let world = World::on(Arc::new(Plane::start("bare-plane", &[("CRDS", "0")])), "bare");
    world.create(class("fast"));
    let driver = Driver::bench(&world).flag("--snapshots").flag("--clone").started();
    let mut sidecar = world.sidecar(&driver);
    world.create(claim("data"));
    world.bound("data");
    world.create(claim("copy").clone_of("data"));
    world.bound("copy");
    world.create(claim("restored").restored_from("nothing"));
    world.tells("restored", "ProvisioningFailed", "nothing");
    world.delete_claim("data");
    world.settles_with(&driver, 1);
    let said = sidecar.said();
    let complaints = said.lines().filter(|line| line.contains("cannot watch")).count();
    assert!(complaints <= 3, "a missing type is told once: {said}");
    assert_eq!(world.api.list(VOLUMES).len(), 1);
}
