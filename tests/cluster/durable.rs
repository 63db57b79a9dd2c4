//! `--durable-intent`: what is open survives a killed sidecar, and nobody can forge it.

use crate::support::api::text;
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::sidecar::Sidecar;
use crate::support::wait::{SOON, eventually, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::time::Duration;

const RECORDS: &str = "/api/v1/namespaces/default/configmaps";

fn started(name: &str, when: &str) -> (World, Driver, Sidecar) {
    let world = World::new(name);
    world.plane.apply("e2e/role-durable-intent.yaml");
    world.create(class("fast").parameter("tier", "gold"));
    let driver = Driver::bench(&world).started();
    let sidecar = Sidecar::ours(&world, "sidecar", &driver.socket())
        .flag(&format!("--durable-intent={when}"))
        .flag("--durable-intent-namespace=default");
    (world, driver, sidecar)
}

fn records(world: &World) -> Vec<Value> {
    let mut all = world.api.list(RECORDS);
    all.retain(|one| text(one, "/data/driver") == world.driver_name());
    all
}

/// Kills the sidecar, gives the claim up, and expects that the next one puts everything in order.
fn killed_and_put_in_order(world: &World, driver: &Driver, sidecar: &mut Sidecar) {
    sidecar.kill();
    world.delete_claim("data");
    wait_until("the driver has made the volume", SOON, || driver.volumes().len() == 1);
    driver.script(&json!([]));
    sidecar.start();
    wait_until("the volume is gone", SOON, || driver.calls("DeleteVolume").len() == 1);
    world.settles_with(driver, 0);
    wait_until("its record is gone", SOON, || records(world).is_empty());
    let calls = driver.calls("CreateVolume");
    assert!(calls.len() >= 2);
    for call in &calls {
        assert_eq!(call.request, calls[0].request, "the same request is repeated");
    }
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_recorded_creation_survives_a_kill_inside_the_call() {
    let (world, driver, sidecar) = started("always", "always");
    driver.script(&json!([{"method": "CreateVolume", "before": "2s", "count": 1}]));
    let mut sidecar = sidecar.started();
    world.create(claim("data"));
    wait_until("the driver works on it", SOON, || driver.calls("CreateVolume").len() == 1);
    assert_eq!(records(&world).len(), 1);
    killed_and_put_in_order(&world, &driver, &mut sidecar);
    // And in fair weather a record goes with its creation.
    world.create(claim("fair"));
    world.bound("fair");
    wait_until("its record is gone", SOON, || records(&world).is_empty());
    world.settles_with(&driver, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_uncertain_creation_survives_a_kill_after_the_answer() {
    let (world, driver, sidecar) = started("uncertain", "uncertain");
    let mut sidecar = sidecar.started();
    world.create(claim("fair"));
    world.bound("fair");
    assert!(records(&world).is_empty(), "what is certain needs no record");
    world.delete_claim("fair");
    world.settles_with(&driver, 0);
    let (made, deleted) = (driver.calls("CreateVolume").len(), driver.calls("DeleteVolume").len());
    assert_eq!((made, deleted), (1, 1));

    driver.script(&json!([{"method": "CreateVolume", "work": true, "code": "DeadlineExceeded"}]));
    world.create(claim("data"));
    wait_until("it is recorded", SOON, || records(&world).len() == 1);
    sidecar.kill();
    world.delete_claim("data");
    driver.script(&json!([]));
    sidecar.start();
    wait_until("the volume is gone", SOON, || driver.calls("DeleteVolume").len() == 2);
    world.settles_with(&driver, 0);
    wait_until("its record is gone", SOON, || records(&world).is_empty());
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_forged_records_change_nothing() {
    let (world, driver, sidecar) = started("forged", "always");
    driver.script(&json!([{"method": "CreateVolume", "work": true, "code": "DeadlineExceeded"}]));
    let mut sidecar = sidecar.started();
    world.create(claim("data"));
    let record = eventually("it is recorded", SOON, || records(&world).pop());
    sidecar.kill();

    // What a user may write: objects in the user's own namespace.
    let attempt = text(&record, "/data/attempt").to_owned();
    let name = text(&record, "/metadata/name").to_owned();
    let volume = format!("pvc-{}", text(&world.api.get(&world.claim("data")), "/metadata/uid"));
    assert!(attempt.contains(&volume));
    let forged = |change: &dyn Fn(&mut Value)| {
        let mut copy = json!({
            "metadata": {"name": name, "labels": record["metadata"]["labels"]},
            "data": record["data"],
        });
        copy["data"]["attempt"] = attempt.replace(&volume, "pvc-stolen").into();
        change(&mut copy);
        copy
    };
    world.api.create(&format!("/api/v1/namespaces/{}/configmaps", world.name), &forged(&|_| ()));
    let key = "csi-provisioner/intent";
    world.create(claim("tempting").annotated(key, &attempt.replace(&volume, "pvc-stolen")));
    // And what nobody may write, but somebody could.
    world.api.create(RECORDS, &forged(&|copy| copy["metadata"]["name"] = "forged-name".into()));
    world.api.create(
        RECORDS,
        &forged(&|copy| {
            copy["metadata"]["name"] = "forged-version".into();
            copy["data"]["version"] = "99".into();
        }),
    );

    driver.script(&json!([]));
    sidecar.start();
    world.bound("data");
    world.bound("tempting");
    sidecar.says("ignored a record", SOON);
    std::thread::sleep(Duration::from_secs(1));
    assert!(driver.calls("CreateVolume").iter().all(|call| call.key != "pvc-stolen"));
    world.settles_with(&driver, 2);
    assert!(world.api.find(&format!("{RECORDS}/forged-name")).is_some(), "what is not ours is left alone");
}
