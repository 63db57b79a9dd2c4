//! An API server that asks for time, or does not know the roles yet.

use crate::support::*;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, VOLUMES, text};
use serde_json::{Value, json};
use tokio::time::sleep;

const RECORDS: [&str; 2] = ["--durable-intent=always", "--durable-intent-namespace=kube-system"];

fn refuse(world: &World, verb: &'static str, plural: &'static str, code: u16, times: u32) {
    let retry_after_secs = (code == 429).then_some(40);
    let matching = Match::any().verb(verb).resource(plural);
    world.server.faults().add_times(matching, Effect::Refuse { code, retry_after_secs }, times);
}

/// One request of this kind is refused with `Retry-After: 40`: it comes again after that time and not before, and the
/// claim hears nothing of it.
async fn gets_its_time(world: &World, verb: &'static str, plural: &'static str, act: impl FnOnce(&World)) {
    sleep(secs(5)).await;
    let count = |world: &World| world.requests_of(verb, plural, None);
    let before = count(world);
    refuse(world, verb, plural, 429, 1);
    act(world);
    sleep(secs(39)).await;
    assert_eq!(count(world), before + 1, "{verb} {plural}: again too early, or not at all\n{}", world.trace.text());
    comes(world, secs(5), &format!("the next {verb} {plural}"), |world| count(world) > before + 1).await;
    let failures = world.all("events").into_iter().filter(|event| event["type"] == "Warning").collect::<Vec<Value>>();
    assert_eq!(failures, Vec::<Value>::new(), "{verb} {plural}");
}

fn add_secret(world: &World) {
    let secret = json!({"metadata": {"name": "key", "namespace": NAMESPACE}, "data": {"user": "YWRtaW4="}});
    world.add("secrets", secret);
    let of_class = json!({
        "csi.storage.k8s.io/provisioner-secret-name": "key",
        "csi.storage.k8s.io/provisioner-secret-namespace": NAMESPACE,
    });
    add_class(world, "secret", &json!({"parameters": of_class}));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn creation_gives_a_busy_server_the_time_it_asks_for() {
    let world = world(&RECORDS);
    add_secret(&world);
    let _sidecar = world.start();
    let add = |name: &'static str, class: &'static str| move |world: &World| drop(world.add_claim(name, class));
    gets_its_time(&world, "create", VOLUMES, add("saved-late", CLASS)).await;
    gets_its_time(&world, "get", "secrets", add("secret-late", "secret")).await;
    gets_its_time(&world, "create", "configmaps", add("recorded-late", CLASS)).await;
    gets_its_time(&world, "delete", "configmaps", add("record-stays", CLASS)).await;
    comes(&world, secs(10), "all volumes", World::all_bound).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 4);
    comes_to_rest(&world).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn copy_gives_a_busy_server_the_time_it_asks_for() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    for number in 0..4 {
        bound(&world, &format!("source-{number}")).await;
    }
    add_snapshot(&world);
    let clone = |source: &'static str, name: &'static str| {
        move |world: &World| drop(add_claim(world, name, CLASS, &clone_of(source)))
    };
    gets_its_time(&world, "get", CLAIMS, clone("source-0", "copy-0")).await;
    gets_its_time(&world, "get", VOLUMES, clone("source-1", "copy-1")).await;
    gets_its_time(&world, "update", CLAIMS, clone("source-2", "copy-2")).await;
    let restore_as = |name: &'static str| move |world: &World| drop(add_claim(world, name, CLASS, &restore()));
    gets_its_time(&world, "get", "volumesnapshots", restore_as("copy-3")).await;
    sleep(secs(60)).await;
    gets_its_time(&world, "update", "volumesnapshots", restore_as("copy-4")).await;
    sleep(secs(60)).await;
    gets_its_time(&world, "get", "volumesnapshotcontents", restore_as("copy-5")).await;
    comes(&world, secs(10), "all volumes", World::all_bound).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletion_gives_a_busy_server_the_time_it_asks_for() {
    let world = world(&[]);
    add_secret(&world);
    let _sidecar = world.start();
    for name in ["first", "second", "third"] {
        world.add_claim(name, "secret");
    }
    comes(&world, secs(10), "all volumes", World::all_bound).await;
    sleep(secs(60)).await;
    let remove = |name: &'static str| move |world: &World| world.remove(CLAIMS, name);
    gets_its_time(&world, "get", "secrets", remove("first")).await;
    gets_its_time(&world, "delete", VOLUMES, remove("second")).await;
    gets_its_time(&world, "patch", VOLUMES, remove("third")).await;
    comes(&world, secs(10), "the end", empty).await;
    assert_eq!(world.calls.of("DeleteVolume").len(), 3);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn release_of_a_source_gives_a_busy_server_the_time_it_asks_for() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    bound(&world, "source").await;
    add_claim(&world, "copy", CLASS, &clone_of("source"));
    comes(&world, secs(10), "the copy", World::all_bound).await;
    gets_its_time(&world, "update", CLAIMS, |world| world.remove(CLAIMS, "source")).await;
    comes(&world, secs(5), "the end of the source", |world| world.claim("source").is_none()).await;
}

/// Ten minutes of 429 with the shortest wait: back-off all the same, and few events.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn busy_server_meets_no_hot_loop_and_no_flood_of_events() {
    let world = world(&[]);
    let busy = Effect::Refuse { code: 429, retry_after_secs: Some(1) };
    let rule = world.server.faults().add(Match::any().verb("create").resource(VOLUMES), busy);
    let _sidecar = world.start();
    (0..100).for_each(|number| drop(world.add_claim(&format!("data-{number}"), CLASS)));
    sleep(secs(600)).await;
    let tries = world.requests_of("create", VOLUMES, Some(429));
    assert!((900..=1100).contains(&tries), "{tries} tries of 100 claims");
    let failures = |(reason, _, count): &(String, String, i64)| if reason == "ProvisioningFailed" { *count } else { 0 };
    let told: Vec<i64> =
        (0..100).map(|number| world.events_about(&format!("data-{number}")).iter().map(failures).sum()).collect();
    assert!(told.iter().all(|count| (1..=5).contains(count)), "{told:?}");
    world.server.faults().remove(rule);
    comes(&world, secs(301), "all volumes", World::all_bound).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 100);
}

