//! Groups about the controller around the provision step.

use super::chain::call_error;
use super::table::{read, read_all, strings};
use super::words::code_of;
use csi_provisioner::claim::answer::{Accepted, AttemptState, classify};
use csi_provisioner::claim::hold_back::{Fingerprint, HoldBack};
use csi_provisioner::claim::plan::{self, Attempt, Gathered, Setting, Verdict};
use csi_provisioner::claim::refusal::Refusal;
use csi_provisioner::claim::volume::{persistent_volume, same_volume};
use csi_provisioner::model::claim::MIGRATED_TO;
use csi_provisioner::model::class::TopologyTerm;
use csi_provisioner::model::driver::Capabilities;
use csi_provisioner::model::meta::MetaExt;
use csi_provisioner::model::volume::VOLUME_FINALIZER;
use csi_provisioner::model::{CallError, Claim, Class, Driver, Options, Volume};
use csi_provisioner::volume::finalizer::{self, Upkeep};
use csi_provisioner::volume::{delete, ownership};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

const ABLE: Capabilities = Capabilities {
    controller_service: true,
    accessibility_constraints: true,
    create_delete_volume: true,
    publish_unpublish_volume: true,
    get_capacity: true,
    create_delete_snapshot: true,
    clone_volume: true,
    single_node_multi_writer: true,
    modify_volume: true,
};

/// The library takes any number of further names, the sidecar has one: a driver for each.
fn drivers(input: &Value) -> Vec<Driver> {
    let named = |in_tree_name: Option<String>| Driver {
        name: input["driver_name"].as_str().expect("a name").to_owned(),
        in_tree_name,
        can: ABLE,
    };
    let further: Vec<String> = input["in_tree_names"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap_or_default().to_owned())
        .collect();
    if further.is_empty() { vec![named(None)] } else { further.into_iter().map(|name| named(Some(name))).collect() }
}

/// The rows stub the sidecar's own qualifier with "yes". For a claim annotated with another name that only holds when
/// the claim also says that it was migrated.
fn qualified(mut claim: Claim, driver: &Driver) -> Claim {
    if claim.named_provisioner() != Some(&driver.name) {
        claim.metadata.annotations.get_or_insert_default().insert(MIGRATED_TO.to_owned(), driver.name.clone());
    }
    claim
}

fn verdicts(input: &Value, claim: &Claim) -> Vec<Verdict> {
    let classes: Vec<Class> = read_all(&input["classes"]);
    let class = classes.iter().find(|class| class.metadata.name() == claim.class_name());
    drivers(input)
        .iter()
        .map(|driver| plan::should_provision(&qualified(claim.clone(), driver), class, driver))
        .collect()
}

pub fn should_provision(input: &Value) -> Value {
    let verdicts = verdicts(input, &read(&input["claim"]));
    if let Some(refusal) = verdicts.iter().find_map(|verdict| match verdict {
        Verdict::ClassMissing { .. } => verdict.refusal(&Driver::default()),
        _ => None,
    }) {
        return json!({ "error": { "condition": refusal.condition(), "reason": "ProvisioningFailed" } });
    }
    let qualifier = input["qualifier"] == Value::Bool(true);
    json!({ "error": null, "should_provision": qualifier && verdicts.contains(&Verdict::Provision) })
}

pub fn should_delete(input: &Value) -> Value {
    json!({ "should_delete": delete::should_delete(&read(&input["volume"])) })
}

pub fn ownership(input: &Value) -> Value {
    let volume: Volume = read(&input["volume"]);
    json!({ "ours": drivers(input).iter().any(|driver| ownership::is_ours(&volume, driver)) })
}

fn changed(before: &[String], after: Option<&[String]>) -> Value {
    json!({ "modified": after.is_some(), "finalizers": after.unwrap_or(before) })
}

pub fn finalizer_remove(input: &Value) -> Value {
    let before = strings(&input["finalizers"]);
    changed(&before, finalizer::removed(&before, input["remove"].as_str().expect("a finalizer")).as_deref())
}

pub fn finalizer_add(input: &Value) -> Value {
    let before = strings(&input["finalizers"]);
    changed(&before, finalizer::added(&before, input["add"].as_str().expect("a finalizer")).as_deref())
}

