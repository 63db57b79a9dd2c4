//! Nodes that leave, come late or are not complete, while a claim is bound to them by the scheduler.

use crate::support::*;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, SELECTED_NODE, claim, text};
use serde_json::{Value, json};
use tokio::time::sleep;

fn selected_node(world: &World) -> String {
    let claim = world.claim("data").expect("there");
    claim["metadata"]["annotations"][SELECTED_NODE].as_str().unwrap_or_default().to_owned()
}

/// A driver with places and a class for late binding.
fn late_world() -> World {
    let world = world_with(with_places(), &["--strict-topology"]);
    add_class(&world, "late", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    world
}

/// A claim that the scheduler bound to this node.
async fn claim_on(world: &World, node: &str) {
    world.add_claim("data", "late");
    sleep(secs(1)).await;
    select(world, node);
}

fn select(world: &World, node: &str) {
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!(node));
}

/// S02: the node and its registration go in every order after an attempt with a final answer.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_is_given_back_in_whatever_order_its_node_goes() {
    for order in [&["csinodes", "nodes"][..], &["nodes", "csinodes"], &["csinodes"], &["nodes"]] {
        let world = late_world();
        add_node(&world, "n1", "a");
        add_node(&world, "n2", "a");
        script(&world, "CreateVolume", 1000, fails(INTERNAL));
        let _sidecar = world.start();
        claim_on(&world, "n1").await;
        sleep(secs(10)).await;
        assert_eq!(selected_node(&world), "n1", "{order:?}: a final failure is no reason");
        for plural in order {
            world.remove(plural, "n1");
            sleep(secs(1)).await;
        }
        comes(&world, secs(1), "the free claim", |world| selected_node(world).is_empty()).await;
        world.driver.script().clear();
        select(&world, "n2");
        comes(&world, secs(1), "the bound claim", |world| world.is_bound("data")).await;
    }
}

/// S02: one of the two is missing before the first attempt. A registration without the driver counts for nothing.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_for_half_a_node_is_given_back() {
    let registered = |world: &World, drivers: Value| {
        world.add("csinodes", json!({"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}));
    };
    let halves: [&dyn Fn(&World); 3] = [
        &|world| drop(world.add("nodes", json!({"metadata": {"name": "n1", "labels": {"zone": "a"}}}))),
        &|world| registered(world, json!([{"name": world.driver.name(), "nodeID": "n1", "topologyKeys": ["zone"]}])),
        &|world| registered(world, json!([])),
    ];
    for half in halves {
        let world = late_world();
        half(&world);
        let _sidecar = world.start();
        claim_on(&world, "n1").await;
        comes(&world, secs(5), "the free claim", |world| selected_node(world).is_empty()).await;
        assert_eq!(world.calls.of("CreateVolume").len(), 0);
        assert_eq!(world.requests_of("update", CLAIMS, Some(200)), 1, "one conditional write");
    }
}

/// Two changes of the world, one after the other.
type Steps<'a> = [&'a dyn Fn(&World); 2];

/// W38: between our look at the claim and our write it changes.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_is_given_back_by_one_write_on_what_it_is_now() {
    let leave = |_: &World| {};
    let pick = |world: &World| select(world, "n2");
    let remove = |world: &World| world.remove(CLAIMS, "data");
    // Only its class is missing: the new claim gives no reason to be given back.
    let replace = |world: &World| {
        let mut data = claim("data", "late");
        data["metadata"]["annotations"] = json!({SELECTED_NODE: "n1"});
        world.add(CLAIMS, data);
        world.remove("storageclasses", "late");
    };
    let label = |world: &World| {
        drop(world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["labels"] = json!({"team": "x"})));
    };
    let changes: [(&str, Steps<'_>, &str); 3] =
        [("get", [&pick, &leave], "n2"), ("get", [&remove, &replace], "n1"), ("update", [&label, &leave], "")];
    for (verb, steps, node) in changes {
        let world = late_world();
        world.server.faults().add_times(Match::any().verb(verb).resource(CLAIMS), Effect::Delay(secs(5)), 1);
        add_node(&world, "n2", "a");
        let _sidecar = world.start();
        claim_on(&world, "n1").await;
        for step in steps {
            sleep(secs(1)).await;
            step(&world);
        }
        sleep(secs(5)).await;
        assert_eq!(selected_node(&world), node, "{verb}");
        let data = world.claim("data").expect("there");
        assert_eq!(data["metadata"]["labels"]["team"] == "x", verb == "update", "what others wrote is lost");
    }
}

/// S02, L07: as long as the driver may be at work the claim stays with its node; then it goes within a back-off step.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_is_given_back_only_when_nothing_is_unresolved() {
    let world = late_world();
    add_node(&world, "n1", "a");
    script(&world, "CreateVolume", 1000, fails(UNAVAILABLE));
    let _sidecar = world.start();
    claim_on(&world, "n1").await;
    sleep(secs(5)).await;
    world.remove("csinodes", "n1");
    world.remove("nodes", "n1");
    sleep(secs(120)).await;
    assert_eq!(selected_node(&world), "n1");
    assert!(all_equal(&world.calls.of("CreateVolume")), "the request changed");
    world.driver.script().clear();
    script(&world, "CreateVolume", 1, fails(INTERNAL));
    comes(&world, secs(300), "the final answer", |world| {
        world.calls.of("CreateVolume").last().is_some_and(|call| format!("{:?}", call.end).contains("13"))
    })
    .await;
    comes(&world, secs(300), "the free claim", |world| selected_node(world).is_empty()).await;
    assert_eq!(world.volumes_in_backend(), 0);
}

