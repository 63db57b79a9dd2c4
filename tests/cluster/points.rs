//! Ten points at which the process is killed (SIGKILL), with a real driver and a real API server. Afterwards another
//! process starts, and the driver has exactly one volume if the claim is still wanted, else none.
//!
//! | # | Killed | Claim stays | Claim is deleted while nobody runs |
//! |--:|---|---|---|
//! | 1 | before `CreateVolume` reaches the driver | `off`: one | `off`: none |
//! | 2 | while `CreateVolume` hangs in the driver | `off`: one | `always`: none |
//! | 3 | after the driver made it, before the answer | `off`: one | `always`: none |
//! | 4 | after the answer, before the volume object is saved | `off`: one | `always`: none |
//! | 5 | after it is saved, before the event (and before the answer of the save) | `off`: one | `off`: none |
//! | 6 | while a bad answer's volume is deleted | `off`: one | `always`: none |
//! | 7 | before `DeleteVolume` reaches the driver | | `off`: none |
//! | 8 | while `DeleteVolume` hangs in the driver | | `off`: none |
//! | 9 | after `DeleteVolume`, before the volume object is deleted | | `off`: none |
//! | 10 | after that, before our finalizer is removed | | `off`: none |
//!
//! The word before the colon is the least value of `--durable-intent` that is enough. At 2, 3, 4 and 6 a deleted claim
//! leaves no trace in the cluster, so that only the record knows; `uncertain` writes it only after an answer or at an
//! orderly stop, which a kill is not.

use crate::support::api::{VOLUMES, text};
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::proxy::{Fault, Proxy};
use crate::support::sidecar::Sidecar;
use crate::support::wait::{SOON, wait_until};
use crate::support::world::World;
use http::Method;
use serde_json::{Value, json};

const RECORDS: &str = "/api/v1/namespaces/default/configmaps";
const OBJECTS: &str = "/persistentvolumes";

/// One test of a point.
struct Stage {
    world: World,
    driver: Driver,
    proxy: Proxy,
    sidecar: Sidecar,
}

/// What becomes of the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Stays,
    Goes,
}

impl Stage {
    fn new(point: &str, intent: &str, claim: Claim) -> Self {
        let world = World::new(&format!("{point}-{intent}-{}", if claim == Claim::Stays { "stays" } else { "goes" }));
        world.plane.apply("e2e/role-durable-intent.yaml");
        let secrets = format!("/api/v1/namespaces/{}/secrets", world.name);
        world.api.create(&secrets, &json!({"metadata": {"name": "account"}, "stringData": {"user": "u"}}));
        world.create(
            class("fast")
                .parameter("csi.storage.k8s.io/provisioner-secret-name", "account")
                .parameter("csi.storage.k8s.io/provisioner-secret-namespace", &world.name),
        );
        let driver = Driver::bench(&world).started();
        let proxy = Proxy::start(&world);
        let sidecar = Sidecar::ours(&world, "sidecar", &driver.socket())
            .flag(&proxy.flag())
            .flag(&format!("--durable-intent={intent}"))
            .flag("--durable-intent-namespace=default");
        Self { world, driver, proxy, sidecar }
    }

    /// Kills the process, does to the claim what is due, and starts another one in fair weather.
    fn killed(&mut self, then: Claim) {
        self.sidecar.kill();
        if then == Claim::Goes {
            self.world.delete_claim("data");
        }
        self.starts_again();
    }

    /// Starts another process in fair weather.
    fn starts_again(&mut self) {
        self.driver.rests();
        self.proxy.clear();
        self.driver.script(&json!([]));
        self.sidecar.start();
    }

    fn records(&self) -> usize {
        let all = self.world.api.list(RECORDS);
        all.iter().filter(|one| text(one, "/data/driver") == self.world.driver_name()).count()
    }

    /// The claim's name in the backend, while the claim is there.
    fn volume_name(&self) -> String {
        format!("pvc-{}", text(&self.world.api.get(&self.world.claim("data")), "/metadata/uid"))
    }

