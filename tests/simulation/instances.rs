//! One sidecar beside the driver on each node (topology-and-capacity.md 5).

use crate::support::{
    CLASS, INTERNAL, UNAVAILABLE, add_claim, add_class, bound, comes, comes_to_rest, empty, fails, script, secs,
    world_with,
};
use csi_provisioner::sandbox::driver::{DriverOptions, MockDriver};
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::calls::Called;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, SELECTED_NODE, VOLUMES};
use csi_provisioner::sandbox::simulate::seat::{Outcome, Running};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::sleep;

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

/// A world whose driver places volumes on nodes.
fn world(flags: &[&str]) -> World {
    let segments = BTreeMap::from([("host".to_owned(), "n0".to_owned())]);
    world_with(DriverOptions { segments, ..DriverOptions::default() }, flags)
}

fn on(world: &World, node: &str) -> MockDriver {
    world.driver.on_node(node, BTreeMap::from([("host".to_owned(), node.to_owned())]))
}

/// A sidecar on each node.
fn everywhere(world: &World) -> Vec<Running> {
    NODES.iter().map(|node| world.start_on(&on(world, node))).collect()
}

/// Writes of claims that the API server took from sidecars.
fn writes(world: &World, code: u16) -> usize {
    world.requests_of("update", CLAIMS, Some(code))
}

fn askers(calls: &[Called]) -> BTreeSet<String> {
    calls.iter().map(|call| call.who.clone()).collect()
}

