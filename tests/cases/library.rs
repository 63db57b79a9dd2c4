//! Groups about the controller around the provision step.

use super::chain::call_error;
use super::table::{read, read_all, strings};
use super::words::code_of;
use csi_provisioner::claim::answer::{AttemptState, classify};
use csi_provisioner::claim::hold_back::{Fingerprint, HoldBack};
use csi_provisioner::claim::plan::{self, Attempt, Gathered, Setting, Verdict};
use csi_provisioner::claim::refusal::Refusal;
use csi_provisioner::model::claim::MIGRATED_TO;
use csi_provisioner::model::class::TopologyTerm;
use csi_provisioner::model::driver::Capabilities;
use csi_provisioner::model::finalizers;
use csi_provisioner::model::meta::MetaExt;
use csi_provisioner::model::{CallError, Claim, Class, Driver, Options, Volume};
use csi_provisioner::volume::{delete, ownership};
use serde_json::{Value, json};
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
    changed(&before, finalizers::removed(&before, input["remove"].as_str().expect("a finalizer")).as_deref())
}

pub fn finalizer_add(input: &Value) -> Value {
    let before = strings(&input["finalizers"]);
    changed(&before, finalizers::added(&before, input["add"].as_str().expect("a finalizer")).as_deref())
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
