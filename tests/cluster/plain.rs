//! Claims and volumes beside Kubernetes' own mock driver.

use crate::support::api::{CLASSES, VOLUMES, text};
use crate::support::driver::{Call, Driver};
use crate::support::objects::{claim, class};
use crate::support::plane::Plane;
use crate::support::wait::{SOON, holds_for, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn started(name: &str) -> (World, Driver) {
    let world = World::new(name);
    world.create(class("fast"));
    let driver = Driver::mock(&world).started();
    (world, driver)
}

/// Access mode and kind of the one capability asked for.
fn asked_for(driver: &Driver, volume: &Value) -> (String, bool) {
    let calls = driver.calls("CreateVolume");
    let call = calls.iter().find(|call| call.key == text(volume, "/metadata/name")).expect("the driver made it");
    let capability = &call.request["volumeCapabilities"][0];
    (text(capability, "/accessMode/mode").to_owned(), capability.get("block").is_some())
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_claim_gets_a_volume_and_its_end_deletes_it() {
    let (world, driver) = started("plain");
    let _sidecar = world.sidecar(&driver);
    world.create(claim("data").wants("10Gi"));
    let volume = world.bound("data");
    assert_eq!(text(&volume, "/spec/capacity/storage"), "10Gi");
    assert_eq!(text(&volume, "/spec/persistentVolumeReclaimPolicy"), "Delete");
    assert_eq!(text(&volume, "/metadata/annotations/pv.kubernetes.io~1provisioned-by"), world.driver_name());
    world.tells("data", "ProvisioningSucceeded", text(&volume, "/metadata/name"));
    world.settles_with(&driver, 1);
    world.delete_claim("data");
    world.settles_with(&driver, 0);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_volume_mode_and_access_modes_reach_the_driver() {
    let (world, driver) = started("modes");
    let _sidecar = world.sidecar(&driver);
    let modes = [
        ("rwo", "ReadWriteOnce", "SINGLE_NODE_WRITER"),
        ("rox", "ReadOnlyMany", "MULTI_NODE_READER_ONLY"),
        ("rwx", "ReadWriteMany", "MULTI_NODE_MULTI_WRITER"),
        ("rwop", "ReadWriteOncePod", "SINGLE_NODE_WRITER"),
    ];
    for (name, mode, _) in modes {
        world.create(claim(name).access(&[mode]));
    }
    world.create(claim("block").block());
    for (name, mode, asked) in modes {
        let volume = world.bound(name);
        assert_eq!(volume["spec"]["accessModes"], json!([mode]));
        assert_eq!(volume["spec"]["volumeMode"], "Filesystem");
        assert_eq!(asked_for(&driver, &volume), (asked.to_owned(), false));
    }
    let volume = world.bound("block");
    assert_eq!(volume["spec"]["volumeMode"], "Block");
    assert_eq!(asked_for(&driver, &volume), ("SINGLE_NODE_WRITER".to_owned(), true));
    world.settles_with(&driver, 5);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_retained_volume_outlives_its_claim() {
    let (world, driver) = started("retain");
    world.create(class("kept").retain());
    let _sidecar = world.sidecar(&driver);
    world.create(claim("data").class("kept"));
    let path = format!("{VOLUMES}/{}", text(&world.bound("data"), "/metadata/name"));
    world.delete_claim("data");
    wait_until("the volume is released", SOON, || text(&world.api.get(&path), "/status/phase") == "Released");
    holds_for("nothing is deleted", Duration::from_secs(2), || driver.calls("DeleteVolume").is_empty());
    world.settles_with(&driver, 1);
    // The way out for an administrator: say Delete after all.
    world.api.merge(&path, &json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}}));
    world.settles_with(&driver, 0);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_claim_waits_for_its_class() {
    let (world, driver) = started("classes");
    world.create(class("other").provisioner("somebody.else"));
    let _sidecar = world.sidecar(&driver);
    world.create(claim("early").class("late"));
    world.create(claim("foreign").class("other"));
    world.create(claim("witness"));
    world.bound("witness");
    holds_for("nobody is served who has no class of ours", Duration::from_secs(1), || world.volumes().len() == 1);
    world.create(class("late"));
    world.bound("early");
    let foreign = world.api.get(&world.claim("foreign"));
    assert_eq!(text(&foreign, "/status/phase"), "Pending");
    assert!(world.events("foreign").iter().all(|(reason, _)| reason == "ExternalProvisioning"));
    world.api.delete(&format!("{CLASSES}/{}", world.class_name("late")));
    world.delete_claim("early");
    world.settles_with(&driver, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_driver_error_is_told_and_tried_again_with_growing_waits() {
    let (world, driver) = started("errors");
    driver.script(&json!([{"method": "CreateVolume", "count": 4, "code": "Internal", "message": "disk on fire"}]));
    let _sidecar = world.sidecar(&driver);
    world.create(claim("data"));
    world.bound("data");
    world.tells("data", "ProvisioningFailed", "disk on fire");
    let starts: Vec<f64> = driver.calls("CreateVolume").iter().map(Call::second_of_day).collect();
    assert_eq!(starts.len(), 5);
    let waits: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).rem_euclid(86_400.0)).collect();
    // 200 ms, doubled each time.
    for (wait, least) in waits.iter().zip([0.2, 0.4, 0.8, 1.6]) {
        assert!((least * 0.9..least * 1.9 + 0.3).contains(wait), "waits: {waits:?}");
    }
    world.settles_with(&driver, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_api_server_restart_loses_and_doubles_nothing() {
    let world = World::on(Arc::new(Plane::start("restart-plane", &[])), "restart");
    world.create(class("fast"));
    let driver = Driver::mock(&world).started();
    driver.script(&json!([{"method": "CreateVolume", "before": "1s"}]));
    let mut sidecar = world.sidecar(&driver);
    for number in 0..20 {
        world.create(claim(&format!("data-{number}")));
    }
    sidecar.says("CreateVolume", SOON);
    world.plane.restart_apiserver_hard();
    for number in 0..20 {
        world.bound(&format!("data-{number}"));
    }
    world.settles_with(&driver, 20);
    for number in 0..20 {
        world.api.delete(&world.claim(&format!("data-{number}")));
    }
    world.settles_with(&driver, 0);
    assert!(sidecar.runs(), "the sidecar survives the API server");
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_killed_sidecar_goes_on_after_its_restart() {
    let (world, driver) = started("killed");
    driver.script(&json!([{"method": "CreateVolume", "count": 5, "after": "2s", "work": true}]));
    let mut sidecar = world.sidecar(&driver);
    for number in 0..10 {
        world.create(claim(&format!("data-{number}")));
    }
    sidecar.says("CreateVolume", SOON);
    sidecar.kill();
    assert_ne!(world.volumes().len(), 10);
    sidecar.start();
    for number in 0..10 {
        world.bound(&format!("data-{number}"));
    }
    world.settles_with(&driver, 10);
}
