//! Claims with a `VolumeAttributesClass` (provisioning.md 4.14, field fault B10).

use crate::support::api::text;
use crate::support::audit::asked;
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::wait::holds_for;
use crate::support::world::World;
use serde_json::json;
use std::time::Duration;

const ATTRIBUTES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";

fn attributes_class(world: &World, name: &str, driver: &str) {
    let parameters = json!({"iops": "4000", "csi.storage.k8s.io/odd": "kept"});
    world.api.create(ATTRIBUTES, &json!({"metadata": {"name": name}, "driverName": driver, "parameters": parameters}));
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_attributes_class_reaches_driver_and_volume() {
    let world = World::new("attributes");
    world.create(class("fast"));
    let driver = Driver::bench(&world).flag("--modify").started();
    let _sidecar = world.sidecar(&driver);
    let name = |name: &str| world.class_name(name);
    attributes_class(&world, &name("gold"), &world.driver_name());
    attributes_class(&world, &name("foreign"), "somebody.else.test");

    // The sample role lacks the right: told, waited for, nothing made without the attributes.
    world.create(claim("early").attributes(&name("gold")));
    world.tells("early", "ProvisioningFailed", &name("gold"));
    assert!(driver.calls("CreateVolume").is_empty());
    world.plane.apply("e2e/role-attributes-class.yaml");
    let volume = world.bound("early");
    assert_eq!(text(&volume, "/spec/volumeAttributesClassName"), name("gold"));
    let asked_for = driver.calls("CreateVolume")[0].request["mutableParameters"].clone();
    assert_eq!(asked_for, json!({"iops": "4000", "csi.storage.k8s.io/odd": "kept"}));

    // One read more than a plain claim.
    world.tells("early", "ProvisioningSucceeded", "");
    let (gold, early) = (name("gold"), text(&volume, "/metadata/name"));
    let before = asked(&world, &[&gold, early]).len();
    world.create(claim("next").attributes(&gold));
    let next = text(&world.bound("next"), "/metadata/name").to_owned();
    world.tells("next", "ProvisioningSucceeded", "");
    let requests = asked(&world, &[&gold, early, &next]).split_off(before);
    assert_eq!(requests.len(), 4, "{requests:?}");
    assert!(requests.iter().any(|one| one.resource == "volumeattributesclasses" && one.verb == "get"), "{requests:?}");

    world.create(claim("waits").attributes(&name("later")));
    world.tells("waits", "ProvisioningFailed", &name("later"));
    world.create(claim("never").attributes(&name("foreign")));
    world.tells("never", "ProvisioningFailed", "somebody.else.test");
    holds_for("nothing is made", Duration::from_secs(1), || driver.calls("CreateVolume").len() == 2);
    attributes_class(&world, &name("later"), &world.driver_name());
    assert_eq!(text(&world.bound("waits"), "/spec/volumeAttributesClassName"), name("later"));
    world.settles_with(&driver, 3);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_attributes_class_is_refused_beside_a_driver_that_cannot_modify() {
    let world = World::new("unmodified");
    world.create(class("fast"));
    let driver = Driver::bench(&world).started();
    let _sidecar = world.sidecar(&driver);
    attributes_class(&world, &world.class_name("gold"), &world.driver_name());
    world.create(claim("data").attributes(&world.class_name("gold")));
    world.tells("data", "ProvisioningFailed", "MODIFY_VOLUME");
    world.create(claim("plain"));
    world.bound("plain");
    holds_for("nothing else is made", Duration::from_secs(1), || driver.calls("CreateVolume").len() == 1);
    world.settles_with(&driver, 1);
}
