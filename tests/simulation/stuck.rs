//! Stuck objects.

use crate::support::*;
use csi_provisioner::sandbox::apiserver::DeleteOptions;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::driver::script::Fault;
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, SELECTED_NODE, VOLUMES, text};
use serde_json::{Value, json};
use tokio::time::sleep;

fn selected_node(world: &World, claim: &str) -> String {
    let claim = world.claim(claim).expect("there");
    claim["metadata"]["annotations"][SELECTED_NODE].as_str().unwrap_or_default().to_owned()
}

/// S01: the selected node does not exist. S02: neither does its registration.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_for_a_missing_node_is_given_back_to_the_scheduler() {
    let world = world_with(with_places(), &[]);
    add_class(&world, "late", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    add_node(&world, "n2", "a");
    let _sidecar = world.start();
    world.add_claim("data", "late");
    sleep(secs(1)).await;
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n1"));
    comes(&world, secs(5), "the free claim", |world| selected_node(world, "data").is_empty()).await;
    assert!(world.events_about("data").iter().any(|(reason, ..)| reason == "ProvisioningFailed"));
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n2"));
    comes(&world, secs(5), "the bound claim", |world| world.is_bound("data")).await;
    comes_to_rest(&world).await;
}

/// S04: a failure, a running attempt and an edit meet.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_edited_during_a_failing_attempt_is_tried_again() {
    let world = world(&[]);
    script(&world, "CreateVolume", 1, fails(INTERNAL));
    script(&world, "CreateVolume", 1, Fault::HangBefore);
    script(&world, "CreateVolume", 1, fails(INTERNAL));
    let _sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(10), "the second call", |world| world.calls.of("CreateVolume").len() == 2).await;
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"]["note"] = json!("edited"));
    comes(&world, secs(60), "the bound claim", |world| world.is_bound("data")).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 4);
    comes_to_rest(&world).await;
}

/// S05: the removal of the finalizer collides twice, and somebody else removes his own meanwhile.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn finalizer_goes_after_conflicts_without_a_second_deletion() {
    let world = world(&[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    world.edit(VOLUMES, "", &name, |volume| {
        let finalizers = volume["metadata"]["finalizers"].as_array_mut().expect("some");
        finalizers.push(json!("attacher.example/in-use"));
    });
    let patching = Match::any().verb("patch").resource(VOLUMES);
    world.server.faults().add_times(patching, Effect::Refuse { code: 409, retry_after_secs: None }, 2);
    world.remove(CLAIMS, "data");
    comes(&world, secs(60), "the end of our finalizer", |world| {
        world
            .server
            .get(VOLUMES, "", &name)
            .is_ok_and(|volume| volume["metadata"]["finalizers"] == json!(["attacher.example/in-use"]))
    })
    .await;
    world.edit(VOLUMES, "", &name, |volume| volume["metadata"]["finalizers"] = json!([]));
    comes(&world, secs(5), "the end", empty).await;
    assert_eq!(world.calls.of("DeleteVolume").len(), 1);
    comes_to_rest(&world).await;
}

/// S07: the restore fails for good, its claim goes, and the process was killed in between.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn snapshot_is_free_again_after_a_failed_restore_and_a_crash() {
    for killed in [false, true] {
        let world = world_with(capable(), &[]);
        let sidecar = world.start();
        bound(&world, "source").await;
        add_snapshot(&world);
        script(&world, "CreateVolume", 1000, fails(INTERNAL));
        add_claim(&world, "copy", CLASS, &restore());
        sleep(secs(10)).await;
        let finalizers = world.all("volumesnapshots")[0]["metadata"]["finalizers"].clone();
        assert!(finalizers.as_array().is_some_and(|all| !all.is_empty()), "not protected while it is copied");
        let next = if killed {
            sidecar.kill().await;
            None
        } else {
            Some(sidecar)
        };
        let refused = Effect::Refuse { code: 500, retry_after_secs: None };
        world.server.faults().add_times(Match::any().verb("update").resource("volumesnapshots"), refused, 1);
        world.remove(CLAIMS, "copy");
        let _next = next.unwrap_or_else(|| world.start());
        world.server.delete("volumesnapshots", NAMESPACE, "snap", &DeleteOptions::default()).expect("marked or gone");
        // Only what was left behind has to wait for the sweep.
        let limit = if killed { 400 } else { 10 };
        comes(&world, secs(limit), "the end of the snapshot", |world| world.all("volumesnapshots").is_empty()).await;
    }
}

