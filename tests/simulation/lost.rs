//! Lost and leaked volumes.

use crate::support::*;
use csi_provisioner::sandbox::apiserver::DeleteOptions;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::driver::script::Fault;
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::cable::Side;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, SELECTED_NODE, VOLUMES, text};
use csi_provisioner::sandbox::simulate::socket::{Break, Twist};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// L01: the claim is gone while the driver still works on its volume.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unresolved_creation_of_a_deleted_claim_is_finished_and_cleaned() {
    for code in [1, 4, 10, UNAVAILABLE] {
        let world = world(&["--timeout=1s"]);
        script(&world, "CreateVolume", 1, Fault::Slow(secs(3)));
        script(&world, "CreateVolume", 1, Fault::FailAfter(code, "not yet".to_owned()));
        let _sidecar = world.start();
        world.add_claim("data", CLASS);
        comes(&world, secs(10), "the second call", |world| world.calls.of("CreateVolume").len() == 2).await;
        world.remove(CLAIMS, "data");
        comes(&world, LONG, "the clean-up", |world| empty(world) && !succeeded(world, "DeleteVolume").is_empty()).await;
        assert!(all_equal(&world.calls.of("CreateVolume")));
        assert_eq!(succeeded(&world, "DeleteVolume").len(), 1);
        comes_to_rest(&world).await;
    }
}

/// L01: the same for a connection that broke after the driver had made the volume.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn broken_connection_says_nothing_about_the_volume() {
    let world = world(&[]);
    let side = Side::After;
    world.socket.break_next(Break { method: "CreateVolume", subject: String::new(), times: 1, side });
    script(&world, "CreateVolume", 1, Fault::Slow(secs(1)));
    let _sidecar = world.start();
    world.add_claim("data", CLASS);
    sleep(Duration::from_millis(500)).await;
    world.remove(CLAIMS, "data");
    comes(&world, LONG, "the clean-up", |world| empty(world) && !succeeded(world, "DeleteVolume").is_empty()).await;
    assert!(world.calls.of("CreateVolume").len() > 1 && all_equal(&world.calls.of("CreateVolume")));
    comes_to_rest(&world).await;
}

/// L02: with a record, also a killed process loses nothing; `tests/leaks` tries every moment.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn recorded_creation_is_finished_by_the_next_leader() {
    let world = world(&["--durable-intent=always", "--durable-intent-namespace=kube-system"]);
    script(&world, "CreateVolume", 1, Fault::HangAfter);
    let sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(10), "the call", |world| world.volumes_in_backend() == 1).await;
    sidecar.kill().await;
    world.remove(CLAIMS, "data");
    let _next = world.start();
    comes(&world, LONG, "the clean-up", empty).await;
    assert!(all_equal(&world.calls.of("CreateVolume")));
    comes_to_rest(&world).await;
}

/// L02, variant: the record reaches the API server only when the process that wrote it is dead and its successor has
/// finished the creation.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn record_that_comes_late_is_found_by_the_same_leader() {
    let world = world(&["--durable-intent=always", "--durable-intent-namespace=kube-system"]);
    script(&world, "CreateVolume", 1, Fault::HangAfter);
    let sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(10), "the call", |world| world.volumes_in_backend() == 1).await;
    let mut record = world.all("configmaps").pop().expect("a record");
    sidecar.kill().await;
    let _next = world.start();
    comes(&world, LONG, "the bound claim", |world| world.is_bound("data")).await;
    comes(&world, LONG, "the end of the record", |world| world.all("configmaps").is_empty()).await;
    record["metadata"]["resourceVersion"].take();
    record["metadata"]["uid"].take();
    world.add("configmaps", record);
    comes(&world, secs(200), "the end of the late record", |world| world.all("configmaps").is_empty()).await;
    assert_eq!((world.all(VOLUMES).len(), world.volumes_in_backend()), (1, 1));
    comes_to_rest(&world).await;
}

/// L02, variant: the creation is finished, but the removal of its record takes longer than its process lives. Asked again
/// while the volume is on its way out, the driver would make another one.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn record_of_a_finished_creation_makes_no_second_volume() {
    let world = world(&["--durable-intent=always", "--durable-intent-namespace=kube-system"]);
    let removal = Match::any().verb("delete").resource("configmaps");
    world.server.faults().add_times(removal, Effect::Delay(secs(20)), 1);
    let sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(10), "the bound claim", |world| world.is_bound("data")).await;
    world.remove(CLAIMS, "data");
    sleep(secs(5)).await;
    assert_eq!(world.volumes_in_backend(), 1, "the volume goes only when the record is gone");
    sidecar.kill().await;
    let _next = world.start();
    comes(&world, secs(60), "the clean-up", empty).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 1);
    comes_to_rest(&world).await;
}

