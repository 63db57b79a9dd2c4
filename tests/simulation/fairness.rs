//! No class holds up another one.

use crate::support::*;
use csi_provisioner::sandbox::driver::script::Fault;
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE};
use serde_json::json;
use tokio::time::sleep;

/// How many claims the troubled class has.
const CROWD: usize = 600;

fn add_crowd(world: &World, count: usize) {
    (0..count).for_each(|number| drop(world.add_claim(&format!("crowd-{number}"), "troubled")));
}

/// O06 for failures before the driver: the reads of a failing class use up the budget of API calls at the default limit.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claims_that_fail_on_their_secret_delay_no_other_class() {
    let world = world(&["--kube-api-qps=5", "--kube-api-burst=10"]);
    let secret = json!({"csi.storage.k8s.io/provisioner-secret-name": "none", "csi.storage.k8s.io/provisioner-secret-namespace": "shop"});
    add_class(&world, "troubled", &json!({"parameters": secret}));
    let _sidecar = world.start();
    add_crowd(&world, CROWD);
    sleep(secs(120)).await;
    world.add_claim("good", CLASS);
    comes(&world, secs(2), "the bound claim", |world| world.is_bound("good")).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 1);
}

/// W27: claims that wait hold no worker, so that also the next one of their own class has its turn.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claims_that_wait_for_their_secret_hold_no_worker() {
    let world = world(&["--worker-threads=2"]);
    let prefix = "csi.storage.k8s.io/provisioner-secret";
    let secret = json!({format!("{prefix}-name"): "${pvc.name}", format!("{prefix}-namespace"): "${pvc.namespace}"});
    add_class(&world, "troubled", &json!({"parameters": secret}));
    let good = json!({"metadata": {"name": "good", "namespace": NAMESPACE}, "data": {"user": "YWRtaW4="}});
    world.add("secrets", good);
    let _sidecar = world.start();
    add_crowd(&world, 20);
    sleep(secs(30)).await;
    world.add_claim("good", "troubled");
    comes(&world, secs(1), "the bound claim", |world| world.is_bound("good")).await;
}

/// O06: so do the calls of a class whose backend hangs, which hold the workers.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claims_whose_calls_hang_delay_no_other_class() {
    let world = world(&[]);
    add_class(&world, "troubled", &json!({"parameters": {"tier": "hanging"}}));
    script(&world, "CreateVolume", 10_000, Fault::HangBefore);
    let _sidecar = world.start();
    add_crowd(&world, CROWD);
    sleep(secs(2)).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 90);
    world.driver.script().clear();
    bound_within_a_second(&world, "good").await;
}

/// The same for deletions.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletions_that_hang_delay_no_other_class() {
    let world = world(&[]);
    world.add_class("troubled");
    let _sidecar = world.start();
    add_crowd(&world, 300);
    world.add_claim("good", CLASS);
    comes(&world, secs(60), "all volumes", World::all_bound).await;
    script(&world, "DeleteVolume", 10_000, Fault::HangBefore);
    (0..300).for_each(|number| world.remove(CLAIMS, &format!("crowd-{number}")));
    sleep(secs(5)).await;
    world.driver.script().clear();
    let before = succeeded(&world, "DeleteVolume").len();
    world.remove(CLAIMS, "good");
    comes(&world, secs(3), "the deletion", |world| succeeded(world, "DeleteVolume").len() > before).await;
    assert!(world.claim("good").is_none());
}

async fn bound_within_a_second(world: &World, name: &str) {
    world.add_claim(name, CLASS);
    comes(world, secs(1), "the bound claim", |world| world.is_bound(name)).await;
}
