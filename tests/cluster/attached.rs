//! Attached volumes, and how few calls the API server sees.

use crate::support::api::{ATTACHMENTS, VOLUMES, text};
use crate::support::audit::{Asked, asked};
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::plane::Plane;
use crate::support::wait::{SOON, holds_for, wait_until};
use crate::support::world::World;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often each request was made.
fn counted<'a>(requests: impl Iterator<Item = &'a Asked>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in requests {
        *counts.entry(format!("{one:?}")).or_default() += 1;
    }
    counts
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_plain_claim_costs_three_calls_and_its_end_two_writes() {
    const CLAIMS: usize = 12;
    let world = World::new("calls");
    world.create(class("fast"));
    let driver = Driver::bench(&world).started();
    let _sidecar = world.sidecar(&driver);
    let claims: Vec<String> = (0..CLAIMS).map(|number| format!("data-{number}")).collect();
    for name in &claims {
        world.create(claim(name));
    }
    let volumes: Vec<String> =
        claims.iter().map(|name| text(&world.bound(name), "/metadata/name").to_owned()).collect();
    for name in &claims {
        world.tells(name, "ProvisioningSucceeded", "");
    }
    let names: Vec<&str> = volumes.iter().map(String::as_str).collect();
    let made = asked(&world, &names);
    assert!(made.iter().all(|one| one.program.starts_with("csi-provisioner/")), "{:?}", made[0].program);
    let wanted = [("create events (201)", 2 * CLAIMS), ("create persistentvolumes (201)", CLAIMS)];
    assert_eq!(counted(made.iter()), wanted.map(|(request, count)| (request.to_owned(), count)).into());

    for name in &claims {
        world.api.delete(&world.claim(name));
    }
    wait_until("the volumes are gone", SOON, || world.volumes().is_empty());
    // Nothing comes after that.
    std::thread::sleep(Duration::from_secs(2));
    let ended = asked(&world, &names).split_off(made.len());
    let wanted = [("delete persistentvolumes (200)", CLAIMS), ("patch persistentvolumes (200)", CLAIMS)];
    let writes = counted(ended.iter().filter(|one| one.is_write()));
    assert_eq!(writes, wanted.map(|(request, count)| (request.to_owned(), count)).into());
    assert!(ended.iter().all(|one| one.status < 400), "{ended:?}");
    assert_eq!(driver.calls("DeleteVolume").len(), CLAIMS);
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