/// S03: labels that come late are used by the next attempt, and the event says which were missing.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn labels_that_come_late_are_used_at_once() {
    let world = late_world();
    world.add("nodes", json!({"metadata": {"name": "n1", "labels": {"zone": "a"}}}));
    let driver = json!({"name": world.driver.name(), "nodeID": "n1", "topologyKeys": ["zone", "rack"]});
    world.add("csinodes", json!({"metadata": {"name": "n1"}, "spec": {"drivers": [driver]}}));
    let _sidecar = world.start();
    claim_on(&world, "n1").await;
    sleep(secs(100)).await;
    let failures: Vec<String> = world
        .all("events")
        .iter()
        .filter(|event| text(event, "/reason") == "ProvisioningFailed")
        .map(|event| text(event, "/message").to_owned())
        .collect();
    assert!(matches!(failures.as_slice(), [one] if one.contains("\"n1\"") && one.contains("rack")), "{failures:?}");
    assert_eq!((world.calls.of("CreateVolume").len(), selected_node(&world).as_str()), (0, "n1"));
    world.edit("nodes", "", "n1", |node| node["metadata"]["labels"]["rack"] = json!("r1"));
    comes(&world, secs(1), "the call", |world| !world.calls.of("CreateVolume").is_empty()).await;
}

/// S10 without node deployment: a node that the driver has not reached is named, and the claim waits for it there.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_on_a_node_without_the_driver_waits_and_says_so() {
    let world = late_world();
    world.add("nodes", json!({"metadata": {"name": "n3", "labels": {"zone": "a"}}}));
    world.add("csinodes", json!({"metadata": {"name": "n3"}, "spec": {"drivers": []}}));
    let _sidecar = world.start();
    claim_on(&world, "n3").await;
    sleep(secs(600)).await;
    assert_eq!((world.calls.of("CreateVolume").len(), selected_node(&world).as_str()), (0, "n3"));
    let told =
        |event: &&Value| text(event, "/reason") == "ProvisioningFailed" && text(event, "/message").contains("n3");
    assert_eq!(world.all("events").iter().filter(told).count(), 1);
}

/// T02: a request that was never sent is not pinned to the node it was made for.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn request_that_was_not_sent_is_made_anew_for_another_node() {
    let world = late_world();
    let parameters = json!({
        "csi.storage.k8s.io/provisioner-secret-name": "key",
        "csi.storage.k8s.io/provisioner-secret-namespace": NAMESPACE,
    });
    let fields = json!({"volumeBindingMode": "WaitForFirstConsumer", "parameters": parameters});
    add_class(&world, "locked", &fields);
    add_node(&world, "n1", "b");
    add_node(&world, "n2", "a");
    let _sidecar = world.start();
    world.add_claim("data", "locked");
    sleep(secs(1)).await;
    select(&world, "n1");
    sleep(secs(5)).await;
    select(&world, "n2");
    world.add("secrets", json!({"metadata": {"name": "key", "namespace": NAMESPACE}, "data": {"user": "YWRtaW4="}}));
    comes(&world, secs(60), "the bound claim", |world| world.is_bound("data")).await;
    let volume = world.volume_of("data").expect("bound");
    let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"][0]["values"], json!(["a"]));
}
