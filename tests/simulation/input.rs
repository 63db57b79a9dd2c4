//! Bad input from users and drivers.

use crate::support::*;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, VOLUMES, text};
use csi_provisioner::sandbox::simulate::socket::Twist;
use csi_provisioner::sandbox::simulate::{Options, World};
use serde_json::json;
use tokio::time::sleep;

/// B01: an administrator removed the claim reference of a released volume object.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn released_volume_object_without_claim_harms_nobody() {
    let world = world(&[]);
    let sidecar = world.start();
    bound(&world, "data").await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    script(&world, "DeleteVolume", 3, fails(UNAVAILABLE));
    world.remove(CLAIMS, "data");
    comes(&world, secs(5), "a failed deletion", |world| !world.calls.of("DeleteVolume").is_empty()).await;
    world.edit(VOLUMES, "", &name, |volume| {
        volume["spec"].as_object_mut().expect("an object").remove("claimRef");
    });
    sleep(LONG).await;
    assert_eq!(sidecar.outcome(), None);
    bound(&world, "next").await;
}

/// B01: the same for one from the time before the secret was noted on it: its class tells of a secret named like the claim.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn released_volume_object_without_claim_is_deleted_without_secret() {
    // Nobody but the sidecar looks after this one.
    let world = World::new(Options { seed: 1, alone: true, ..Options::default() });
    let prefix = "csi.storage.k8s.io/provisioner-secret";
    let named = json!({format!("{prefix}-name"): "${pvc.name}", format!("{prefix}-namespace"): "${pvc.namespace}"});
    add_class(&world, CLASS, &json!({"parameters": named}));
    let driver = world.driver.name();
    let volume = json!({
        "metadata": {"name": "old", "annotations": {"pv.kubernetes.io/provisioned-by": driver}},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Delete", "csi": {"driver": driver, "volumeHandle": "handle"},
        },
    });
    add_with_status(&world, VOLUMES, volume, json!({"phase": "Released"}));
    let sidecar = world.start();
    comes(&world, secs(10), "the deletion", |world| world.all(VOLUMES).is_empty()).await;
    assert_eq!((succeeded(&world, "DeleteVolume").len(), sidecar.outcome()), (1, None));
}

/// B02: the data source is of a kind that we do not know.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_for_a_populator_is_told_once_and_left_alone() {
    let world = world(&[]);
    let _sidecar = world.start();
    let source = json!({"dataSourceRef": {"apiGroup": "example.org", "kind": "Foo", "name": "x"}});
    add_claim(&world, "data", CLASS, &source);
    sleep(LONG).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 0);
    let told = world.events_about("data");
    let ours: Vec<_> = told.iter().filter(|(reason, ..)| reason == "Provisioning").collect();
    assert_eq!((ours.len(), ours[0].2), (1, 1), "{told:?}");
}

/// B04: the driver does not tell the size.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_of_unknown_size_counts_as_large_as_was_asked() {
    let world = world(&[]);
    world.socket.twist_next(Twist::Size(0));
    let _sidecar = world.start();
    bound(&world, "data").await;
    assert_eq!(text(&world.volume_of("data").expect("bound"), "/spec/capacity/storage"), "1Gi");
    assert_eq!(world.calls.of("CreateVolume").len(), 1);
}

/// B05: the driver made the volume larger.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_object_has_the_size_that_the_driver_told() {
    for (bytes, told) in [(1_073_741_825, "1073741825"), (5 << 30, "5Gi")] {
        let world = world(&[]);
        world.socket.twist_next(Twist::Size(bytes));
        let _sidecar = world.start();
        bound(&world, "data").await;
        assert_eq!(text(&world.volume_of("data").expect("bound"), "/spec/capacity/storage"), told);
    }
}

/// W22: an OK answer without a volume ends nothing.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn answer_without_a_volume_is_asked_again() {
    let world = world(&[]);
    world.socket.twist_next(Twist::NoVolume);
    let _sidecar = world.start();
    bound(&world, "data").await;
    assert_eq!((world.calls.of("CreateVolume").len(), world.volumes_in_backend()), (2, 1));
    comes_to_rest(&world).await;
}
