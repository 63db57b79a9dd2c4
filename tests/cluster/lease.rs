//! Replicas, ours and Go's, that take turns on one Lease.

use crate::support::api::text;
use crate::support::driver::{Call, Driver};
use crate::support::objects::{claim, class};
use crate::support::plane::Plane;
use crate::support::sidecar::Sidecar;
use crate::support::wait::{SOON, eventually, wait_until};
use crate::support::world::World;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DURATION: Duration = Duration::from_secs(6);

fn replica(sidecar: Sidecar) -> Sidecar {
    sidecar
        .flag("--leader-election")
        .flag("--leader-election-namespace=default")
        .flag(&format!("--leader-election-lease-duration={}s", DURATION.as_secs()))
        .flag("--leader-election-renew-deadline=4s")
        .flag("--leader-election-retry-period=1s")
}

fn lease_path(world: &World) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/default/leases/{}", world.driver_name().replace('.', "-"))
}

fn holder(world: &World) -> Option<String> {
    let lease = world.api.find(&lease_path(world))?;
    Some(text(&lease, "/spec/holderIdentity").to_owned()).filter(|name| !name.is_empty())
}

/// Waits until somebody else than `last` holds the Lease.
#[track_caller]
fn next_holder(world: &World, last: &str, limit: Duration) -> String {
    eventually("somebody else leads", limit, || holder(world).filter(|name| name != last))
}

fn has_called(sidecar: &mut Sidecar) -> bool {
    sidecar.said().contains("/csi.v1.Controller/CreateVolume")
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_replicas_of_both_kinds_take_turns_on_one_lease() {
    let world = World::new("lease");
    world.create(class("fast"));
    let driver = Driver::bench(&world).started();
    let mut first = replica(Sidecar::ours(&world, "first", &driver.socket())).started();
    let first_name = next_holder(&world, "", SOON);
    let mut second = replica(Sidecar::ours(&world, "second", &driver.socket())).started();
    world.create(claim("one"));
    world.bound("one");
    assert_eq!(holder(&world).as_ref(), Some(&first_name));
    assert!(has_called(&mut first) && !has_called(&mut second));

    // An orderly stop ends the running call first, then gives the Lease away.
    driver.script(&json!([{"method": "CreateVolume", "before": "2s", "count": 1}]));
    world.create(claim("two"));
    wait_until("the driver works on it", SOON, || driver.calls("CreateVolume").len() == 2);
    first.terminate();
    assert_eq!(first.ends_within(Duration::from_secs(8)), 0, "{}", first.said());
    let second_name = next_holder(&world, &first_name, Duration::from_secs(3));
    assert_ne!(first_name, second_name, "two replicas on one host have different names");
    world.bound("two");
    assert_eq!(driver.calls("CreateVolume").len(), 2, "the call was not abandoned and repeated");
    assert!(!has_called(&mut second));

    // To Go, in order.
    let mut go = replica(Sidecar::go(&world, "go", &driver.socket())).started();
    go.says("ttempting to acquire leader lease", SOON);
    second.terminate();
    assert_eq!(second.ends_within(Duration::from_secs(8)), 0, "{}", second.said());
    let go_name = next_holder(&world, &second_name, DURATION);
    world.create(claim("three"));
    world.bound("three");
    assert!(has_called(&mut go));

    // Back from Go, which is killed: its Lease has to run out.
    first.start();
    first.says("driver", SOON);
    world.create(claim("four"));
    world.bound("four");
    let killed = Instant::now();
    go.kill();
    let last = next_holder(&world, &go_name, DURATION + Duration::from_secs(5));
    assert!(killed.elapsed() > DURATION / 2, "not before Go's Lease ended");
    assert_ne!(last, first_name, "a new process has a new name");
    world.create(claim("five"));
    world.bound("five");
    assert!(has_called(&mut first));
    world.settles_with(&driver, 5);
    assert_eq!(driver.calls("CreateVolume").len(), 5);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_leader_that_cannot_renew_ends_and_its_successor_goes_on() {
    let world = World::on(Arc::new(Plane::start("lost-plane", &[])), "lost");
    world.create(class("fast"));
    let driver = Driver::bench(&world).started();
    let mut sidecar = replica(Sidecar::ours(&world, "sidecar", &driver.socket())).started();
    world.create(claim("one"));
    world.bound("one");
    driver.script(&json!([{"method": "CreateVolume", "before": "1s", "work": true, "answer": "reset"}]));
    world.create(claim("two"));
    wait_until("the driver works on it", SOON, || driver.calls("CreateVolume").len() == 2);
    world.plane.stop_apiserver();
    let stopped = Instant::now();
    assert_eq!(sidecar.ends_within(SOON), 1);
    let ended = stopped.elapsed();
    assert!(ended < DURATION + Duration::from_secs(3), "it ends when another may lead, after {ended:?}");
    let last = driver.calls("CreateVolume").last().map(Call::second_of_day);
    let said = sidecar.said();
    assert!(said.contains("stopped leading") && !said.contains("panicked"), "{said}");
    assert_eq!(last, driver.calls("CreateVolume").last().map(Call::second_of_day), "and asks no more of the driver");
    driver.script(&json!([]));
    sidecar.start();
    world.plane.start_apiserver();
    world.bound("two");
    world.settles_with(&driver, 2);
}
