//! Secrets reach the driver and nobody else (field fault X01), at the highest verbosity, whatever the driver says.

use crate::support::api::{VOLUMES, text};
use crate::support::driver::Driver;
use crate::support::objects::{Class, claim, class};
use crate::support::sidecar::Sidecar;
use crate::support::wait::{SOON, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const PREFIX: &str = "csi.storage.k8s.io";
/// What must never be seen, and its base64 form as the shell prints it.
const PLANTED: [(&str, &str); 3] = [
    ("planted-provisioner-7Qz!?>", "cGxhbnRlZC1wcm92aXNpb25lci03UXohPz4="),
    ("planted-stage-8Rt", "cGxhbnRlZC1zdGFnZS04UnQ="),
    ("planted-publish-9Su", "cGxhbnRlZC1wdWJsaXNoLTlTdQ=="),
];
/// user:VALUE of the first one, as an HTTP header would carry it.
const HEADER: &str = "dXNlcjpwbGFudGVkLXByb3Zpc2lvbmVyLTdReiE/Pg==";
/// What of that header gives the value away.
const TELLING: [&str; 2] = ["cGxhbnRlZC1wcm92aXNpb25lci", "wbGFudGVkLXByb3Zpc2lvbmVyLTdReiE"];

fn secret(world: &World, name: &str, key: &str, value: &str) {
    let path = format!("/api/v1/namespaces/{}/secrets", world.name);
    world.api.create(&path, &json!({"metadata": {"name": name}, "stringData": {key: value}}));
}

fn of_role(class: Class, role: &str, name: &str, namespace: &str) -> Class {
    class
        .parameter(&format!("{PREFIX}/{role}-secret-name"), name)
        .parameter(&format!("{PREFIX}/{role}-secret-namespace"), namespace)
}

/// Everything that anybody but the driver and the secrets' readers can see.
fn shown(world: &World, sidecar: &mut Sidecar, port: u16) -> String {
    let mut all = sidecar.said();
    all += &page(port, "/metrics");
    for kind in ["/api/v1/events", "/api/v1/configmaps"] {
        all.extend(world.api.list(kind).iter().map(Value::to_string));
    }
    let kinds = [
        "/api/v1/persistentvolumeclaims",
        VOLUMES,
        "/api/v1/namespaces",
        "/api/v1/secrets",
        "/apis/storage.k8s.io/v1/storageclasses",
        "/apis/coordination.k8s.io/v1/leases",
    ];
    for object in kinds.iter().flat_map(|kind| world.api.list(kind)) {
        all += &object["metadata"]["annotations"].to_string();
        all += &object["metadata"]["labels"].to_string();
    }
    all
}

fn page(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the HTTP endpoint listens");
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.contains(" 200 "), "{answer}");
    answer
}

#[track_caller]
fn assert_nothing_shows(when: &str, all: &str) {
    let needles = PLANTED.iter().flat_map(|(plain, encoded)| [*plain, encoded.trim_end_matches('=')]).chain(TELLING);
    for needle in needles {
        let line = all.lines().find(|line| line.contains(needle));
        assert!(line.is_none(), "{when}: {needle} shows: {}", line.unwrap_or_default());
    }
}