/// L03: the volume object is deleted before its claim.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_object_deleted_first_goes_after_its_storage() {
    let world = world(&[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    let volume = world.volume_of("data").expect("bound");
    world.remove(VOLUMES, text(&volume, "/metadata/name"));
    sleep(secs(60)).await;
    assert_eq!((world.all(VOLUMES).len(), world.volumes_in_backend()), (1, 1));
    world.remove(CLAIMS, "data");
    comes(&world, secs(10), "the end of the volume", empty).await;
    assert_eq!(succeeded(&world, "DeleteVolume").len(), 1);
    comes_to_rest(&world).await;
}

/// L03: a volume object from before the finalizer existed gets it.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_object_without_our_finalizer_gets_it_back() {
    let world = world(&[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    let finalizers =
        |world: &World| world.server.get(VOLUMES, "", &name).expect("there")["metadata"]["finalizers"].clone();
    let before = finalizers(&world);
    world.edit(VOLUMES, "", &name, |volume| volume["metadata"]["finalizers"] = json!(["kubernetes.io/pv-protection"]));
    comes(&world, secs(5), "our finalizer", |world| {
        finalizers(world).as_array().map(Vec::len) == before.as_array().map(Vec::len)
    })
    .await;
}

/// L04: snapshot and claim are deleted while the restore runs in the background. S07: the snapshot gets free again.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn restore_that_runs_keeps_its_snapshot_until_it_is_resolved() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    bound(&world, "source").await;
    add_snapshot(&world);
    script(&world, "CreateVolume", 1, Fault::Slow(secs(30)));
    add_claim(&world, "copy", CLASS, &restore());
    sleep(secs(12)).await;
    world.remove(CLAIMS, "copy");
    world.server.delete("volumesnapshots", NAMESPACE, "snap", &DeleteOptions::default()).expect("marked");
    sleep(secs(5)).await;
    assert_eq!(world.all("volumesnapshots").len(), 1, "the snapshot went while the restore ran");
    comes(&world, LONG, "the end of the copy", |world| !succeeded(world, "DeleteVolume").is_empty()).await;
    assert_eq!(world.volumes_in_backend(), 1);
    comes(&world, secs(10), "the end of the snapshot", |world| world.all("volumesnapshots").is_empty()).await;
    assert!(all_equal(&world.calls.of("CreateVolume")[1..]));
    comes_to_rest(&world).await;
}

/// L07: the selected node goes while the creation is unresolved.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unresolved_creation_keeps_its_topology_when_the_node_is_gone() {
    let world = world_with(with_places(), &["--strict-topology"]);
    add_class(&world, "late", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    add_node(&world, "n1", "a");
    script(&world, "CreateVolume", 1, Fault::Slow(secs(30)));
    let _sidecar = world.start();
    world.add_claim("data", "late");
    sleep(secs(1)).await;
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n1"));
    sleep(secs(12)).await;
    world.remove("nodes", "n1");
    world.remove("csinodes", "n1");
    // Asked again meanwhile, with the claim still there.
    sleep(secs(15)).await;
    world.remove(CLAIMS, "data");
    comes(&world, LONG, "the clean-up", |world| empty(world) && !succeeded(world, "DeleteVolume").is_empty()).await;
    assert!(world.calls.of("CreateVolume").len() > 1 && all_equal(&world.calls.of("CreateVolume")));
    comes_to_rest(&world).await;
}

/// L08 a: the volume is too small, and its deletion fails for a while.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_that_is_too_small_is_deleted_before_another_is_made() {
    let world = world(&[]);
    world.socket.twist_next(Twist::Size(1 << 20));
    script(&world, "DeleteVolume", 2, fails(UNAVAILABLE));
    let _sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(60), "the bound claim", |world| world.is_bound("data")).await;
    let (created, deleted) = (succeeded(&world, "CreateVolume"), succeeded(&world, "DeleteVolume"));
    assert_eq!((created.len(), deleted.len(), world.volumes_in_backend()), (2, 1, 1));
    assert!(created[1].sent >= deleted[0].end.expect("ended").0, "two volumes existed at once");
    assert!(world.events_about("data").iter().any(|(_, text, _)| text.contains("1048576")));
    comes_to_rest(&world).await;
}

/// L08 b: the volume was not filled from the snapshot.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_without_the_asked_content_never_reaches_a_claim() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    bound(&world, "source").await;
    add_snapshot(&world);
    world.socket.twist_next(Twist::NoSource);
    add_claim(&world, "copy", CLASS, &restore());
    comes(&world, secs(60), "the bound copy", |world| world.is_bound("copy")).await;
    assert_eq!((succeeded(&world, "DeleteVolume").len(), world.volumes_in_backend()), (1, 2));
    comes_to_rest(&world).await;
}

/// L09: the volume object cannot be saved for ten minutes.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn created_volume_waits_for_the_api_server() {
    let world = world(&[]);
    let saving = Match::any().verb("create").resource(VOLUMES);
    let rule = world.server.faults().add(saving, Effect::Refuse { code: 500, retry_after_secs: None });
    let _sidecar = world.start();
    world.add_claim("data", CLASS);
    sleep(secs(600)).await;
    world.server.faults().remove(rule);
    comes(&world, secs(310), "the bound claim", |world| world.is_bound("data")).await;
    assert_eq!((world.calls.of("CreateVolume").len(), world.calls.of("DeleteVolume").len()), (1, 0));
    comes_to_rest(&world).await;
}

