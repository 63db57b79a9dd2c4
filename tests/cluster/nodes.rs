//! A sidecar and a driver with storage of its own on each of two nodes.

use crate::support::api::text;
use crate::support::audit::asked;
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::sidecar::Sidecar;
use crate::support::wait::{SOON, wait_until};
use crate::support::world::World;
use std::collections::BTreeSet;

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

fn on_node(world: &World, node: &str) -> (Driver, Sidecar) {
    let driver = Driver::on_node(world, node).started();
    let sidecar = Sidecar::ours(world, &format!("sidecar-{node}"), &driver.socket())
        .flag("--node-deployment")
        .flag("--node-deployment-base-delay=1s")
        .variable("NODE_NAME", node)
        .started();
    (driver, sidecar)
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_claims_are_shared_between_nodes_and_volumes_die_where_they_live() {
    const CLAIMS: usize = 6;
    let world = World::new("nodes");
    world.create(class("fast"));
    world.create(class("late").waits());
    let nodes = [on_node(&world, "n1"), on_node(&world, "n2")];
    let names: Vec<String> = (0..CLAIMS).map(|number| format!("data-{number}")).collect();
    for name in &names {
        world.create(claim(name));
    }
    // The scheduler of this one is the test.
    world.create(claim("late").class("late").annotated(SELECTED_NODE, "n2"));
    let mut volumes = BTreeSet::new();
    for name in names.iter().map(String::as_str).chain(["late"]) {
        let volume = world.bound(name);
        let chosen = world.api.get(&world.claim(name))["metadata"]["annotations"][SELECTED_NODE].clone();
        let term = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
        assert_eq!(term["values"][0], chosen, "{name} lives on the node that took it");
        volumes.insert(text(&volume, "/metadata/name").to_owned());
    }
    let made = |at: usize| nodes[at].0.calls("CreateVolume").len();
    assert_eq!((made(0) + made(1), nodes[1].0.volumes().len()), (CLAIMS + 1, made(1)));
    let volumes: Vec<&str> = volumes.iter().map(String::as_str).collect();
    let written = asked(&world, &volumes);
    let updates = written.iter().filter(|one| one.verb == "update" && one.resource == "persistentvolumeclaims");
    assert_eq!(updates.filter(|one| one.status == 200).count(), CLAIMS, "one write gives one claim one owner");

    for name in names.iter().map(String::as_str).chain(["late"]) {
        world.api.delete(&world.claim(name));
    }
    wait_until("the volumes are gone", SOON, || world.volumes().is_empty());
    for (at, (driver, _)) in nodes.iter().enumerate() {
        assert!(driver.volumes().is_empty(), "{:?}", driver.volumes());
        assert_eq!(driver.calls("DeleteVolume").len(), made(at));
    }
}