fn driver_named(name: &str) -> Driver {
    Driver { name: name.to_owned(), in_tree_name: None, can: ABLE }
}

fn drafted(claim: &Claim, class: &Class, driver: &Driver) -> Result<Attempt, Refusal> {
    let options = Options::default();
    let setting = Setting { driver, options: &options, translated_class: None, grants: &[] };
    plan::finish(plan::draft(claim, class, &setting)?, Gathered::default())
}

/// The sidecar has no block check of its own: every volume mode is drafted.
pub fn can_provision(input: &Value) -> Value {
    let driver = driver_named("driver");
    let mut claim = qualified(read(&input["claim"]), &driver);
    claim.metadata.uid = Some("uid".to_owned());
    claim
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(csi_provisioner::model::claim::STORAGE_PROVISIONER.to_owned(), driver.name.clone());
    let attempt = drafted(&claim, &Class::default(), &driver);
    json!({ "allowed": attempt.is_ok(), "error": attempt.err().map(|refusal| refusal.condition()) })
}

pub fn topology_options(input: &Value) -> Value {
    let claim: Claim = read(&input["claim"]);
    let classes: Vec<Class> = read_all(&input["classes"]);
    let class = classes.iter().find(|class| class.metadata.name() == claim.class_name()).expect("a class");
    let term = |term: &TopologyTerm| {
        let expressions = term.match_label_expressions.iter();
        let shown = expressions.map(|expression| json!({ "key": expression.key, "values": expression.values }));
        json!({ "matchLabelExpressions": shown.collect::<Vec<_>>() })
    };
    let terms: Vec<Value> = class.allowed_topologies.iter().map(term).collect();
    json!({ "allowed_topologies": terms, "selected_node": claim.selected_node() })
}

/// Two looks at a claim whose request always ends with the same code.
pub fn infeasible_retry(input: &Value) -> Value {
    let class = |key: &str| -> Class { read(&json!({ "metadata": { "uid": input[key] } })) };
    let uid = input["claim_uid"].as_str().expect("a UID");
    let code = input["grpc_code"].as_str().expect("a code");
    let claim = Claim::default();
    let mut held = HoldBack::new(Duration::from_mins(5));
    let start = Instant::now();
    let later = start + Duration::from_secs(input["second_sync_after_seconds"].as_u64().expect("seconds"));
    let (mut calls, mut last) = (0, Value::Null);
    let mut held_after_first = false;
    for (now, class) in [(start, class("class_uid_at_first_sync")), (later, class("class_uid_at_second_sync"))] {
        let request = Fingerprint::of(&claim, &class);
        if held.remaining(uid, &request, now).is_some() {
            last = json!({ "condition": "claim-held-back" });
        } else {
            calls += 1;
            let error = CallError { code: code_of(code), from_driver: true, message: String::new() };
            if classify(&error, false, false) == AttemptState::Infeasible {
                held.hold(uid, request.clone(), now);
            }
            last = call_error(&Attempt::default(), code)["error"].clone();
        }
        if now == start {
            held_after_first = held.remaining(uid, &request, now).is_some();
        }
    }
    json!({ "calls": { "provision_step": calls }, "held_back_after_first": held_after_first, "second_error": last })
}

/// The object of the name exists already.
pub fn volume_save(input: &Value) -> Value {
    let facts = |uid: &str| {
        let mut facts = plan::VolumeFacts::default();
        uid.clone_into(&mut facts.claim.uid);
        facts
    };
    let saved = |handle: &str, uid: &str| {
        persistent_volume(&facts(uid), &Accepted { id: handle.to_owned(), ..Accepted::default() }, "identity")
    };
    let existing = &input["existing"];
    let handle = if existing["same_volume_handle"] == Value::Bool(true) { "ours" } else { "other" };
    let wanted = saved("ours", input["claim_uid"].as_str().expect("a UID"));
    let same = same_volume(&saved(handle, existing["claim_uid"].as_str().expect("a UID")), &wanted);
    let taken = Refusal::VolumeNameTaken { volume: "pvc-1".to_owned() };
    let error = json!({ "condition": taken.condition(), "reason": "ProvisioningFailed" });
    json!({
        "worker_result": if same { "success" } else { "error" },
        "retained_in_memory": false,
        "success_event": same,
        "error": if same { Value::Null } else { error },
    })
}