/// 403 from a server that has just started is no missing right: the snapshot is protected before it is copied (W41).
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn restore_waits_until_the_server_knows_that_snapshots_may_be_protected() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    bound(&world, "source").await;
    add_snapshot(&world);
    refuse(&world, "update", "volumesnapshots", 403, 3);
    add_claim(&world, "copy", CLASS, &restore());
    comes(&world, secs(30), "the copy", |world| world.is_bound("copy")).await;
    assert!(world.requests_of("update", "volumesnapshots", Some(200)) > 0, "copied without protection");
}

/// A right that is really missing is found out once; later restores go on at once.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn restores_go_on_without_the_right_to_protect_snapshots() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    bound(&world, "source").await;
    add_snapshot(&world);
    refuse(&world, "update", "volumesnapshots", 403, u32::MAX);
    add_claim(&world, "first", CLASS, &restore());
    comes(&world, secs(30), "the first copy", |world| world.is_bound("first")).await;
    add_claim(&world, "second", CLASS, &restore());
    comes(&world, secs(1), "the second copy", |world| world.is_bound("second")).await;
}

/// Nothing is destroyed with half of what it needs because the server does not know the roles yet.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletion_waits_until_the_server_knows_that_its_secret_may_be_read() {
    let world = world(&[]);
    add_secret(&world);
    let _sidecar = world.start();
    world.add_claim("data", "secret");
    comes(&world, secs(10), "the volume", World::all_bound).await;
    sleep(secs(60)).await;
    refuse(&world, "get", "secrets", 403, 3);
    refuse(&world, "get", "secrets", 500, 2);
    let read = world.requests_of("get", "secrets", None);
    world.remove(CLAIMS, "data");
    comes(&world, secs(60), "the end", empty).await;
    assert_eq!((world.requests_of("get", "secrets", None) - read, world.calls.of("DeleteVolume").len()), (6, 1));
}

/// The records of the leader before are read although the server refuses at first.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn open_creations_are_taken_over_from_a_server_that_does_not_know_the_roles_yet() {
    let world = world(&RECORDS);
    let first = world.start();
    script(&world, "CreateVolume", 1, csi_provisioner::sandbox::driver::script::Fault::Slow(secs(30)));
    world.add_claim("data", CLASS);
    sleep(secs(2)).await;
    first.kill().await;
    world.remove(CLAIMS, "data");
    refuse(&world, "list", "configmaps", 403, 3);
    let _second = world.start();
    comes_to_rest(&world).await;
    assert!(
        empty(&world),
        "{:?}",
        world.all(VOLUMES).iter().map(|one| text(one, "/metadata/name").to_owned()).collect::<Vec<_>>()
    );
}

/// Design, numbers to beat: 60 claims at the default limit, a stop right after them, and every event is there.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn all_events_of_a_burst_are_delivered_by_the_stop() {
    let world = world(&["--kube-api-qps=5", "--kube-api-burst=10"]);
    let sidecar = world.start();
    (0..60).for_each(|number| drop(world.add_claim(&format!("data-{number}"), CLASS)));
    comes(&world, secs(11), "all volumes", World::all_bound).await;
    let began = tokio::time::Instant::now();
    sidecar.terminate();
    sidecar.ended().await;
    assert!(began.elapsed() <= secs(7), "the stop took {:?}", began.elapsed());
    let ours = |event: &&Value| matches!(text(event, "/reason"), "Provisioning" | "ProvisioningSucceeded");
    assert_eq!(world.all("events").iter().filter(ours).count(), 120);
}

/// What is open at a stop is written down although the API server refuses the first tries: nobody else knows of it.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn open_creation_is_recorded_at_the_stop_although_the_first_tries_fail() {
    let world = world(&["--durable-intent=uncertain", "--durable-intent-namespace=kube-system"]);
    let first = world.start();
    script(&world, "CreateVolume", 1, csi_provisioner::sandbox::driver::script::Fault::HangAfter);
    world.add_claim("data", CLASS);
    sleep(secs(5)).await;
    world.remove(CLAIMS, "data");
    refuse(&world, "create", "configmaps", 409, 3);
    first.terminate();
    first.ended().await;
    let _second = world.start();
    comes_to_rest(&world).await;
    assert!(empty(&world), "{:?}", world.findings());
}