/// S08, W36: one clone runs, another one can never succeed, and goes or stays.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn clone_source_lives_until_its_clones_are_resolved_or_hopeless() {
    for stays in [false, true] {
        let world = world_with(capable(), &[]);
        let _sidecar = world.start();
        bound(&world, "source").await;
        script(&world, "CreateVolume", 1, Fault::Slow(secs(8)));
        add_claim(&world, "running", CLASS, &clone_of("source"));
        sleep(secs(1)).await;
        let mut small = clone_of("source");
        small["resources"] = json!({"requests": {"storage": "1Mi"}});
        add_claim(&world, "hopeless", CLASS, &small);
        sleep(secs(1)).await;
        world.remove(CLAIMS, "source");
        sleep(secs(3)).await;
        assert!(world.claim("source").is_some(), "the source went while it was copied");
        comes(&world, secs(20), "the copy", |world| world.is_bound("running")).await;
        if stays {
            sleep(secs(240)).await;
            assert!(world.claim("source").is_some(), "another leader may have begun the other copy");
            comes(&world, secs(60), "the end of the source", |world| world.claim("source").is_none()).await;
            world.remove(CLAIMS, "hopeless");
        } else {
            world.remove(CLAIMS, "hopeless");
            comes(&world, secs(10), "the end of the source", |world| world.claim("source").is_none()).await;
        }
        comes_to_rest(&world).await;
    }
}

fn static_volume(world: &World, name: &str, driver: &str, policy: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "none",
            "persistentVolumeReclaimPolicy": policy,
            "csi": {"driver": driver, "volumeHandle": format!("handle-{name}")},
        },
        "status": {"phase": if world.is_bound(name) { "Bound" } else { "Available" }},
    })
}

/// S09 a: a volume object made by hand for our driver.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn static_volume_of_our_driver_is_deleted_and_goes() {
    let world = world(&[]);
    let _sidecar = world.start();
    let volume = static_volume(&world, "by-hand", world.driver.name(), "Delete");
    world.add(VOLUMES, volume);
    world.add_claim("data", "none");
    comes(&world, secs(60), "the bound claim", |world| world.is_bound("data")).await;
    sleep(secs(5)).await;
    world.remove(CLAIMS, "data");
    comes(&world, secs(30), "the end", |world| world.all(VOLUMES).is_empty()).await;
    let calls = world.calls.of("DeleteVolume");
    assert_eq!((calls.len(), calls[0].subject.as_str()), (1, "handle-by-hand"));
}

/// S09 b: the policy is changed to Retain, then the volume object is deleted.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn retained_volume_object_goes_without_its_storage() {
    let world = world(&[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    world.edit(VOLUMES, "", &name, |volume| volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain"));
    sleep(secs(5)).await;
    world.remove(CLAIMS, "data");
    world.remove(VOLUMES, &name);
    comes(&world, secs(10), "the end of the object", |world| world.all(VOLUMES).is_empty()).await;
    sleep(LONG).await;
    assert_eq!((world.calls.of("DeleteVolume").len(), world.volumes_in_backend()), (0, 1));
}

/// S09 c: a volume object of another driver.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_object_of_another_driver_is_never_touched() {
    let world = world(&[]);
    let _sidecar = world.start();
    let volume = static_volume(&world, "foreign", "other.example", "Delete");
    world.add(VOLUMES, volume);
    world.add_claim("data", "none");
    comes(&world, secs(60), "the bound claim", |world| world.is_bound("data")).await;
    world.remove(CLAIMS, "data");
    sleep(LONG).await;
    assert_eq!(world.calls.of("DeleteVolume").len(), 0);
    let writes = ["update", "patch", "delete"].map(|verb| world.requests_of(verb, VOLUMES, None));
    assert_eq!(writes, [0, 0, 0]);
}