/// The node that a claim was given to.
fn owner(world: &World, claim: &str) -> String {
    let claim = world.claim(claim).expect("the claim");
    claim["metadata"]["annotations"][SELECTED_NODE].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn immediate_claims_get_one_owner_each_by_one_write_each() {
    let world = world(&[]);
    let _sidecars = everywhere(&world);
    let claims: Vec<String> = (0..20).map(|number| format!("data-{number}")).collect();
    for claim in &claims {
        world.add_claim(claim, CLASS);
    }
    comes(&world, secs(25), "a volume for every claim", World::all_bound).await;
    assert_eq!(writes(&world, 200), claims.len(), "{}", world.trace.text());
    assert_eq!(writes(&world, 409), 0, "the others see it in time");
    assert_eq!(world.calls.of("CreateVolume").len(), claims.len());
    let owners: BTreeSet<String> = claims.iter().map(|claim| owner(&world, claim)).collect();
    assert!(owners.len() > 1, "the claims are shared: {owners:?}");
    let volume = world.volume_of("data-0").expect("its volume");
    let term = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(*term, json!({ "key": "host", "operator": "In", "values": [owner(&world, "data-0")] }));
    comes_to_rest(&world).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn instances_that_write_at_once_leave_the_claim_to_the_first() {
    let world = world(&["--node-deployment-base-delay=0s"]);
    let _sidecars = everywhere(&world);
    world.add_claim("data", CLASS);
    comes(&world, secs(5), "the volume", |world| world.is_bound("data")).await;
    assert_eq!(writes(&world, 200), 1, "{}", world.trace.text());
    assert_eq!(askers(&world.calls.of("CreateVolume")), BTreeSet::from([owner(&world, "data")]));
    comes_to_rest(&world).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn late_binding_claim_is_taken_by_its_node_only() {
    let world = world(&[]);
    add_class(&world, "late", &json!({ "volumeBindingMode": "WaitForFirstConsumer" }));
    let _sidecars = everywhere(&world);
    world.add_claim("data", "late");
    sleep(secs(120)).await;
    assert_eq!(writes(&world, 200), 0, "nobody selects a node but the scheduler");
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n3"));
    comes(&world, secs(2), "the volume", |world| world.is_bound("data")).await;
    assert_eq!(askers(&world.calls.of("CreateVolume")), BTreeSet::from(["n3".to_owned()]));
    comes_to_rest(&world).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn waiting_for_a_turn_holds_up_no_claim_of_this_node() {
    let world = world(&["--worker-threads=1", "--node-deployment-base-delay=10m", "--node-deployment-max-delay=10m"]);
    add_class(&world, "late", &json!({ "volumeBindingMode": "WaitForFirstConsumer" }));
    let _sidecars = everywhere(&world);
    for number in 0..5 {
        world.add_claim(&format!("open-{number}"), CLASS);
    }
    world.add_claim("data", "late");
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n1"));
    comes(&world, secs(2), "the volume", |world| world.is_bound("data")).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn immediate_claim_is_never_taken_by_a_node_that_the_class_excludes() {
    let world = world(&[]);
    let allowed = json!([{ "matchLabelExpressions": [{ "key": "host", "values": ["n2"] }] }]);
    add_class(&world, "narrow", &json!({ "allowedTopologies": allowed }));
    let _sidecars = everywhere(&world);
    for number in 0..10 {
        world.add_claim(&format!("data-{number}"), "narrow");
    }
    comes(&world, secs(25), "a volume for every claim", World::all_bound).await;
    assert_eq!(askers(&world.calls.of("CreateVolume")), BTreeSet::from(["n2".to_owned()]));
    comes_to_rest(&world).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn instances_that_do_not_take_part_leave_immediate_claims_alone() {
    let world = world(&["--node-deployment-immediate-binding=false"]);
    let _sidecars = everywhere(&world);
    world.add_claim("data", CLASS);
    sleep(secs(300)).await;
    assert_eq!((writes(&world, 200), world.calls.of("CreateVolume").len()), (0, 0));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_that_fits_nowhere_waits_in_silence_until_there_is_space() {
    let world = world(&[]);
    let _sidecars = everywhere(&world);
    let size = |size: &str| json!({ "resources": { "requests": { "storage": size } } });
    add_claim(&world, "large", CLASS, &size("60Ti"));
    comes(&world, secs(25), "the first volume", |world| world.is_bound("large")).await;
    add_claim(&world, "second", CLASS, &size("60Ti"));
    sleep(secs(300)).await;
    let ours = world.events_about("second").into_iter().filter(|(reason, ..)| reason.starts_with("Provisioning"));
    assert_eq!(ours.collect::<Vec<_>>(), []);
    assert_eq!(owner(&world, "second"), "");
    world.remove(CLAIMS, "large");
    comes(&world, secs(70), "the second volume", |world| world.is_bound("second")).await;
    comes_to_rest(&world).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_is_deleted_by_its_node_only() {
    let world = world(&[]);
    let _sidecars = everywhere(&world);
    bound(&world, "data").await;
    let node = owner(&world, "data");
    world.remove(CLAIMS, "data");
    comes(&world, secs(5), "the end of the volume", empty).await;
    assert_eq!(askers(&world.calls.of("DeleteVolume")), BTreeSet::from([node]));
    assert_eq!(world.requests_of("delete", VOLUMES, None), 1);
    comes_to_rest(&world).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn missing_class_is_told_by_nobody_while_the_claim_is_nobodys() {
    let world = world(&[]);
    let _sidecars = everywhere(&world);
    world.add_claim("data", "later");
    sleep(secs(60)).await;
    assert_eq!(writes(&world, 200), 0);
    add_class(&world, "later", &json!({}));
    comes(&world, secs(60), "the volume", |world| world.is_bound("data")).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn open_creation_of_one_node_is_not_taken_over_by_another() {
    let world = world(&["--durable-intent=always", "--durable-intent-namespace=default"]);
    script(&world, "CreateVolume", 1000, fails(UNAVAILABLE));
    let first = world.start_on(&on(&world, "n1"));
    world.add_claim("data", CLASS);
    comes(&world, secs(25), "a record", |world| !world.all("configmaps").is_empty()).await;
    first.kill().await;
    let _second = world.start_on(&on(&world, "n2"));
    sleep(secs(60)).await;
    assert_eq!(askers(&world.calls.of("CreateVolume")), BTreeSet::from(["n1".to_owned()]));
    world.driver.script().clear();
    let _first = world.start_on(&on(&world, "n1"));
    comes(&world, secs(30), "the volume", |world| world.is_bound("data")).await;
    comes_to_rest(&world).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn driver_that_does_not_tell_its_node_ends_the_start() {
    let world = world(&[]);
    script(&world, "NodeGetInfo", 1, fails(INTERNAL));
    let sidecar = world.start_on(&on(&world, "n1"));
    let Outcome::Failed(ended) = sidecar.ended().await else { panic!("it ends") };
    assert_eq!(ended.code, 255);
    assert!(ended.line.contains("NodeGetInfo"), "{}", ended.line);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn owner_of_capacity_objects_is_found_or_named_in_the_last_line() {
    let world = world_with(DriverOptions::default(), &[]);
    let environment = |name: &str| match name {
        "NAMESPACE" => Some(NAMESPACE.to_owned()),
        "POD_NAME" => Some("pod".to_owned()),
        _ => None,
    };
    let flags = ["--enable-capacity", "--capacity-ownerref-level=2"];
    let Outcome::Failed(ended) = world.start_within(&flags, &environment).ended().await else { panic!("it ends") };
    assert_eq!(ended.code, 255);
    assert!(ended.line.contains("Pod \"pod\" (v1) in namespace \"default\" does not exist"), "{}", ended.line);
    let owned_by = |api: &str, kind: &str, name: &str| json!([{ "apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": true }]);
    world.add("pods", json!({
        "metadata": { "name": "pod", "namespace": NAMESPACE, "ownerReferences": owned_by("apps/v1", "ReplicaSet", "set") },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    }));
    world.add("replicasets", json!({
        "metadata": { "name": "set", "namespace": NAMESPACE, "ownerReferences": owned_by("apps/v1", "Deployment", "app") },
        "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": { "metadata": { "labels": { "a": "b" } } } },
    }));
    let running = world.start_within(&flags, &environment);
    bound(&world, "data").await;
    assert_eq!(running.outcome(), None);
}
