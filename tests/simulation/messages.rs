//! What users see.

use crate::support::*;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, VOLUMES, text};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// U02: the last word is the success, once, and names the volume.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn success_is_told_once_after_failures() {
    let world = world(&[]);
    script(&world, "CreateVolume", 2, fails(INTERNAL));
    let _sidecar = world.start();
    bound(&world, "data").await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    comes_to_rest(&world).await;
    let told = world.events_about("data");
    let successes: Vec<_> = told.iter().filter(|(reason, ..)| reason == "ProvisioningSucceeded").collect();
    assert_eq!(successes.len(), 1, "{told:?}");
    assert!(successes[0].1.contains(&name) && successes[0].2 == 1, "{told:?}");
    let begun = told.iter().filter(|(reason, ..)| reason == "Provisioning");
    assert_eq!(begun.map(|(.., count)| count).sum::<i64>(), 1, "{told:?}");
}

/// U09: a secret that is not there is named, and nothing is asked of the driver.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn missing_secret_is_named_before_anything_is_made() {
    let world = world(&[]);
    let prefix = "csi.storage.k8s.io/provisioner-secret";
    add_class(
        &world,
        "keyed",
        &json!({
            "parameters": {format!("{prefix}-name"): "absent", format!("{prefix}-namespace"): NAMESPACE},
        }),
    );
    let _sidecar = world.start();
    world.add_claim("data", "keyed");
    sleep(secs(30)).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 0);
    let told = world.events_about("data");
    assert!(told.iter().any(|(_, text, _)| text.contains("absent") && text.contains(NAMESPACE)), "{told:?}");
    world.add("secrets", json!({"metadata": {"name": "absent", "namespace": NAMESPACE}, "data": {"k": "dg=="}}));
    comes(&world, secs(310), "the bound claim", |world| world.is_bound("data")).await;
    comes_to_rest(&world).await;
}

/// W33: half of the note where a volume's secret is counts as none, and a deletion that fails for it says so.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletion_that_fails_for_half_a_secret_note_says_so() {
    let world = world(&[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    world.edit(VOLUMES, "", &name, |volume| {
        volume["metadata"]["annotations"]["volume.kubernetes.io/provisioner-deletion-secret-name"] = json!("key");
    });
    script(&world, "DeleteVolume", 1, fails(UNAUTHENTICATED));
    world.remove(CLAIMS, "data");
    comes(&world, secs(10), "the end", empty).await;
    let told = world.events_about(&name);
    assert!(told.iter().any(|(_, text, _)| text.contains("name only one of secret and namespace")), "{told:?}");
}

/// U04 and W42: a claim whose class does not exist is told so, a bounded number of times.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn missing_class_is_told_and_not_over_and_over() {
    let world = world(&[]);
    let _sidecar = world.start();
    script(&world, "CreateVolume", 1, fails(INTERNAL));
    world.add_claim("data", CLASS);
    sleep(Duration::from_millis(200)).await;
    world.remove("storageclasses", CLASS);
    sleep(secs(3600)).await;
    let told = world.events_about("data");
    // The binder tells it too, in its own words, each 15 s.
    let ours = |text: &str| !text.contains("scripted") && !text.starts_with("storageclass.storage.k8s.io");
    let failures = told.iter().filter(|(reason, text, _)| reason == "ProvisioningFailed" && ours(text));
    assert!((1..=2).contains(&failures.map(|(.., count)| count).sum::<i64>()), "{told:?}\n{}", world.trace.text());
}
