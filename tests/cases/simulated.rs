//! Groups about the workers: the whole sidecar runs in a simulated world with the row's objects, and what it did is
//! read from that world.

use super::asking::with_paused_clock;
use super::stage::{DRIVER, Seen, Stage};
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::driver::script::{Fault, Rule};
use csi_provisioner::sandbox::simulate::cable::Side;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, CLASSES, NAMESPACE, SELECTED_NODE, VOLUMES, claim, text};
use csi_provisioner::sandbox::simulate::seat::Running;
use csi_provisioner::sandbox::simulate::socket::Break;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// Long enough for one round of everything, and far shorter than [`PAUSE`].
const ROUND: Duration = Duration::from_mins(10);
/// Between two tries, so that a row sees exactly one.
const PAUSE: [&str; 2] = ["--retry-interval-start=1h", "--retry-interval-max=1h"];
/// The end of a failure that a later try mends.
const SOON: [&str; 2] = ["--retry-interval-start=1m", "--retry-interval-max=1m"];
/// An open creation: whether it goes on is not known.
const UNAVAILABLE: i32 = 14;
const RESOURCE_EXHAUSTED: i32 = 8;
const INTERNAL: i32 = 13;
const EVER: u32 = u32::MAX;

fn driver(name: &str) -> DriverOptions {
    let segments = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    DriverOptions { name: name.to_owned(), segments, ..DriverOptions::default() }
}

fn fails(stage: &Stage, method: &'static str, code: i32) {
    let fault = Fault::FailBefore(code, "scripted".to_owned());
    stage.world.driver.script().add(Rule { method, subject: String::new(), times: EVER, fault });
}

fn list<'a>(input: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    input[key].as_array().into_iter().flatten()
}

// === All queued claims and all volumes once ===

/// The world in the state before the row, one round, and what came of it.
pub fn controller(input: &Value) -> Value {
    with_paused_clock(async {
        let further: Vec<&str> = list(input, "in_tree_names").filter_map(Value::as_str).collect();
        let named = input["driver_name"].as_str().expect("a name");
        // A sidecar knows one other name of its driver, that of the plug-in which the driver replaced.
        let (name, mut words) = match further.as_slice() {
            [] => (DRIVER, vec![(named, DRIVER)]),
            _ => ("cinder.csi.openstack.org", vec![(named, "cinder.csi.openstack.org")]),
        };
        words.extend(further.first().map(|first| (*first, "kubernetes.io/cinder")));
        words.push(("abc.def/ghi", "abc.def.ghi"));
        let mends = input["save_failures"].as_u64().is_some_and(|times| times > 0);
        let stage = Stage::new(driver(name), if mends { &SOON } else { &PAUSE }, &words);
        Row { input, stage }.run().await
    })
}

struct Row<'a> {
    input: &'a Value,
    stage: Stage,
}