/// L09, variant: the first save got through and its answer was lost.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_object_that_was_saved_unseen_is_recognised() {
    let world = world(&[]);
    let saving = Match::any().verb("create").resource(VOLUMES);
    world.server.faults().add_times(saving, Effect::RefuseAfter { code: 500 }, 1);
    let _sidecar = world.start();
    bound(&world, "data").await;
    sleep(secs(60)).await;
    assert_eq!((world.calls.of("CreateVolume").len(), world.calls.of("DeleteVolume").len()), (1, 0));
    assert!(world.events_about("data").iter().any(|(reason, ..)| reason == "ProvisioningSucceeded"));
    comes_to_rest(&world).await;
}

/// L10: the class, and then also the secret, are gone when the volume is to be deleted.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletion_uses_the_secret_named_at_creation_whatever_became_of_the_class() {
    let world = world(&[]);
    let secret = |name: &str| {
        let prefix = "csi.storage.k8s.io/provisioner-secret";
        json!({"parameters": {format!("{prefix}-name"): name, format!("{prefix}-namespace"): NAMESPACE}})
    };
    let data = |text: &str| json!({"metadata": {"name": text, "namespace": NAMESPACE}, "data": {"k": "c2VjcmV0"}});
    world.add("secrets", data("first"));
    add_class(&world, "keyed", &secret("first"));
    let _sidecar = world.start();
    for name in ["data", "other"] {
        world.add_claim(name, "keyed");
        comes(&world, secs(10), "the bound claim", |world| world.is_bound(name)).await;
    }
    world.remove("storageclasses", "keyed");
    add_class(&world, "keyed", &secret("second"));
    world.remove(CLAIMS, "data");
    comes(&world, secs(10), "the deletion", |world| world.volumes_in_backend() == 1).await;
    world.remove("secrets", "first");
    // What was read may be used for half a minute.
    sleep(secs(60)).await;
    let other = text(&world.volume_of("other").expect("bound"), "/metadata/name").to_owned();
    script(&world, "DeleteVolume", 1, fails(UNAUTHENTICATED));
    world.remove(CLAIMS, "other");
    comes(&world, secs(10), "the deletion without a secret", empty).await;
    let told = world.events_about(&other);
    assert!(told.iter().any(|(_, text, _)| text.contains("without its secret: secret first")), "{told:?}");
    let asked: Vec<usize> =
        world.driver.script().calls_of("DeleteVolume").iter().map(|call| call.request.len()).collect();
    assert!(asked[0] > asked[1], "the first call carries the secret, the others cannot: {asked:?}");
    comes_to_rest(&world).await;
}

/// L13: the volume is attached still. U01: waiting is no warning, and told once a minute at most.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn attached_volume_is_deleted_within_a_second_after_its_detach() {
    let world = world_with(DriverOptions { publish: true, ..DriverOptions::default() }, &[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    attach(&world, "attached", &name);
    sleep(secs(1)).await;
    world.remove(CLAIMS, "data");
    sleep(secs(100)).await;
    assert_eq!(world.calls.of("DeleteVolume").len(), 0);
    let told = world.events_about(&name);
    assert!(told.iter().all(|(reason, ..)| reason == "VolumeDelete"), "{told:?}");
    let times: i64 = told.iter().map(|(.., count)| count).sum();
    assert!((1..=2).contains(&times), "{told:?}");
    world.remove("volumeattachments", "attached");
    comes(&world, secs(1), "the deletion", |world| world.volumes_in_backend() == 0).await;
    comes_to_rest(&world).await;
}

/// An administrator keeps a volume while the sidecar only knows an older list.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_that_an_administrator_kept_survives_a_list_from_before() {
    let world = world(&[]);
    let sidecar = world.start();
    bound(&world, "data").await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    sidecar.kill().await;
    world.remove(CLAIMS, "data");
    comes(&world, secs(10), "the release", |world| {
        world.server.get(VOLUMES, "", &name).is_ok_and(|volume| text(&volume, "/status/phase") == "Released")
    })
    .await;
    let before = world.server.revision();
    world.edit(VOLUMES, "", &name, |volume| volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain"));
    let stale = Effect::Stale { revisions: world.server.revision() - before };
    world.server.faults().add_times(Match::any().resource(VOLUMES).verb("watch"), stale.clone(), 1);
    world.server.faults().add(Match::any().resource(VOLUMES).verb("watch"), Effect::Freeze);
    let _next = world.start();
    sleep(secs(3600)).await;
    assert_eq!((world.calls.of("DeleteVolume").len(), world.volumes_in_backend()), (0, 1));
    assert_eq!(world.all(VOLUMES).len(), 1);
}
