//! `--logging-format=json`: every line of the program is one object with klog's keys.

use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::process::Process;
use crate::support::sidecar::Sidecar;
use crate::support::wait::{SOON, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is wrong with a line, if anything: `ts` in milliseconds, `msg`, and `v` with information or `err` without.
fn fault(line: &str) -> Option<String> {
    let Ok(object) = serde_json::from_str::<Value>(line) else { return Some("no JSON".to_owned()) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64() * 1000.0;
    let recent = object["ts"].as_f64().is_some_and(|ts| (now - 600_000.0..=now).contains(&ts));
    if !recent {
        return Some(format!("ts is {}", object["ts"]));
    }
    if object["msg"].as_str().is_none_or(str::is_empty) {
        return Some(format!("msg is {}", object["msg"]));
    }
    let (v, err) = (object.get("v"), object.get("err"));
    if v.is_some_and(|v| !v.is_u64()) || err.is_some_and(|err| !err.is_string() && !err.is_null()) {
        return Some(format!("v is {v:?}, err is {err:?}"));
    }
    None
}

#[track_caller]
fn assert_lines(said: &str) -> Vec<Value> {
    for line in said.lines() {
        if let Some(fault) = fault(line) {
            panic!("{fault}: {line}");
        }
    }
    said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// A life with everything that makes programs talk.
fn lived(world: &World, driver: &mut Driver, sidecar: &mut Sidecar) {
    let odd = "line one\nline \"two\" \u{1b}[31m \\ \u{2028} caf\u{e9}";
    driver.script(&json!([{"method": "CreateVolume", "count": 1, "code": "Internal", "message": odd}]));
    sidecar.start();
    world.create(claim("data"));
    world.bound("data");
    world.create(claim("lost").class("missing"));
    driver.script(&json!([{"method": "DeleteVolume", "count": 1, "code": "Internal", "message": odd}]));
    world.delete_claim("data");
    wait_until("it is deleted", SOON, || driver.volumes().is_empty());
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_json_log_has_klogs_keys_in_every_line() {
    let world = World::new("json");
    world.create(class("fast"));
    let mut driver = Driver::bench(&world).started();
    let mut sidecar = Sidecar::ours(&world, "json", &driver.socket()).flag("--v=10").flag("--logging-format=json");
    lived(&world, &mut driver, &mut sidecar);
    driver.kill();
    sidecar.says("lost", SOON);
    driver.start();
    world.create(claim("again"));
    world.bound("again");
    sidecar.terminate();
    assert_eq!(sidecar.ends_within(SOON), 0);
    let said = sidecar.said();
    let lines = assert_lines(&said);
    assert!(lines.len() > 20, "{said}");
    assert!(lines.iter().any(|line| line["v"] == 0) && lines.iter().any(|line| line["v"] == 5), "{said}");
    let told = |words: &str| lines.iter().any(|line| line["err"].as_str().is_some_and(|err| err.contains(words)));
    assert!(told("line \"two\""), "errors stand under err, unbroken: {said}");
    world.settles_with(&driver, 1);
}

/// The yardstick itself is true: the Go sidecar's lines fit it.
#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_json_log_of_the_go_sidecar_has_the_same_keys() {
    let world = World::new("json-go");
    world.create(class("fast"));
    let mut driver = Driver::bench(&world).started();
    let mut sidecar = Sidecar::go(&world, "json", &driver.socket()).flag("--v=5").flag("--logging-format=json");
    lived(&world, &mut driver, &mut sidecar);
    let lines = assert_lines(&sidecar.said());
    assert!(lines.len() > 10);
    world.settles_with(&driver, 0);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_json_log_tells_a_fatal_end_too() {
    let world = World::new("json-fatal");
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-provisioner"));
    command.args(["--logging-format=json", "--kubeconfig=/does/not/exist", "--csi-address=/run/nobody"]).env_clear();
    let mut process = Process::start(command, &world.dir.join("ran.log"));
    assert_eq!(process.ends_within(SOON), 255);
    let said = process.said();
    let lines = assert_lines(&said);
    assert!(said.contains("/does/not/exist") && !lines.is_empty(), "{said}");
}