    /// Everything is as it should be, and stays so.
    fn ends_well(&mut self, then: Claim) {
        if then == Claim::Stays {
            self.world.bound("data");
            self.world.settles_with(&self.driver, 1);
        } else {
            wait_until("the driver has no volume", SOON, || self.driver.volumes().is_empty());
            self.world.settles_with(&self.driver, 0);
        }
        wait_until("no record is left", SOON, || self.records() == 0);
        assert!(self.sidecar.runs() && !self.sidecar.said().contains("panicked"));
        // All that was asked for the claim was the same request, whoever asked.
        let calls = self.driver.calls("CreateVolume");
        assert!(calls.iter().all(|call| call.request == calls[0].request), "{calls:#?}");
    }
}

/// A creation that is killed where `stop` stops it; `reached` waits until it is there.
fn creation(point: &str, intent: &str, then: Claim, stop: impl Fn(&Stage), reached: impl Fn(&Stage)) {
    let mut stage = Stage::new(point, intent, then);
    stop(&stage);
    stage.sidecar.start();
    stage.world.create(claim("data"));
    reached(&stage);
    stage.killed(then);
    stage.ends_well(then);
}

/// For each fate of the claim with the least setting that is enough.
fn both(point: &str, when_gone: &str, stop: impl Fn(&Stage), reached: impl Fn(&Stage)) {
    creation(point, "off", Claim::Stays, &stop, &reached);
    creation(point, when_gone, Claim::Goes, &stop, &reached);
}

fn in_driver(rules: Value) -> impl Fn(&Stage) {
    move |stage| stage.driver.script(&rules)
}

fn asked(stage: &Stage) {
    wait_until("the driver is asked", SOON, || !stage.driver.calls("CreateVolume").is_empty());
}

