//! Restarts and leadership.

use crate::support::*;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::driver::script::Fault;
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, SELECTED_NODE, VOLUMES, text};
use csi_provisioner::sandbox::simulate::seat::Outcome;
use serde_json::json;
use tokio::time::{Instant, sleep};

const LEADING: [&str; 2] = ["--leader-election", "--leader-election-namespace=kube-system"];

fn holder(world: &World) -> String {
    let leases = world.all("leases");
    leases.first().and_then(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned)).unwrap_or_default()
}

/// R01: nothing happens for half an hour.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn idle_sidecar_serves_the_next_claim_at_once() {
    let world = world(&[]);
    let sidecar = world.start();
    sleep(secs(31 * 60)).await;
    world.add_claim("data", CLASS);
    comes(&world, secs(1), "the bound claim", |world| world.is_bound("data")).await;
    assert_eq!(sidecar.outcome(), None);
}

/// R04: the leader is asked to stop with ten creations under way.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn stopped_leader_finishes_its_calls_and_hands_over_within_three_seconds() {
    let world = world(&LEADING);
    script(&world, "CreateVolume", 10, Fault::Slow(secs(2)));
    let first = world.start();
    comes(&world, secs(5), "a leader", |world| !holder(world).is_empty()).await;
    let _second = world.start();
    (0..10).for_each(|number| drop(world.add_claim(&format!("data-{number}"), CLASS)));
    sleep(secs(1)).await;
    first.terminate();
    let before = holder(&world);
    comes(&world, secs(6), "the next leader", |world| !holder(world).is_empty() && holder(world) != before).await;
    assert_eq!(first.ended().await, Outcome::Stopped);
    assert_eq!(world.all(VOLUMES).len(), 10);
    assert_eq!(world.calls.of("CreateVolume").len(), 10);
    comes_to_rest(&world).await;
}

/// R02 and R04: a killed leader is followed after its Lease ran out, and there are never two.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn killed_leader_is_followed_when_its_lease_ran_out() {
    let world = world(&LEADING);
    let first = world.start();
    comes(&world, secs(5), "a leader", |world| !holder(world).is_empty()).await;
    let _second = world.start();
    sleep(secs(30)).await;
    first.kill().await;
    let began = Instant::now();
    world.add_claim("data", CLASS);
    comes(&world, secs(30), "the bound claim", |world| world.is_bound("data")).await;
    assert!(began.elapsed() >= secs(10), "the Lease was taken from a holder that might have lived");
    comes_to_rest(&world).await;
}

/// R05: the Lease cannot be renewed.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn lost_lease_ends_the_sidecar_with_a_reason() {
    let world = world(&LEADING);
    let sidecar = world.start();
    comes(&world, secs(5), "a leader", |world| !holder(world).is_empty()).await;
    world.server.faults().add(Match::any().resource("leases"), Effect::Refuse { code: 500, retry_after_secs: None });
    let outcome = sidecar.ended().await;
    let Outcome::Failed(ended) = outcome else { panic!("{outcome:?}") };
    assert_eq!(ended.code, 1);
    assert!(ended.line.contains("stopped leading"), "{}", ended.line);
}

/// R07: 300 claims at 5 calls a second never delay the Lease.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn lease_never_waits_behind_volume_traffic() {
    let flags: Vec<&str> = LEADING.into_iter().chain(["--kube-api-qps=5", "--kube-api-burst=10"]).collect();
    let world = world(&flags);
    let sidecar = world.start();
    (0..300).for_each(|number| drop(world.add_claim(&format!("data-{number}"), CLASS)));
    comes(&world, secs(90), "the last bound claim", World::all_bound).await;
    assert_eq!(sidecar.outcome(), None);
    let lease = &world.all("leases")[0];
    assert!(lease["spec"]["leaseTransitions"].as_i64().unwrap_or(0) <= 1, "{lease}");
}

/// W29: the Lease is renewed although the limit of all other calls lets through next to nothing.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn lease_does_not_share_the_limit_of_other_calls() {
    let flags: Vec<&str> = LEADING.into_iter().chain(["--kube-api-qps=0.02", "--kube-api-burst=1"]).collect();
    let world = world(&flags);
    let sidecar = world.start();
    world.add_claim("data", CLASS);
    sleep(secs(600)).await;
    assert_eq!(sidecar.outcome(), None);
    assert!(world.requests_of("update", "leases", Some(200)) > 100);
}

/// R09: the driver's socket appears late, and the driver restarts in the middle of a creation.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn driver_may_come_late_and_restart() {
    let world = world(&[]);
    world.socket.restart(secs(90));
    let sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(95), "the bound claim", |world| world.is_bound("data")).await;
    script(&world, "CreateVolume", 1, Fault::Slow(secs(20)));
    world.add_claim("other", CLASS);
    sleep(secs(1)).await;
    world.socket.restart(secs(2));
    sleep(secs(1)).await;
    world.remove(CLAIMS, "other");
    comes(&world, secs(120), "the clean-up", |world| !succeeded(world, "DeleteVolume").is_empty()).await;
    assert_eq!((sidecar.outcome(), world.volumes_in_backend()), (None, 1));
    comes_to_rest(&world).await;
}

