//! A world with one class, and the waits that all tests use.

use csi_provisioner::csi::proto::v1::CreateSnapshotRequest;
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::driver::script::{Fault, Rule};
use csi_provisioner::sandbox::simulate::calls::{Called, End};
use csi_provisioner::sandbox::simulate::check::Finding;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, VOLUMES, claim};
use csi_provisioner::sandbox::simulate::{Options, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// Long enough for every back-off and every sweep.
pub const LONG: Duration = Duration::from_secs(20 * 60);
/// The name of the class of every world.
pub const CLASS: &str = "fast";
/// gRPC codes.
pub const UNAVAILABLE: i32 = 14;
pub const INTERNAL: i32 = 13;
pub const INVALID_ARGUMENT: i32 = 3;
pub const RESOURCE_EXHAUSTED: i32 = 8;
pub const UNAUTHENTICATED: i32 = 16;

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A world whose sidecars get these flags besides a generous limit of API calls.
pub fn world_with(driver: DriverOptions, flags: &[&str]) -> World {
    let generous = ["--kube-api-qps=1000", "--kube-api-burst=1000"];
    let flags = generous.iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
    let world = World::new(Options { seed: 1, driver, flags, alone: false });
    world.add_class(CLASS);
    world
}

pub fn world(flags: &[&str]) -> World {
    world_with(DriverOptions::default(), flags)
}

/// A driver that can do everything.
pub fn capable() -> DriverOptions {
    DriverOptions { all_capabilities: true, ..DriverOptions::default() }
}

/// A driver with topology.
pub fn with_places() -> DriverOptions {
    DriverOptions { segments: BTreeMap::from([("zone".to_owned(), "a".to_owned())]), ..DriverOptions::default() }
}

/// The next `times` calls of a method go wrong.
pub fn script(world: &World, method: &'static str, times: u32, fault: Fault) {
    world.driver.script().add(Rule { method, subject: String::new(), times, fault });
}

pub fn fails(code: i32) -> Fault {
    Fault::FailBefore(code, "scripted".to_owned())
}

/// Lets the world come to rest, and asserts that nothing is wrong with it then.
pub async fn comes_to_rest(world: &World) {
    sleep(LONG).await;
    assert_eq!(world.findings(), Vec::<Finding>::new(), "\n{}", world.trace.text());
}

/// Waits for it, and shows what happened if it does not come.
pub async fn comes(world: &World, limit: Duration, what: &str, holds: impl FnMut(&World) -> bool) {
    assert!(
        world.until(limit, holds).await,
        "{what} does not come within {limit:?}\n{}\n{}",
        world.trace.text(),
        told(world)
    );
}

/// A claim that is bound.
pub async fn bound(world: &World, name: &str) {
    world.add_claim(name, CLASS);
    comes(world, secs(30), "the bound claim", |world| world.is_bound(name)).await;
}

/// Nothing is left in cluster and backend.
pub fn empty(world: &World) -> bool {
    world.all(CLAIMS).is_empty() && world.all(VOLUMES).is_empty() && world.volumes_in_backend() == 0
}

/// Calls of a method that the driver answered with OK.
pub fn succeeded(world: &World, method: &str) -> Vec<Called> {
    let calls = world.calls.of(method).into_iter();
    calls.filter(|call| matches!(call.end, Some((_, End::Code(0))))).collect()
}

/// Whether all calls of a method were the same, byte for byte.
pub fn all_equal(calls: &[Called]) -> bool {
    calls.windows(2).all(|pair| pair[0].digest == pair[1].digest)
}

/// A class with these fields in place of the usual ones.
pub fn add_class(world: &World, name: &str, fields: &Value) {
    let mut class = csi_provisioner::sandbox::simulate::objects::class(name, world.driver.name());
    for (key, value) in fields.as_object().expect("fields") {
        class[key] = value.clone();
    }
    world.add("storageclasses", class);
}

/// A claim with these fields in its spec besides the usual ones.
pub fn add_claim(world: &World, name: &str, class: &str, spec: &Value) -> Value {
    let mut object = claim(name, class);
    for (key, value) in spec.as_object().expect("fields") {
        object["spec"][key] = value.clone();
    }
    world.add(CLAIMS, object)
}

/// A node in a zone, with the driver registered on it.
pub fn add_node(world: &World, name: &str, zone: &str) {
    world.add("nodes", json!({"metadata": {"name": name, "labels": {"zone": zone}}}));
    let driver = json!({"name": world.driver.name(), "nodeID": name, "topologyKeys": ["zone"]});
    world.add("csinodes", json!({"metadata": {"name": name}, "spec": {"drivers": [driver]}}));
}

/// An attachment of a volume object to a node.
pub fn attach(world: &World, name: &str, volume: &str) {
    world.add(
        "volumeattachments",
        json!({
            "metadata": {"name": name},
            "spec": {"attacher": world.driver.name(), "nodeName": "n1", "source": {"persistentVolumeName": volume}},
        }),
    );
}

/// Cuts a snapshot of the first volume in the backend, with the objects for it.
pub fn add_snapshot(world: &World) {
    let source = world.driver.backend().volumes().keys().next().cloned().expect("a volume to cut from");
    let request = CreateSnapshotRequest { name: "snap".into(), source_volume_id: source, ..Default::default() };
    let handle = world.driver.backend().create_snapshot(&request).expect("cut").snapshot_id;
    let snapshot = add_with_status(
        world,
        "volumesnapshots",
        json!({
            "metadata": {"name": "snap", "namespace": NAMESPACE},
            "spec": {"source": {"volumeSnapshotContentName": "content"}},
        }),
        json!({"boundVolumeSnapshotContentName": "content", "readyToUse": true, "restoreSize": "1Gi"}),
    );
    add_with_status(
        world,
        "volumesnapshotcontents",
        json!({
            "metadata": {"name": "content"},
            "spec": {
                "driver": world.driver.name(), "deletionPolicy": "Delete", "source": {"snapshotHandle": handle},
                "volumeSnapshotRef": {"namespace": NAMESPACE, "name": "snap", "uid": snapshot["metadata"]["uid"]},
            },
        }),
        json!({"snapshotHandle": handle, "readyToUse": true, "restoreSize": 1_073_741_824}),
    );
}

/// Adds an object and gives it a status, which a creation cannot.
pub fn add_with_status(world: &World, plural: &str, object: Value, status: Value) -> Value {
    let mut stored = world.add(plural, object);
    let namespace = stored["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    stored["status"] = status;
    world.server.update_status(plural, &namespace, stored).expect("status taken")
}

/// What a claim that restores the snapshot has in its spec.
pub fn restore() -> Value {
    json!({"dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "snap"}})
}

/// What a claim that copies another one has in its spec.
pub fn clone_of(claim: &str) -> Value {
    json!({"dataSource": {"kind": "PersistentVolumeClaim", "name": claim}})
}

/// All events, to be shown.
fn told(world: &World) -> String {
    let events = world.all("events");
    let line = |event: &Value| format!("{} {} {}", event["involvedObject"]["name"], event["reason"], event["message"]);
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}