/// All queued claims and all volumes once, with stubbed provision and delete steps. Events, counters and the save queue
/// belong to the workers.
pub fn controller(input: &Value) -> Value {
    let claims: Vec<Claim> = read_all(&input["claims"]);
    let (mut provisioned, mut open, mut objects) = (0, BTreeSet::new(), Vec::new());
    for uid in strings(&input["queued_claims"]) {
        let Some(claim) = claims.iter().find(|claim| claim.metadata.uid() == uid) else { continue };
        let name = format!("pvc-{uid}");
        if input["volumes"].as_array().into_iter().flatten().any(|volume| volume["metadata"]["name"] == name.as_str()) {
            continue;
        }
        if !verdicts(input, claim).contains(&Verdict::Provision) {
            continue;
        }
        provisioned += 1;
        let step = &input["provision_step"];
        let step = step.get(claim.metadata.name()).unwrap_or(&step["*"]);
        match provision_step(input, claim, step) {
            Step::Made(object) if input["save_failures"] != "always" => objects.push(object),
            Step::Open => drop(open.insert(uid)),
            Step::Made(_) | Step::Nothing => {}
        }
    }
    let (deleted, kept) = volumes(input);
    objects.extend(kept);
    json!({
        "calls": { "provision_step": provisioned, "delete_step": deleted },
        "claims_in_progress_after": open,
        "volumes_after": objects,
    })
}

/// What is known after the stubbed step.
enum Step {
    Made(Value),
    Open,
    Nothing,
}

fn provision_step(input: &Value, claim: &Claim, step: &Value) -> Step {
    let classes: Vec<Class> = read_all(&input["classes"]);
    let class = classes.iter().find(|class| class.metadata.name() == claim.class_name()).expect("a class");
    let failed = |code: &str| {
        let error = CallError { code: code_of(code), from_driver: true, message: String::new() };
        if classify(&error, true, true) == AttemptState::Background { Step::Open } else { Step::Nothing }
    };
    match (step["result"].as_str().expect("a result"), step["state"].as_str()) {
        ("volume", _) => {
            let attempt = drivers(input)
                .iter()
                .find_map(|driver| drafted(&qualified(claim.clone(), driver), class, driver).ok())
                .expect("the claim can be drafted");
            let made =
                Accepted { id: "id".to_owned(), capacity_bytes: attempt.request.required_bytes, ..Accepted::default() };
            Step::Made(persistent_volume(&attempt.facts, &made, "identity"))
        }
        ("error", Some("InBackground")) => failed("DeadlineExceeded"),
        ("error", Some("Reschedule")) => failed("ResourceExhausted"),
        ("error", Some("Finished")) => failed("Internal"),
        // Before the driver is reached nothing changes.
        ("error", Some("NoChange")) | ("ignored", _) => Step::Nothing,
        other => panic!("unknown step {other:?}"),
    }
}

/// Deletions with a stubbed step; the objects that are left.
fn volumes(input: &Value) -> (u32, Vec<Value>) {
    let (mut calls, mut kept) = (0, Vec::new());
    for object in input["volumes"].as_array().into_iter().flatten() {
        let volume: Volume = read(object);
        let mut object = object.clone();
        if drivers(input).iter().any(|driver| ownership::is_ours(&volume, driver)) {
            let before = strings(&object["metadata"]["finalizers"]);
            let after = match finalizer::upkeep(&volume) {
                Upkeep::Keep => None,
                Upkeep::Add => finalizer::added(&before, VOLUME_FINALIZER),
                Upkeep::Remove => finalizer::removed(&before, VOLUME_FINALIZER),
            };
            object["metadata"]["finalizers"] = json!(after.unwrap_or(before));
            if delete::should_delete(&volume) {
                calls += 1;
                if input["delete_step"]["result"] == "ok" && input["object_delete_fails"] != Value::Bool(true) {
                    continue;
                }
            }
        }
        kept.push(object);
    }
    (calls, kept)
}