/// R13: watches are cut for two minutes, history is forgotten, objects go meanwhile.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn objects_deleted_while_watches_were_cut_are_noticed() {
    let world = world(&[]);
    let sidecar = world.start();
    (0..5).for_each(|number| drop(world.add_claim(&format!("data-{number}"), CLASS)));
    comes(&world, secs(5), "the bound claims", World::all_bound).await;
    script(&world, "CreateVolume", 100, fails(INTERNAL));
    world.add_claim("failing", CLASS);
    sleep(secs(5)).await;
    let watching = Match::any().verb("watch");
    let closed = world.server.faults().add(watching.clone(), Effect::Refuse { code: 503, retry_after_secs: None });
    world.server.faults().cut_watches(watching);
    (0..5).for_each(|number| world.remove(CLAIMS, &format!("data-{number}")));
    world.remove(CLAIMS, "failing");
    sleep(secs(120)).await;
    world.server.compact();
    world.server.faults().remove(closed);
    comes(&world, secs(60), "the end", empty).await;
    sleep(secs(60)).await;
    let calls = world.calls.of("CreateVolume").len();
    sleep(LONG).await;
    assert_eq!(world.calls.of("CreateVolume").len(), calls, "a claim that is gone is still tried");
    assert_eq!(sidecar.outcome(), None);
}

/// Nobody hears of this change: watches are cut, and there is no history to go on from.
async fn unseen(world: &World, change: impl FnOnce(&World)) {
    let watching = Match::any().verb("watch");
    let closed = world.server.faults().add(watching.clone(), Effect::Refuse { code: 503, retry_after_secs: None });
    world.server.faults().cut_watches(watching);
    sleep(secs(1)).await;
    change(world);
    sleep(secs(60)).await;
    world.server.compact();
    world.server.faults().remove(closed);
    sleep(secs(60)).await;
}

fn select(world: &World) {
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n1"));
}

/// R13 for classes and nodes.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn class_and_node_that_went_unseen_are_not_used() {
    let first = world(&[]);
    script(&first, "CreateVolume", 1, fails(INVALID_ARGUMENT));
    let _first = first.start();
    first.add_claim("data", CLASS);
    sleep(secs(5)).await;
    unseen(&first, |world| world.remove("storageclasses", CLASS)).await;
    // The refused request is held back for five minutes.
    sleep(secs(400)).await;
    assert_eq!(first.calls.of("CreateVolume").len(), 1);

    for plural in ["nodes", "csinodes"] {
        let world = world_with(with_places(), &["--strict-topology"]);
        add_class(&world, "late", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
        add_node(&world, "n1", "a");
        let _sidecar = world.start();
        world.add_claim("data", "late");
        sleep(secs(5)).await;
        unseen(&world, |world| world.remove(plural, "n1")).await;
        select(&world);
        sleep(secs(60)).await;
        assert_eq!(world.calls.of("CreateVolume").len(), 0, "{plural}");
    }
}

/// R13 for attachments and volume objects.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn detach_and_volume_object_that_went_unseen_are_noticed() {
    let world = world_with(DriverOptions { publish: true, ..DriverOptions::default() }, &[]);
    let sidecar = world.start();
    for name in ["data", "other"] {
        bound(&world, name).await;
    }
    let names = ["data", "other"].map(|name| text(&world.volume_of(name).expect("bound"), "/metadata/name").to_owned());
    for name in &names {
        attach(&world, &format!("attached-{name}"), name);
    }
    sleep(secs(1)).await;
    for name in ["data", "other"] {
        world.remove(CLAIMS, name);
    }
    sleep(secs(10)).await;
    unseen(&world, |world| {
        world.remove("volumeattachments", &format!("attached-{}", names[0]));
        world.edit(VOLUMES, "", &names[1], |volume| volume["metadata"]["finalizers"] = json!([]));
        world.remove(VOLUMES, &names[1]);
    })
    .await;
    comes(&world, secs(300), "the deletion", |world| world.all(VOLUMES).is_empty()).await;
    assert_eq!(world.calls.of("DeleteVolume").len(), 1);
    let remembered = "csi_provisioner_memory_entries{memory=\"volumes\"} 1";
    let metrics = sidecar.metrics();
    assert!(metrics.contains(remembered), "more than the deletion is remembered\n{metrics}");
}

/// R13 for the users of a source.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn clone_that_went_unseen_holds_its_source_no_longer() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    bound(&world, "source").await;
    bound(&world, "copied").await;
    add_claim(&world, "copy", CLASS, &clone_of("source"));
    comes(&world, secs(10), "the copy", World::all_bound).await;
    let mut small = clone_of("source");
    small["resources"] = json!({"requests": {"storage": "1Mi"}});
    add_claim(&world, "hopeless", CLASS, &small);
    sleep(secs(1)).await;
    world.remove(CLAIMS, "source");
    unseen(&world, |world| world.remove(CLAIMS, "hopeless")).await;
    assert!(world.claim("source").is_none(), "held by a clone that is gone");
}