fn made(stage: &Stage) {
    wait_until("the driver has made it", SOON, || stage.driver.volumes().len() == 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_before_the_creation_reaches_the_driver() {
    let stop = |stage: &Stage| stage.proxy.meets(&Method::GET, "/secrets/account", Fault::HoldBefore);
    let reached = |stage: &Stage| {
        stage.proxy.reached();
        assert!(stage.driver.calls("CreateVolume").is_empty());
    };
    both("point-1", "off", stop, reached);
    // With records there is one more request before the driver is asked.
    let stop = |stage: &Stage| stage.proxy.meets(&Method::POST, "/configmaps", Fault::HoldAfter);
    let reached = |stage: &Stage| {
        stage.proxy.reached();
        wait_until("the record is there", SOON, || stage.records() == 1);
        assert!(stage.driver.calls("CreateVolume").is_empty());
    };
    creation("point-1b", "always", Claim::Goes, stop, reached);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_while_the_creation_hangs() {
    both("point-2", "always", in_driver(json!([{"method": "CreateVolume", "before": "1s"}])), |stage| {
        asked(stage);
        assert!(stage.driver.volumes().is_empty());
    });
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_between_the_drivers_work_and_its_answer() {
    both("point-3", "always", in_driver(json!([{"method": "CreateVolume", "after": "2s"}])), made);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_between_the_answer_and_the_volume_object() {
    let stop = |stage: &Stage| stage.proxy.meets(&Method::POST, OBJECTS, Fault::HoldBefore);
    both("point-4", "always", stop, |stage| {
        stage.proxy.reached();
        made(stage);
        assert!(stage.world.volumes().is_empty());
    });
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_between_the_volume_object_and_its_event() {
    let saved = |stage: &Stage| {
        wait_until("the volume object is there", SOON, || stage.world.volumes().len() == 1);
    };
    let stop = |stage: &Stage| stage.proxy.meets(&Method::POST, "/events", Fault::HoldBefore);
    both("point-5", "off", stop, saved);
    // The process never learns that it saved it.
    let stop = |stage: &Stage| stage.proxy.meets(&Method::POST, OBJECTS, Fault::HoldAfter);
    both("point-5b", "off", stop, saved);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_while_an_unusable_volume_is_deleted() {
    let rules = json!([
        {"method": "CreateVolume", "count": 1, "merge": {"volume": {"capacityBytes": "17"}}},
        {"method": "DeleteVolume", "before": "1s"},
    ]);
    both("point-6", "always", in_driver(rules), |stage| {
        wait_until("the driver deletes", SOON, || !stage.driver.calls("DeleteVolume").is_empty());
        assert_eq!(stage.driver.volumes().len(), 1);
    });
}

/// A deletion that is killed where `stop` stops it. Gives the number of calls that the driver saw.
fn deletion(point: &str, stop: impl Fn(&Stage), reached: impl Fn(&Stage, &str)) -> usize {
    let mut stage = Stage::new(point, "off", Claim::Goes);
    stage.sidecar.start();
    stage.world.create(claim("data"));
    stage.world.bound("data");
    let object = format!("{VOLUMES}/{}", stage.volume_name());
    // Another process, so that what it needs is not in its memory.
    stage.sidecar.kill();
    stop(&stage);
    stage.sidecar.start();
    stage.world.delete_claim("data");
    reached(&stage, &object);
    stage.sidecar.kill();
    stage.starts_again();
    wait_until("the volume object is gone", SOON, || stage.world.api.find(&object).is_none());
    stage.ends_well(Claim::Goes);
    stage.driver.calls("DeleteVolume").len()
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_before_the_deletion_reaches_the_driver() {
    let stop = |stage: &Stage| stage.proxy.meets(&Method::GET, "/secrets/account", Fault::HoldBefore);
    let calls = deletion("point-7", stop, |stage, object| {
        stage.proxy.reached();
        assert!(stage.driver.calls("DeleteVolume").is_empty());
        assert_eq!(text(&stage.world.api.get(object), "/status/phase"), "Released");
    });
    assert_eq!(calls, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_while_the_deletion_hangs() {
    let stop = in_driver(json!([{"method": "DeleteVolume", "before": "1s"}]));
    deletion("point-8", stop, |stage, object| {
        wait_until("the driver is asked", SOON, || !stage.driver.calls("DeleteVolume").is_empty());
        assert!(stage.world.api.find(object).is_some());
    });
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_between_the_deletion_and_that_of_the_object() {
    let stop = |stage: &Stage| stage.proxy.meets(&Method::DELETE, OBJECTS, Fault::HoldBefore);
    let calls = deletion("point-9", stop, |stage, object| {
        stage.proxy.reached();
        assert!(stage.driver.volumes().is_empty());
        assert!(stage.world.api.get(object)["metadata"]["deletionTimestamp"].is_null());
    });
    assert_eq!(calls, 2, "the next process cannot know, and asks again");
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_kill_between_the_deletion_of_the_object_and_its_finalizer() {
    let stop = |stage: &Stage| stage.proxy.meets(&Method::PATCH, OBJECTS, Fault::HoldBefore);
    deletion("point-10", stop, |stage, object| {
        stage.proxy.reached();
        assert!(stage.driver.volumes().is_empty());
        assert!(stage.world.api.get(object)["metadata"]["deletionTimestamp"].is_string());
    });
}

/// The same doors for weather that nobody is killed by: the server acts and does not say so, or asks for patience.
#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_answers_that_are_cut_or_refused_cost_no_volume() {
    let mut stage = Stage::new("weather", "always", Claim::Goes);
    for (method, path) in [(Method::POST, OBJECTS), (Method::POST, "/configmaps"), (Method::DELETE, OBJECTS)] {
        stage.proxy.meets_first(1, &method, path, Fault::Refuse(1));
        stage.proxy.meets_first(1, &method, path, Fault::CutAfter);
    }
    stage.proxy.meets_first(1, &Method::PATCH, OBJECTS, Fault::CutAfter);
    stage.sidecar.start();
    stage.world.create(claim("data"));
    // Deleted while the sidecar does not know yet whether it saved the volume object.
    stage.world.bound("data");
    stage.world.delete_claim("data");
    assert_eq!(stage.driver.calls("CreateVolume").len(), 1);
    stage.ends_well(Claim::Goes);
    assert_eq!(stage.driver.calls("DeleteVolume").len(), 1, "no volume object comes back without its storage");
    assert_eq!(stage.proxy.met(), 7, "each door was passed");
}
