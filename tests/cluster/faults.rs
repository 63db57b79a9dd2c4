//! A driver that does its work and then does not say so: what may exist is asked for again, with the same request.

use crate::support::api::{CLASSES, text};
use crate::support::driver::{Call, Driver};
use crate::support::objects::{claim, class};
use crate::support::wait::{SOON, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::time::Duration;

fn started(name: &str) -> (World, Driver) {
    let world = World::new(name);
    world.create(class("fast").parameter("tier", "gold"));
    let driver = Driver::bench(&world).started();
    (world, driver)
}

/// Creations of a claim's volume.
fn creations(world: &World, driver: &Driver, claim: &str) -> Vec<Call> {
    let name = format!("pvc-{}", text(&world.api.get(&world.claim(claim)), "/metadata/uid"));
    let mut calls = driver.calls("CreateVolume");
    calls.retain(|call| call.key == name);
    calls
}

#[track_caller]
fn assert_one_request(calls: &[Call]) {
    for call in calls {
        assert_eq!(call.request, calls[0].request, "the same request is repeated");
    }
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_creation_without_the_drivers_word_is_repeated_unchanged() {
    let (world, driver) = started("unclear");
    let mut sidecar = world.sidecar(&driver);
    let faults = [
        ("reset", json!({"answer": "reset"})),
        ("reset-after-headers", json!({"answer": "reset", "headers": true})),
        ("closed", json!({"answer": "close"})),
        ("no-status", json!({"answer": "no-status"})),
        ("no-status-after-headers", json!({"answer": "no-status", "headers": true})),
        ("proxy", json!({"answer": "http", "code": 503, "message": "sorry"})),
        ("oversize", json!({"answer": "reply", "padBytes": 5 << 20})),
        ("deadline", json!({"code": "DeadlineExceeded"})),
        ("aborted", json!({"code": "Aborted"})),
    ];
    for (name, fault) in &faults {
        let mut rule = json!({"name": name, "method": "CreateVolume", "count": 2, "work": true});
        rule.as_object_mut().expect("a rule").extend(fault.as_object().expect("a fault").clone());
        driver.script(&json!([rule]));
        world.create(claim(name).wants("3Gi"));
        world.bound(name);
        let calls = creations(&world, &driver, name);
        assert_eq!(calls.len(), 3, "{name}: two faults, then success");
        assert_one_request(&calls);
    }
    world.settles_with(&driver, faults.len());
    assert!(sidecar.runs());
    assert!(!sidecar.said().contains("panicked"));
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_driver_that_dies_is_served_on_by_the_same_process() {
    let (world, mut driver) = started("dies");
    let mut sidecar = world.sidecar(&driver);
    for (name, headers) in [("before-headers", false), ("after-headers", true)] {
        let rule = json!({"method": "CreateVolume", "work": true, "answer": "exit", "headers": headers});
        driver.script(&json!([rule]));
        world.create(claim(name));
        wait_until("the driver died of it", SOON, || !driver.runs());
        // Long enough for a try that finds nobody.
        std::thread::sleep(Duration::from_millis(500));
        driver.start();
        world.bound(name);
        let calls = creations(&world, &driver, name);
        assert_eq!(calls.len(), 2, "{calls:?}");
        assert_one_request(&calls);
    }
    driver.kill();
    world.create(claim("meanwhile"));
    driver.start();
    world.bound("meanwhile");
    world.delete_claim("before-headers");
    world.settles_with(&driver, 2);
    assert!(sidecar.runs(), "a restarted driver does not end the sidecar");
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_open_creation_survives_changes_of_class_and_secret() {
    let world = World::new("changes");
    let secrets = format!("/api/v1/namespaces/{}/secrets", world.name);
    world.api.create(&secrets, &json!({"metadata": {"name": "account"}, "stringData": {"password": "xyzzy-42"}}));
    let secret = |tier: &str| {
        class("fast")
            .parameter("tier", tier)
            .parameter("csi.storage.k8s.io/provisioner-secret-name", "account")
            .parameter("csi.storage.k8s.io/provisioner-secret-namespace", &world.name)
    };
    world.create(secret("gold"));
    let driver = Driver::bench(&world).started();
    driver.script(&json!([{"method": "CreateVolume", "work": true, "answer": "reset"}]));
    let mut sidecar = world.sidecar(&driver);
    world.create(claim("data"));
    wait_until("the driver was asked", SOON, || creations(&world, &driver, "data").len() == 1);
    world.api.delete(&format!("{CLASSES}/{}", world.class_name("fast")));
    world.create(secret("lead"));
    world.api.merge(&format!("{secrets}/account"), &json!({"stringData": {"password": "plugh-17"}}));
    wait_until("it was asked again", SOON, || creations(&world, &driver, "data").len() >= 4);
    let calls = creations(&world, &driver, "data");
    assert_eq!(calls[0].request["parameters"]["tier"], "gold");
    assert_eq!(calls[0].request["secrets"]["password"], "xyzzy-42");
    assert_one_request(&calls);
    // The claim is given up while nobody knows whether its volume exists: it does, and has to go.
    world.api.delete(&world.claim("data"));
    wait_until("the claim is gone", SOON, || world.api.find(&world.claim("data")).is_none());
    driver.script(&json!([]));
    wait_until("the volume was made known and deleted", SOON, || driver.calls("DeleteVolume").len() == 1);
    world.settles_with(&driver, 0);
    assert_one_request(&driver.calls("CreateVolume"));
    let said = sidecar.said();
    assert!(!said.contains("xyzzy-42") && !said.contains("plugh-17"), "no secret reaches the log");
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_another_driver_at_the_socket_ends_the_sidecar() {
    let (world, mut driver) = started("renamed");
    let mut sidecar = world.sidecar(&driver);
    world.create(claim("data"));
    world.bound("data");
    driver.kill();
    driver.start_with("--name=impostor.csi.test");
    assert_eq!(sidecar.ends_within(SOON), 1);
    let said = sidecar.said();
    let line = said.lines().find(|line| line.contains("changed its name")).unwrap_or_default();
    assert!(line.contains("renamed.csi.test") && line.contains("impostor.csi.test"), "{said}");
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_replies_that_cannot_be_used_leave_one_good_volume() {
    let world = World::new("replies");
    world.create(class("fast"));
    let driver = Driver::bench(&world).flag("--clone").started();
    let _sidecar = world.sidecar(&driver);
    world.create(claim("source"));
    world.bound("source");
    let cases = [
        ("no-volume", json!({"merge": {"volume": null}}), false),
        ("no-id", json!({"merge": {"volume": {"volumeId": ""}}}), false),
        ("too-small", json!({"merge": {"volume": {"capacityBytes": "17"}}}), true),
        ("no-source", json!({"merge": {"volume": {"contentSource": null}}}), true),
    ];
    for (name, fault, cleaned_up) in &cases {
        let deleted_before = driver.calls("DeleteVolume").len();
        driver.script(&json!([rule("CreateVolume", fault)]));
        let wanted = claim(name);
        world.create(if *name == "no-source" { wanted.clone_of("source") } else { wanted });
        let volume = world.bound(name);
        assert_eq!(text(&volume, "/spec/capacity/storage"), "1Gi", "{name}");
        world.tells(name, "ProvisioningFailed", "the CSI driver");
        assert_eq!(creations(&world, &driver, name).len(), 2, "{name}");
        let deleted = driver.calls("DeleteVolume").len() - deleted_before;
        assert_eq!(deleted, usize::from(*cleaned_up), "{name}: deletions of the unusable volume");
    }
    world.settles_with(&driver, cases.len() + 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_strange_errors_of_the_driver_are_told_and_tried_again() {
    let (world, driver) = started("strange");
    let mut sidecar = world.sidecar(&driver);
    let cases = [
        // "café" in Latin-1.
        ("latin", json!({"code": "Internal", "messageBytes": "Y2Fm6Q=="}), "caf"),
        ("code-42", json!({"code": 42, "message": "from the future"}), "from the future"),
        ("long", json!({"code": "Internal", "message": "x".repeat(20_000)}), "xxxxxxxxxx"),
        ("lines", json!({"code": "Internal", "message": "first\nsecond"}), "first"),
    ];
    for (name, fault, words) in &cases {
        driver.script(&json!([rule("CreateVolume", fault)]));
        world.create(claim(name));
        world.bound(name);
        world.tells(name, "ProvisioningFailed", words);
    }
    world.settles_with(&driver, cases.len());
    assert!(sidecar.runs() && !sidecar.said().contains("panicked"));
}

/// Acts once.
fn rule(method: &str, fault: &Value) -> Value {
    let mut rule = json!({"method": method, "count": 1});
    rule.as_object_mut().expect("a rule").extend(fault.as_object().expect("a fault").clone());
    rule
}