impl Row<'_> {
    async fn run(mut self) -> Value {
        self.add_classes();
        let remembered: Vec<&Value> = list(self.input, "claims_in_progress_before").collect();
        let before = if remembered.is_empty() { None } else { Some(self.remember(&remembered).await) };
        let (sidecar, before) = match before {
            Some(known) => known,
            None => {
                for claim in list(self.input, "claims") {
                    let claim = self.claim(claim);
                    self.stage.add_claim(&claim);
                }
                for volume in list(self.input, "volumes") {
                    self.stage.add_volume(volume);
                }
                self.script();
                (self.stage.world.start(), Seen::default())
            }
        };
        sleep(ROUND).await;
        if !remembered.is_empty() {
            // The next try comes an hour after the first.
            sleep(Duration::from_mins(50)).await;
        }
        self.stage.report(&sidecar, &before)
    }

    /// The first try of each claim stays open; then the claims become what the row says.
    async fn remember(&mut self, claims: &[&Value]) -> (Running, Seen) {
        for claim in claims {
            let mut claim = (*claim).clone();
            if list(self.input, "classes").any(|class| class["volumeBindingMode"] == "WaitForFirstConsumer") {
                claim["metadata"]["annotations"][SELECTED_NODE] = json!("node-1");
            }
            self.stage.add_claim(&claim);
        }
        let world = &self.stage.world;
        fails(&self.stage, "CreateVolume", UNAVAILABLE);
        let sidecar = world.start();
        sleep(Duration::from_mins(5)).await;
        assert!(Stage::open(&sidecar, "unresolved") > 0.0, "the creation is open");
        let before = self.stage.seen(&sidecar);
        world.driver.script().clear();
        self.script();
        for was in claims {
            let name = text(was, "/metadata/name");
            match list(self.input, "claims").find(|claim| text(claim, "/metadata/name") == name) {
                None => world.remove(CLAIMS, name),
                Some(now) => {
                    let now = self.stage.here(now);
                    world.edit(CLAIMS, NAMESPACE, name, |claim| {
                        claim["metadata"]["annotations"] = now["metadata"]["annotations"].clone();
                        claim["spec"]["volumeName"] = now["spec"]["volumeName"].clone();
                    });
                }
            }
        }
        (sidecar, before)
    }

    fn add_classes(&self) {
        for class in list(self.input, "classes") {
            let mut class = self.stage.here(class);
            if self.fails_before_the_driver() {
                // Nothing can be asked without the secret, and there is none.
                let prefix = "csi.storage.k8s.io/provisioner-secret";
                class["parameters"] =
                    json!({ (format!("{prefix}-name")): "absent", (format!("{prefix}-namespace")): NAMESPACE });
            }
            self.stage.world.add(CLASSES, class);
        }
    }

    fn fails_before_the_driver(&self) -> bool {
        let step = &self.input["provision_step"]["*"];
        step["state"] == "NoChange" && list(self.input, "claims_in_progress_before").next().is_none()
    }

    /// The claim; one that the step ignores is filled by somebody else.
    fn claim(&self, claim: &Value) -> Value {
        let mut claim = claim.clone();
        let (steps, name) = (&self.input["provision_step"], text(&claim, "/metadata/name"));
        if steps.get(name).unwrap_or(&steps["*"])["result"] == "ignored" {
            claim["spec"]["dataSourceRef"] =
                json!({ "apiGroup": "populate.example.com", "kind": "Sample", "name": "x" });
        }
        if claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-provisioner"]
            != self.input["driver_name"]
        {
            let driver = self.input["driver_name"].clone();
            if list(self.input, "in_tree_names").next().is_some() {
                claim["metadata"]["annotations"]["pv.kubernetes.io/migrated-to"] = driver;
            }
        }
        claim
    }

    /// What driver and API server answer in the row.
    fn script(&self) {
        let (stage, step) = (&self.stage, &self.input["provision_step"]["*"]);
        match (step["result"].as_str(), step["state"].as_str()) {
            (Some("error"), Some("Finished")) => fails(stage, "CreateVolume", INTERNAL),
            (Some("error"), Some("Reschedule")) => fails(stage, "CreateVolume", RESOURCE_EXHAUSTED),
            // Whoever was asked before is asked again, but not reached.
            (Some("error"), Some("NoChange")) if !self.fails_before_the_driver() => {
                let cut = Break { method: "CreateVolume", subject: String::new(), times: EVER, side: Side::Before };
                stage.world.socket.break_next(cut);
            }
            // An ignored claim is not asked for at all; an open creation is, with no better answer.
            (Some("error"), Some("InBackground")) | (Some("ignored"), _) => fails(stage, "CreateVolume", UNAVAILABLE),
            _ => {}
        }
        if self.input["delete_step"]["result"] == "error" {
            fails(stage, "DeleteVolume", INTERNAL);
        }
        let faults = stage.world.server.faults();
        let refuse = Effect::Refuse { code: 503, retry_after_secs: None };
        let saving = Match::any().resource(VOLUMES).verb("create");
        match &self.input["save_failures"] {
            Value::String(_) => drop(faults.add(saving, refuse.clone())),
            times => {
                let times = times.as_u64().and_then(|times| u32::try_from(times).ok()).unwrap_or_default();
                faults.add_times(saving, refuse.clone(), times);
            }
        }
        if self.input["object_delete_fails"] == Value::Bool(true) {
            faults.add(Match::any().resource(VOLUMES).verb("delete"), refuse);
        }
    }
}

// === The end of a volume ===

