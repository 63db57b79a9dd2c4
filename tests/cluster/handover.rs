//! Work begun by the Go sidecar and ended by ours, and the other way round: changing the image loses nothing.

use crate::support::api::{VOLUMES, text};
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::sidecar::Sidecar;
use crate::support::wait::{SOON, wait_until};
use crate::support::world::World;
use serde_json::json;

/// A class with everything that a request may hold.
fn rich_world(name: &str) -> (World, Driver) {
    let world = World::new(name);
    let secrets = format!("/api/v1/namespaces/{}/secrets", world.name);
    world.api.create(&secrets, &json!({"metadata": {"name": "account"}, "stringData": {"user": "u", "password": "p"}}));
    world.create(
        class("fast")
            .parameter("tier", "gold")
            .parameter("csi.storage.k8s.io/fstype", "xfs")
            .parameter("csi.storage.k8s.io/provisioner-secret-name", "account")
            .parameter("csi.storage.k8s.io/provisioner-secret-namespace", &world.name)
            .mounted_with(&["noatime", "discard"]),
    );
    let driver = Driver::bench(&world).flag("--publish").started();
    (world, driver)
}

fn both(world: &World, driver: &Driver) -> (Sidecar, Sidecar) {
    let ours = Sidecar::ours(world, "ours", &driver.socket()).flag("--extra-create-metadata");
    let go = Sidecar::go(world, "go", &driver.socket()).flag("--extra-create-metadata");
    (ours, go)
}

/// The first is killed while the driver hangs; the second goes on with requests equal to the last byte.
fn goes_on_inside_creations(world: &World, driver: &Driver, mut first: Sidecar, mut second: Sidecar) {
    driver.script(&json!([{"method": "CreateVolume", "count": 3, "before": "3s", "work": true}]));
    first.start();
    world.create(claim("file").wants("3Gi"));
    world.create(claim("many").access(&["ReadWriteMany"]).wants("1500M"));
    world.create(claim("block").block().access(&["ReadWriteOncePod"]));
    wait_until("the driver hangs", SOON, || driver.calls("CreateVolume").len() == 3);
    first.kill();
    second.start();
    for name in ["file", "many", "block"] {
        let volume = text(&world.bound(name), "/metadata/name").to_owned();
        let mut calls = driver.calls("CreateVolume");
        calls.retain(|call| call.key == volume);
        assert!(calls.len() >= 2, "{name}: {calls:?}");
        for call in &calls {
            assert_eq!(call.request, calls[0].request, "{name}");
        }
        assert_eq!(calls[0].request["parameters"]["csi.storage.k8s.io/pvc/name"], name);
    }
    world.settles_with(driver, 3);
    driver.rests();
    // And back down again by the second, with the secrets that the first one knew.
    for name in ["file", "many", "block"] {
        world.api.delete(&world.claim(name));
    }
    world.settles_with(driver, 0);
    for call in driver.calls("DeleteVolume") {
        assert_eq!(call.request["secrets"], json!({"user": "u", "password": "p"}));
    }
    second.kill();
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_creations_of_the_go_sidecar_are_finished_by_ours() {
    let (world, driver) = rich_world("from-go");
    let (ours, go) = both(&world, &driver);
    goes_on_inside_creations(&world, &driver, go, ours);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_creations_of_ours_are_finished_by_the_go_sidecar() {
    let (world, driver) = rich_world("to-go");
    let (ours, go) = both(&world, &driver);
    goes_on_inside_creations(&world, &driver, ours, go);
}

/// The first made the volumes and is gone. One volume object is on its way out with its storage still there, one with its
/// storage gone, and one was being deleted by the driver when the first was killed.
fn goes_on_inside_deletions(world: &World, driver: &mut Driver, mut first: Sidecar, mut second: Sidecar) {
    first.start();
    let names = ["whole", "half", "hangs"];
    for name in names {
        world.create(claim(name));
    }
    let volumes = names.map(|name| text(&world.bound(name), "/metadata/name").to_owned());
    let [whole, half, hangs] = &volumes;
    driver.script(&json!([{"method": "DeleteVolume", "key": hangs, "count": 1, "before": "2s"}]));
    world.delete_claim("hangs");
    wait_until("the driver hangs", SOON, || driver.calls("DeleteVolume").len() == 1);
    first.kill();
    for (name, volume) in [("whole", whole), ("half", half)] {
        world.delete_claim(name);
        let path = format!("{VOLUMES}/{volume}");
        wait_until("it is released", SOON, || text(&world.api.get(&path), "/status/phase") == "Released");
        world.api.delete(&path);
        let finalizers = world.api.get(&path)["metadata"]["finalizers"].to_string();
        assert!(finalizers.contains("external-provisioner.volume.kubernetes.io/finalizer"), "{finalizers}");
    }
    wait_until("the driver has ended", SOON, || driver.volumes().len() == 2);
    driver.kill();
    driver.forgets(half);
    driver.start();
    assert_eq!(driver.volumes().len(), 1);
    second.start();
    for volume in &volumes {
        let path = format!("{VOLUMES}/{volume}");
        wait_until("the volume object is gone", SOON, || world.api.find(&path).is_none());
    }
    world.settles_with(driver, 0);
    second.kill();
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_deletions_of_the_go_sidecar_are_finished_by_ours() {
    let (world, mut driver) = rich_world("deleted-by-go");
    let (ours, go) = both(&world, &driver);
    goes_on_inside_deletions(&world, &mut driver, go, ours);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_deletions_of_ours_are_finished_by_the_go_sidecar() {
    let (world, mut driver) = rich_world("deleted-by-ours");
    let (ours, go) = both(&world, &driver);
    goes_on_inside_deletions(&world, &mut driver, ours, go);
}
