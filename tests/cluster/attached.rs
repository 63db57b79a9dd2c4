//! Attached volumes, and how few calls the API server sees.

use crate::support::api::{ATTACHMENTS, VOLUMES, text};
use crate::support::audit::asked;
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::plane::Plane;
use crate::support::wait::{SOON, holds_for, wait_until};
use crate::support::world::World;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_plain_claim_costs_three_calls_and_its_end_two_writes() {
    let world = World::new("calls");
    world.create(class("fast"));
    let driver = Driver::bench(&world).started();
    let _sidecar = world.sidecar(&driver);
    world.create(claim("data"));
    let volume = text(&world.bound("data"), "/metadata/name").to_owned();
    world.tells("data", "ProvisioningSucceeded", "");
    let made = asked(&world, &[&volume]);
    assert!(made.iter().all(|one| one.agent.starts_with("csi-provisioner/")), "{:?}", made[0].agent);
    let mut seen: Vec<String> = made.iter().map(|one| format!("{one:?}")).collect();
    seen.sort();
    assert_eq!(seen, ["create events (201)", "create events (201)", "create persistentvolumes (201)"]);
    world.delete_claim("data");
    wait_until("the volume is gone", SOON, || world.api.find(&format!("{VOLUMES}/{volume}")).is_none());
    // Nothing comes after that.
    std::thread::sleep(Duration::from_secs(2));
    let ended = asked(&world, &[&volume]).split_off(made.len());
    let writes: Vec<String> = ended.iter().filter(|one| one.is_write()).map(|one| format!("{one:?}")).collect();
    assert_eq!(writes, ["delete persistentvolumes (200)", "patch persistentvolumes (200)"]);
    assert!(ended.iter().all(|one| one.status < 400), "{ended:?}");
    assert_eq!(driver.calls("DeleteVolume").len(), 1);
    world.settles_with(&driver, 0);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_attached_volume_is_deleted_right_after_its_detachment() {
    let world = World::new("attached");
    world.create(class("fast"));
    let driver = Driver::bench(&world).flag("--publish").started();
    let _sidecar = world.sidecar(&driver);
    world.create(claim("data"));
    let volume = text(&world.bound("data"), "/metadata/name").to_owned();
    let attachment = format!("csi-{}", world.name);
    let spec = json!({
        "attacher": world.driver_name(),
        "nodeName": "far-away",
        "source": {"persistentVolumeName": volume},
    });
    world.api.create(ATTACHMENTS, &json!({"metadata": {"name": attachment}, "spec": spec}));
    world.delete_claim("data");
    let path = format!("{VOLUMES}/{volume}");
    wait_until("the volume is released", SOON, || text(&world.api.get(&path), "/status/phase") == "Released");
    holds_for("the volume stays", Duration::from_secs(3), || driver.calls("DeleteVolume").is_empty());
    let detached = Instant::now();
    world.api.delete(&format!("{ATTACHMENTS}/{attachment}"));
    wait_until("the volume is deleted", SOON, || !driver.calls("DeleteVolume").is_empty());
    assert!(detached.elapsed() < Duration::from_secs(1), "{:?} after the detachment", detached.elapsed());
    world.settles_with(&driver, 0);
    let events = world.events(&volume);
    let waits = events.iter().filter(|(reason, _)| reason == "VolumeDelete").count();
    assert_eq!(waits, 1, "{events:?}");
    assert!(events.iter().all(|(reason, _)| reason != "VolumeFailedDelete"), "{events:?}");
    assert_eq!(driver.calls("DeleteVolume").len(), 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_api_server_without_streaming_lists_is_served() {
    let plane = Plane::start("old-plane", &[("FEATURE_GATES", "WatchList=false")]);
    let world = World::on(Arc::new(plane), "old");
    world.create(class("fast"));
    world.create(claim("early"));
    let driver = Driver::bench(&world).started();
    let _sidecar = world.sidecar(&driver);
    world.create(claim("late"));
    world.bound("early");
    world.bound("late");
    world.delete_claim("early");
    world.settles_with(&driver, 1);
}
