//! Load on API server and driver.

use crate::support::*;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::driver::script::Fault;
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, VOLUMES};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// O01 and O03: 200 claims at once, at the default limit of 5 calls a second.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn burst_of_claims_costs_one_write_each_and_no_reads() {
    let world = world(&["--kube-api-qps=5", "--kube-api-burst=10"]);
    let _sidecar = world.start();
    (0..200).for_each(|number| drop(world.add_claim(&format!("data-{number}"), CLASS)));
    comes(&world, secs(45), "the last bound claim", World::all_bound).await;
    assert_eq!(world.requests_of("create", VOLUMES, None), 200);
    let reads =
        [CLAIMS, VOLUMES, "storageclasses", "nodes", "csinodes"].map(|kind| world.requests_of("get", kind, None));
    assert_eq!(reads, [0; 5]);
    comes_to_rest(&world).await;
}

/// O06: hopeless requests are asked at the longest interval, and a good one at once.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn hopeless_claims_are_asked_seldom_and_delay_nobody() {
    let world = world(&[]);
    let _sidecar = world.start();
    script(&world, "CreateVolume", 10_000, fails(INVALID_ARGUMENT));
    (0..100).for_each(|number| drop(world.add_claim(&format!("bad-{number}"), CLASS)));
    sleep(secs(2)).await;
    world.driver.script().clear();
    bound(&world, "good").await;
    script(&world, "CreateVolume", 10_000, fails(INVALID_ARGUMENT));
    sleep(secs(1800 - 32)).await;
    let calls = world.calls.of("CreateVolume").len();
    // Each at the start and then each five minutes.
    assert!((600..=701).contains(&calls), "{calls} calls");
}

/// O06: what was held back is tried at once when the claim or its class is another one.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn hold_back_ends_with_the_edit_that_changes_the_request() {
    let world = world(&[]);
    add_class(&world, "wrong", &json!({"parameters": {"tier": "impossible"}}));
    script(&world, "CreateVolume", 1, fails(INVALID_ARGUMENT));
    let _sidecar = world.start();
    world.add_claim("data", "wrong");
    sleep(secs(10)).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 1);
    world.remove("storageclasses", "wrong");
    add_class(&world, "wrong", &json!({}));
    comes(&world, secs(1), "the bound claim", |world| world.is_bound("data")).await;
    comes_to_rest(&world).await;
}

/// S04, W5: the class is replaced while the driver's refusal is still worked on. Only what was asked is held back.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn hold_back_is_of_the_request_that_was_asked() {
    for written in ["create", "delete"] {
        let world = world(&["--durable-intent=always", "--durable-intent-namespace=kube-system"]);
        add_class(&world, "wrong", &json!({"parameters": {"tier": "impossible"}}));
        script(&world, "CreateVolume", 1, fails(INVALID_ARGUMENT));
        // Of the record, right before the call or right after it.
        let record = Match::any().verb(written).resource("configmaps");
        world.server.faults().add_times(record, Effect::Delay(secs(5)), 1);
        let _sidecar = world.start();
        world.add_claim("data", "wrong");
        sleep(secs(2)).await;
        world.remove("storageclasses", "wrong");
        add_class(&world, "wrong", &json!({}));
        comes(&world, secs(5), "the bound claim", |world| world.is_bound("data")).await;
        assert_eq!(world.calls.of("CreateVolume").len(), 2, "{written}");
        comes_to_rest(&world).await;
    }
}

/// O07: never more calls at once than there are workers, per kind of call.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn calls_at_once_are_limited_by_the_workers() {
    let world = world(&["--worker-threads=4"]);
    script(&world, "CreateVolume", 300, Fault::Slow(secs(1)));
    script(&world, "DeleteVolume", 300, Fault::Slow(secs(1)));
    let _sidecar = world.start();
    (0..150).for_each(|number| drop(world.add_claim(&format!("first-{number}"), CLASS)));
    comes(&world, secs(60), "the first half", World::all_bound).await;
    (0..150).for_each(|number| {
        world.remove(CLAIMS, &format!("first-{number}"));
        world.add_claim(&format!("second-{number}"), CLASS);
    });
    comes(&world, secs(60), "the second half", |world| world.all(VOLUMES).len() == 150 && world.all_bound()).await;
    assert_eq!((world.calls.most_at_once("CreateVolume"), world.calls.most_at_once("DeleteVolume")), (4, 4));
    comes_to_rest(&world).await;
}

/// Design, numbers to beat: two writes and one call for a deletion, one write and one call for a creation.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn undisturbed_life_of_a_volume_costs_three_writes_and_two_calls() {
    let world = world(&[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    world.remove(CLAIMS, "data");
    comes(&world, secs(10), "the end", empty).await;
    sleep(Duration::from_secs(60)).await;
    let writes = ["create", "update", "patch", "delete"].map(|verb| world.requests_of(verb, VOLUMES, None));
    assert_eq!(writes, [1, 0, 1, 1]);
    assert_eq!((world.calls.of("CreateVolume").len(), world.calls.of("DeleteVolume").len()), (1, 1));
    assert_eq!(world.requests_of("delete", VOLUMES, Some(404)) + world.requests_of("patch", VOLUMES, Some(404)), 0);
}