/// One deletion that does not get through.
pub fn delete_errors(input: &Value) -> Value {
    with_paused_clock(async {
        let step = input["delete_step"]["result"].as_str().expect("a result");
        let options = DriverOptions { publish: step == "in-use", ..driver(DRIVER) };
        let stage = Stage::new(options, &PAUSE, &[("foo.bar/baz", DRIVER)]);
        let mut volume = input["volume"].clone();
        let name = text(&volume, "/metadata/name").to_owned();
        match step {
            "error" => fails(&stage, "DeleteVolume", INTERNAL),
            "in-use" => {
                let source = json!({ "persistentVolumeName": name });
                let spec = json!({ "attacher": DRIVER, "nodeName": "node-1", "source": source });
                stage.world.add("volumeattachments", json!({ "metadata": { "name": "a" }, "spec": spec }));
            }
            // The one deletion that is none of our business: another node's instance does it.
            "ignored" => {
                let expression = json!({ "key": "zone", "operator": "In", "values": ["elsewhere"] });
                let terms = json!([{ "matchExpressions": [expression] }]);
                volume["spec"]["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": terms } });
            }
            other => panic!("unknown step {other}"),
        }
        stage.add_volume(&volume);
        let world = &stage.world;
        let sidecar = if step == "ignored" { world.start_on(&world.driver) } else { world.start() };
        sleep(ROUND).await;
        let mut report = stage.report(&sidecar, &Seen::default());
        report["object_deleted"] = json!(world.server.get(VOLUMES, "", &name).is_err());
        report["error"] = report["events"].get(0).cloned().unwrap_or_default();
        for told in stage.warnings(&name) {
            let attached = told.contains("is still attached to node node-1");
            report["error"]["condition"] = json!(if attached { "volume-attached" } else { "driver-error" });
            assert!(attached || told.contains("scripted"), "the driver's own words are told: {told}");
        }
        report
    })
}

// === Saving the volume object ===

/// A claim whose volume is made at once, and the answer of the API server to its object.
pub fn volume_save(input: &Value) -> Value {
    with_paused_clock(async {
        let is_this_volume = input["existing"]["same_volume_handle"] == Value::Bool(true);
        let stage = Stage::new(driver(DRIVER), if is_this_volume { &SOON } else { &PAUSE }, &[]);
        let world = &stage.world;
        world.add_class("class");
        let mut wanted = claim("claim", "class");
        wanted["metadata"]["annotations"] = json!({ "volume.kubernetes.io/storage-provisioner": DRIVER });
        let stored = world.add(CLAIMS, wanted);
        let saving = Match::any().resource(VOLUMES).verb("create");
        let refuse = |code| Effect::Refuse { code, retry_after_secs: None };
        match input["create_reply"].as_str().expect("a reply") {
            // What exists is the work of an earlier request, whose answer was lost.
            "AlreadyExists" if is_this_volume => {
                world.server.faults().add_times(saving, Effect::LoseAnswer, 1);
            }
            "ok" | "AlreadyExists" => {}
            "ServiceUnavailable" => drop(world.server.faults().add(saving, refuse(503))),
            "Invalid" => drop(world.server.faults().add_times(saving, refuse(422), 1)),
            other => panic!("unknown reply {other}"),
        }
        let slow = Fault::Slow(Duration::from_secs(5));
        world.driver.script().add(Rule { method: "CreateVolume", subject: String::new(), times: 1, fault: slow });
        let sidecar = world.start();
        sleep(Duration::from_secs(1)).await;
        if input["cached_claims_with_uid"] == 0 {
            world.remove(CLAIMS, "claim");
        }
        if !input["existing"].is_null() && !is_this_volume {
            let name = format!("pvc-{}", text(&stored, "/metadata/uid"));
            let owner = json!({ "namespace": NAMESPACE, "name": "other", "uid": input["existing"]["claim_uid"] });
            let csi = json!({ "driver": DRIVER, "volumeHandle": "other" });
            let spec = json!({ "claimRef": owner, "csi": csi });
            stage.add_volume(&json!({ "metadata": { "name": name }, "spec": spec, "status": { "phase": "Bound" } }));
        }
        sleep(ROUND).await;
        let report = stage.report(&sidecar, &Seen::default());
        let told = stage.warnings("claim").concat();
        let conditions = [
            ("is refused", "volume-object-refused"),
            ("exists with another volume behind it", "volume-object-of-other-claim"),
        ];
        let condition = conditions.iter().find(|(words, _)| told.contains(words)).map(|(_, condition)| condition);
        let error = condition.map(|condition| json!({ "condition": condition, "reason": "ProvisioningFailed" }));
        let succeeded = report["metrics"].to_string().contains("provision_total");
        let open = ["unsaved", "discarding"].map(|state| Stage::open(&sidecar, state));
        json!({
            "worker_result": if succeeded { "success" } else { "error" },
            "retained_in_memory": open.iter().sum::<f64>() > 0.0,
            "success_event": report["events"].to_string().contains("ProvisioningSucceeded"),
            "error": error,
            "volumes_in_backend": world.volumes_in_backend(),
        })
    })
}
