//! Claims and volumes beside Kubernetes' own mock driver.

use crate::support::api::{VOLUMES, text};
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::wait::{SOON, holds_for, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::time::Duration;

fn started(name: &str) -> (World, Driver) {
    let world = World::new(name);
    world.create(class("fast"));
    let driver = Driver::mock(&world).started();
    (world, driver)
}

fn capability(call: &Value) -> &Value {
    &call["volumeCapabilities"][0]
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_claim_gets_a_volume_and_its_end_deletes_it() {
    let (world, driver) = started("plain");
    let _sidecar = world.sidecar(&driver);
    world.create(claim("data").wants("10Gi"));
    let volume = world.bound("data");
    assert_eq!(text(&volume, "/spec/capacity/storage"), "10Gi");
    assert_eq!(text(&volume, "/spec/csi/fsType"), "");
    world.settles_with(&driver, 1);
    world.delete_claim("data");
    world.settles_with(&driver, 0);
}
