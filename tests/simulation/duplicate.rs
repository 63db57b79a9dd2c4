//! Duplicate volumes and duplicate calls.

use crate::support::*;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::driver::script::Fault;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, VOLUMES, claim};
use csi_provisioner::sandbox::simulate::{Options, World};
use serde_json::json;
use tokio::time::sleep;

/// D01: three failures, and a restart between the second and the third.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn all_attempts_of_all_replicas_use_one_name() {
    let world = world(&[]);
    script(&world, "CreateVolume", 3, fails(UNAVAILABLE));
    let sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(10), "the second call", |world| world.calls.of("CreateVolume").len() == 2).await;
    sidecar.kill().await;
    let _next = world.start();
    comes(&world, secs(60), "the bound claim", |world| world.is_bound("data")).await;
    let calls = world.calls.of("CreateVolume");
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call.subject == calls[0].subject));
    comes_to_rest(&world).await;
}

/// D02: the claim is edited while its volume is made, and the watch of volume objects lags. W8: whatever the prefix of names.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn edits_during_a_creation_start_no_second_one() {
    for flags in [&[][..], &["--volume-name-prefix=vol"]] {
        let world = world(flags);
        script(&world, "CreateVolume", 1, Fault::Slow(secs(5)));
        let _sidecar = world.start();
        world.add_claim("data", CLASS);
        sleep(secs(1)).await;
        let frozen = world.server.faults().add(Match::any().resource(VOLUMES).verb("watch"), Effect::Freeze);
        for number in 0..10 {
            world.edit(CLAIMS, NAMESPACE, "data", |claim| {
                claim["metadata"]["annotations"]["n"] = json!(number.to_string())
            });
            sleep(secs(1)).await;
        }
        world.server.faults().remove(frozen);
        comes(&world, secs(10), "the bound claim", |world| world.is_bound("data")).await;
        assert_eq!(world.calls.of("CreateVolume").len(), 1);
        comes_to_rest(&world).await;
    }
}

/// W8: the process ends between save and bind; the next one finds the volume object and asks for nothing.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_object_of_an_earlier_process_is_enough() {
    // Nobody binds here.
    let world = World::new(Options { seed: 1, alone: true, ..Options::default() });
    world.add_class(CLASS);
    let sidecar = world.start();
    let mut data = claim("data", CLASS);
    data["metadata"]["annotations"] = json!({"volume.kubernetes.io/storage-provisioner": world.driver.name()});
    world.add(CLAIMS, data);
    comes(&world, secs(10), "the volume object", |world| !world.all(VOLUMES).is_empty()).await;
    sidecar.kill().await;
    let _next = world.start();
    sleep(secs(60)).await;
    assert_eq!((world.calls.of("CreateVolume").len(), world.requests_of("create", VOLUMES, None)), (1, 1));
}

/// D03: the claim is for the in-tree plug-in.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_of_another_provisioner_is_left_alone() {
    let world = world(&[]);
    add_class(&world, "foreign", &json!({"provisioner": "kubernetes.io/aws-ebs"}));
    let _sidecar = world.start();
    world.add_claim("data", "foreign");
    sleep(LONG).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 0);
    let told = world.events_about("data");
    assert!(told.iter().all(|(reason, ..)| reason == "ExternalProvisioning"), "{told:?}");
    assert_eq!(world.requests_of("create", "events", None), 0);
}

/// D04: the creation takes longer than the deadline of a call.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn slow_creation_is_asked_again_and_never_deleted() {
    let world = world(&["--timeout=10s"]);
    script(&world, "CreateVolume", 1, Fault::Slow(secs(25)));
    let _sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(120), "the bound claim", |world| world.is_bound("data")).await;
    assert_eq!(world.calls.of("DeleteVolume").len(), 0);
    assert!(all_equal(&world.calls.of("CreateVolume")));
    comes_to_rest(&world).await;
}

/// D05: the watch tells our own writes a second late.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_is_deleted_once_although_the_watch_lags() {
    let world = world(&[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    let patching = Match::any().verb("patch").resource(VOLUMES);
    world.server.faults().add_times(patching, Effect::Delay(secs(2)), 1);
    world.remove(CLAIMS, "data");
    // The deletion of the object is seen, the end of its finalizer is not.
    sleep(secs(1)).await;
    let frozen = world.server.faults().add(Match::any().resource(VOLUMES).verb("watch"), Effect::Freeze);
    sleep(secs(5)).await;
    world.server.faults().remove(frozen);
    comes(&world, secs(10), "the end", empty).await;
    assert_eq!(world.calls.of("DeleteVolume").len(), 1);
    assert_eq!(world.requests_of("delete", VOLUMES, None), 1);
    comes_to_rest(&world).await;
}