/// One claim from its creation to its end, with a driver that tells the secret whenever it can.
fn nothing_shows(name: &str, format: &str) {
    let world = World::new(name);
    world.plane.apply("e2e/role-durable-intent.yaml");
    secret(&world, "account-data", "password", PLANTED[0].0);
    secret(&world, "stage", "passphrase", PLANTED[1].0);
    secret(&world, "publish", "token", PLANTED[2].0);
    let fast = of_role(class("fast"), "provisioner", "account-${pvc.name}", "${pvc.namespace}");
    let fast = of_role(of_role(fast, "node-stage", "stage", name), "node-publish", "publish", "${pvc.namespace}");
    world.create(fast.mounted_with(&["noatime"]));
    let driver = Driver::bench(&world).started();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port").port();
    let mut sidecar = Sidecar::ours(&world, "sidecar", &driver.socket())
        .flag("--v=10")
        .flag(&format!("--logging-format={format}"))
        .flag("--durable-intent=always")
        .flag("--durable-intent-namespace=default")
        .flag(&format!("--http-endpoint=127.0.0.1:{free}"))
        .started();

    let (plain, encoded) = PLANTED[0];
    let told = format!("login -p {plain} failed; data: {{password: {encoded}}}; Authorization: Basic {HEADER}");
    let echo = json!({"volume": {"volumeContext": {"echo": told}}});
    driver.script(&json!([
        {"method": "CreateVolume", "count": 1, "code": "Internal", "message": told},
        {"method": "CreateVolume", "count": 1, "code": "Unavailable", "message": format!("{}{plain}", "x".repeat(4090))},
        {"method": "CreateVolume", "before": "2s", "merge": echo},
        {"method": "DeleteVolume", "count": 1, "code": "FailedPrecondition", "message": told},
    ]));
    world.create(claim("data"));
    world.tells("data", "ProvisioningFailed", "login -p ***stripped*** failed");
    wait_until("the driver hangs", SOON, || driver.calls("CreateVolume").len() == 3);
    let open = shown(&world, &mut sidecar, free);
    assert!(open.contains("csi-provisioner-intent-"), "a record is written, and looked at here");
    assert_nothing_shows("while it is open", &open);
    let volume = text(&world.bound("data"), "/metadata/name").to_owned();
    assert!(driver.calls("CreateVolume").iter().all(|call| call.request["secrets"]["password"] == plain));
    assert_nothing_shows("when it is bound", &shown(&world, &mut sidecar, free));
    world.delete_claim("data");
    world.tells(&volume, "VolumeFailedDelete", "***stripped***");
    world.settles_with(&driver, 0);
    assert!(driver.calls("DeleteVolume").iter().all(|call| call.request["secrets"]["password"] == plain));
    let all = shown(&world, &mut sidecar, free);
    assert!(all.contains("calling the CSI driver") && all.contains("csi_sidecar_operations_seconds"));
    assert_nothing_shows("at the end", &all);
    sidecar.terminate();
    assert_eq!(sidecar.ends_within(SOON), 0);
    assert_nothing_shows("after the stop", &sidecar.said());
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_no_secret_shows_anywhere_with_a_text_log() {
    nothing_shows("secret-text", "text");
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_no_secret_shows_anywhere_with_a_json_log() {
    nothing_shows("secret-json", "json");
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_secret_that_the_driver_refuses_is_read_again() {
    let world = World::new("rotated");
    secret(&world, "account", "password", "value-0");
    world.create(of_role(class("fast"), "provisioner", "account", "rotated"));
    let driver = Driver::bench(&world).started();
    let _sidecar = world.sidecar(&driver);
    let path = format!("/api/v1/namespaces/{}/secrets/account", world.name);
    let passwords = |method: &str| -> Vec<String> {
        let calls = driver.calls(method);
        calls.iter().map(|call| text(&call.request, "/secrets/password").to_owned()).collect()
    };
    world.create(claim("first"));
    world.bound("first");
    assert_eq!(passwords("CreateVolume"), ["value-0"]);
    for (number, code) in [(1, "Unauthenticated"), (2, "PermissionDenied")] {
        world.api.merge(&path, &json!({"stringData": {"password": format!("value-{number}")}}));
        driver.script(&json!([{"method": "CreateVolume", "count": 1, "code": code, "message": "who are you?"}]));
        let name = format!("after-{number}");
        world.create(claim(&name));
        world.tells(&name, "ProvisioningFailed", "who are you?");
        world.bound(&name);
    }
    // The refused call still had the value that was kept; the next one has the new one.
    assert_eq!(passwords("CreateVolume"), ["value-0", "value-0", "value-1", "value-1", "value-2"]);
    for (number, code) in [(3, "Unauthenticated"), (4, "PermissionDenied")] {
        world.api.merge(&path, &json!({"stringData": {"password": format!("value-{number}")}}));
        driver.script(&json!([{"method": "DeleteVolume", "count": 1, "code": code}]));
        world.delete_claim(&format!("after-{}", number - 2));
        wait_until("it is deleted", SOON, || driver.volumes().len() == 5 - number);
    }
    assert_eq!(passwords("DeleteVolume"), ["value-2", "value-3", "value-3", "value-4"]);
    world.delete_claim("first");
    std::thread::sleep(Duration::from_millis(200));
    world.settles_with(&driver, 0);
}
