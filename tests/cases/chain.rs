//! The way of a claim: verdict, draft, reads from the row's objects, request, scripted reply, volume object. The reads
//! and writes are the row's objects; every decision is made by the functions that the worker calls.

use super::sharing;
use super::table::{lay_over, read, read_all};
use super::words::{code_of, created, driver, options, shown};
use csi_provisioner::claim::answer::{self, AttemptState};
use csi_provisioner::claim::clone_source::{self, Wanted};
use csi_provisioner::claim::places;
use csi_provisioner::claim::plan::{self, Attempt, Draft, Gathered, Setting, Verdict};
use csi_provisioner::claim::refusal::{Refusal, RefusalState};
use csi_provisioner::claim::snapshot_source::{self, SnapshotFault};
use csi_provisioner::claim::source::{DataSource, Found, SourceKind};
use csi_provisioner::claim::taking;
use csi_provisioner::claim::volume;
use csi_provisioner::model::claim::{CLONE_FINALIZER, SELECTED_NODE};
use csi_provisioner::model::class::AttributesClass;
use csi_provisioner::model::finalizers;
use csi_provisioner::model::meta::MetaExt;
use csi_provisioner::model::node::{CsiNode, Node};
use csi_provisioner::model::request::ContentSource;
use csi_provisioner::model::secret::SecretRef;
use csi_provisioner::model::snapshot::{SNAPSHOT_FINALIZER, Snapshot, SnapshotContent};
use csi_provisioner::model::volume::PROVISIONED_BY;
use csi_provisioner::model::{CallError, Claim, Class, Driver, Options, Secrets, Volume};
use csi_provisioner::node_deployment::turn::{self, Standing};
use csi_provisioner::topology::nodes::Nodes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The surroundings of a row and what happens to them.
struct World<'a> {
    input: &'a Value,
    claim: Claim,
    driver: Driver,
    options: Options,
    translated: Option<Class>,
    /// Finalizers of the source afterwards.
    source_finalizers: Option<Vec<String>>,
    requests: Map<String, Value>,
    created: u32,
    deleted: u32,
}

/// Runs the provision step of a row.
pub fn provision(input: &Value) -> Value {
    let mut world = World::of(input);
    let mut outcome = match world.attempt() {
        Ok(attempt) => world.call(&attempt),
        Err(refusal) => refusal_error(&refusal, refusal.condition()),
    };
    lay_over(
        &mut outcome,
        &json!({
            "calls": { "CreateVolume": world.created, "DeleteVolume": world.deleted },
            "requests": world.requests,
            "claim_selected_node_after": world.claim.metadata.annotation(SELECTED_NODE),
            "snapshot_finalizers_after": world.finalizers_after("volumeSnapshots"),
            "source_claim_finalizers_after": world.finalizers_after("persistentVolumeClaims"),
        }),
    );
    outcome
}

/// Asks only whether the claim is ours.
pub fn qualifier(input: &Value) -> Value {
    let mut world = World::of(input);
    let class: Option<Class> = (!input["class"].is_null()).then(|| read(&input["class"]));
    let ours = plan::is_ours(&world.claim, &world.driver);
    json!({
        "should_provision": ours && world.turn(class.as_ref()).is_ok(),
        "calls": { "CreateVolume": world.created },
        "claim_selected_node_after": world.claim.metadata.annotation(SELECTED_NODE),
    })
}

/// A refusal in the table's words.
pub fn refusal_error(refusal: &Refusal, condition: &str) -> Value {
    let (state, ignored) = match refusal.state() {
        RefusalState::NoChange => ("NoChange", false),
        RefusalState::Reschedule => ("Reschedule", false),
        RefusalState::Ignored => ("NoChange", true),
    };
    let reason = match refusal {
        Refusal::ExternalPopulator { .. } => Some("Provisioning"),
        _ if ignored => None,
        _ => Some("ProvisioningFailed"),
    };
    json!({ "error": { "condition": condition, "state": state, "reason": reason, "ignored": ignored } })
}

impl<'a> World<'a> {
    fn of(input: &'a Value) -> Self {
        let driver = driver(input, "test-driver");
        // The stub translator of the table: adds its parameters to a class of the in-tree plug-in.
        let translated = input["translation"].get("class_parameters_added").and_then(|added| {
            let mut class: Class = read(&input["class"]);
            class.parameters.extend(read::<BTreeMap<String, String>>(added));
            (driver.in_tree_name.as_ref() == Some(&class.provisioner)).then_some(class)
        });
        Self {
            claim: read(&input["claim"]),
            options: options(input),
            driver,
            translated,
            source_finalizers: None,
            requests: Map::new(),
            created: 0,
            deleted: 0,
            input,
        }
    }

    fn attempt(&mut self) -> Result<Attempt, Refusal> {
        let class: Option<Class> = (!self.input["class"].is_null()).then(|| read(&self.input["class"]));
        let verdict = plan::should_provision(&self.claim, class.as_ref(), &self.driver);
        let class = match (verdict, class) {
            (Verdict::Provision, Some(class)) => class,
            (verdict, _) => return Err(verdict.refusal(&self.driver).expect("the row's verdict is a refusal")),
        };
        self.turn(Some(&class))?;
        let attempt = self.planned(&self.claim, &class)?;
        self.protect(attempt.facts.source.as_ref())?;
        Ok(attempt)
    }

    /// The request that would be sent; nothing is written for it.
    fn planned(&self, claim: &Claim, class: &Class) -> Result<Attempt, Refusal> {
        let grants = read_all(&self.input["objects"]["referenceGrants"]);
        let setting = Setting {
            driver: &self.driver,
            options: &self.options,
            translated_class: self.translated.as_ref(),
            grants: &grants,
        };
        let draft = plan::draft(claim, class, &setting)?;
        let gathered = self.gather(claim, &draft)?;
        plan::finish(draft, gathered)
    }

    /// In a node deployment: an error unless the claim is this node's. One that is nobody's may be taken meanwhile.
    fn turn(&mut self, class: Option<&Class>) -> Result<(), Refusal> {
        let Some(own) = sharing::OwnNode::of(self.input) else { return Ok(()) };
        let may_serve = |class: &Class| {
            let claim = taking::as_if_selected(&self.claim, own.name);
            places::accessibility(&claim, class, &self.driver, &self.options, &mut self.nodes()).is_ok()
        };
        let standing = turn::standing(&self.claim, class, own.contestant(), may_serve);
        if let (Standing::Open, Some(class)) = (standing, class) {
            let wanted = taking::as_if_selected(&self.claim, own.name);
            let too_full = self.planned(&wanted, class).is_ok_and(|attempt| !own.has_room(&attempt));
            if !too_full {
                self.claim = wanted;
            }
        }
        if standing == Standing::Ours { Ok(()) } else { Err(Refusal::NotOurNode { node: own.name.to_owned() }) }
    }

    fn gather(&self, claim: &Claim, draft: &Draft) -> Result<Gathered, Refusal> {
        let secrets = draft.refs.provisioner.as_ref().map(|secret| self.secret(secret)).transpose()?;
        let source =
            draft.source.as_ref().map(|source| self.source(claim, source, draft.required_bytes)).transpose()?;
        let attributes = match &draft.attributes_class {
            Some(name) => match self.find::<AttributesClass>("volumeAttributesClasses", "", name) {
                Found::Object(class) => Some(class),
                Found::Missing | Found::Unreadable(_) => {
                    return Err(Refusal::AttributesClassUnreadable { class: name.clone(), why: "not found".into() });
                }
            },
            None => None,
        };
        let accessibility = places::accessibility(
            claim,
            &self.translated.clone().unwrap_or_else(|| read(&self.input["class"])),
            &self.driver,
            &self.options,
            &mut self.nodes(),
        )?;
        Ok(Gathered { secrets, source, attributes, accessibility })
    }

    /// The places of the row's nodes.
    fn nodes(&self) -> Nodes {
        let mut nodes = Nodes::default();
        for node in read_all::<Node>(&self.input["objects"]["nodes"]) {
            nodes.put_node(node.metadata.name(), node.metadata.labels.clone().unwrap_or_default());
        }
        for csi_node in read_all::<CsiNode>(&self.input["objects"]["csiNodes"]) {
            let ours = csi_node.spec.drivers.iter().find(|driver| driver.name == self.driver.name);
            nodes.put_registration(csi_node.metadata.name(), ours.map(|driver| driver.topology_keys.clone()));
        }
        if let Some(own) = sharing::OwnNode::of(self.input) {
            own.put_into(&mut nodes, &self.driver.name);
        }
        nodes
    }

    fn secret(&self, secret: &SecretRef) -> Result<Secrets, Refusal> {
        secret_in(&self.input["objects"]["secrets"], secret)
            .ok_or_else(|| Refusal::SecretUnreadable { secret: secret.clone(), why: "not found".into() })
    }

    fn source(&self, claim: &Claim, source: &DataSource, required_bytes: i64) -> Result<ContentSource, Refusal> {
        let wanted = Wanted { claim, source, required_bytes, driver: &self.driver.name };
        match source.kind {
            SourceKind::Claim => {
                let found: Found<Claim> = self.find("persistentVolumeClaims", &source.namespace, &source.name);
                let volume = match &found {
                    Found::Object(claim) => match clone_source::volume_to_read(claim) {
                        Some(name) => self.find::<Volume>("persistentVolumes", "", name),
                        None => Found::Missing,
                    },
                    Found::Missing | Found::Unreadable(_) => Found::Missing,
                };
                Ok(clone_source::check(&wanted, &found, &volume)?)
            }
            SourceKind::Snapshot => {
                let found: Found<Snapshot> = self.find("volumeSnapshots", &source.namespace, &source.name);
                let content = match &found {
                    Found::Object(snapshot) => match snapshot_source::content_to_read(snapshot) {
                        Some(name) => self.find::<SnapshotContent>("volumeSnapshotContents", "", name),
                        None => Found::Missing,
                    },
                    Found::Missing | Found::Unreadable(_) => Found::Missing,
                };
                let prevent = self.options.prevent_volume_mode_conversion;
                Ok(snapshot_source::check(&wanted, &found, &content, prevent)?)
            }
        }
    }

    /// Writes the finalizer that the source needs, with the row's answer of the API.
    fn protect(&mut self, source: Option<&DataSource>) -> Result<(), Refusal> {
        let Some(source) = source else { return Ok(()) };
        let (list, wanted) = match source.kind {
            SourceKind::Claim => ("persistentVolumeClaims", CLONE_FINALIZER),
            SourceKind::Snapshot => ("volumeSnapshots", SNAPSHOT_FINALIZER),
        };
        let Found::Object(object) = self.find::<Snapshot>(list, &source.namespace, &source.name) else { return Ok(()) };
        let there = object.metadata.finalizers.clone().unwrap_or_default();
        let Some(changed) = finalizers::added(&there, wanted) else { return Ok(()) };
        match self.input["replies"]["snapshot_update"].as_str() {
            None => self.source_finalizers = Some(changed),
            // Without the right to protect it, the restore goes on.
            Some("Forbidden") => {}
            Some(why) => {
                let snapshot = source.name.clone();
                return Err(SnapshotFault::FinalizerWriteFailed { snapshot, why: why.to_owned() }.into());
            }
        }
        Ok(())
    }

    fn finalizers_after(&self, list: &str) -> Option<Vec<String>> {
        let first = self.input["objects"][list].as_array()?.first()?;
        let before = read::<Snapshot>(first).metadata.finalizers.unwrap_or_default();
        Some(self.source_finalizers.clone().unwrap_or(before))
    }

    fn call(&mut self, attempt: &Attempt) -> Value {
        self.created += 1;
        self.requests.insert("CreateVolume".to_owned(), shown(&attempt.request));
        let reply = &self.input["replies"]["CreateVolume"];
        if let Some(code) = reply["code"].as_str() {
            return call_error(attempt, code);
        }
        let made = reply["volume"].is_object().then(|| created(&reply["volume"]));
        match answer::judge(&attempt.request, &attempt.facts, made.as_ref()) {
            Ok(accepted) => {
                let mut object = volume::persistent_volume(&attempt.facts, &accepted, "test-provisioner");
                // The table looks at the object before the step that adds this one.
                if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                    annotations.remove(PROVISIONED_BY);
                }
                let translated = json!({ "class": self.translated.is_some(), "volume": attempt.facts.migrated });
                json!({ "error": null, "state": "Finished", "pv": object, "translated": translated })
            }
            Err(bad) => {
                let mut cleanup_failed = false;
                if let Some(made) = made.filter(|_| bad.left_a_volume()) {
                    self.deleted += 1;
                    self.requests.insert("DeleteVolume".to_owned(), json!({ "volume_id": made.id }));
                    cleanup_failed = self.input["replies"]["DeleteVolume"]["code"].is_string();
                }
                json!({ "error": {
                    "condition": bad.condition(), "state": "InBackground", "reason": "ProvisioningFailed",
                    "cleanup_failed": cleanup_failed,
                } })
            }
        }
    }

    fn find<T: DeserializeOwned>(&self, list: &str, namespace: &str, name: &str) -> Found<T> {
        named(&self.input["objects"][list], namespace, name)
            .map_or(Found::Missing, |object| Found::Object(read(object)))
    }
}

/// The object of that name in a row's list; an empty namespace stands for cluster-wide objects.
fn named<'a>(list: &'a Value, namespace: &str, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|object| {
        let meta = &object["metadata"];
        meta["name"] == name && meta["namespace"].as_str().unwrap_or_default() == namespace
    })
}

/// The entries of a secret in a row's list.
pub fn secret_in(list: &Value, secret: &SecretRef) -> Option<Secrets> {
    let entry = named(list, &secret.namespace, &secret.name)?;
    Some(Secrets::new(read(&entry["data"])))
}

/// A failed call in the table's words.
pub fn call_error(attempt: &Attempt, code: &str) -> Value {
    let error = CallError { code: code_of(code), from_driver: true, message: "fake error".to_owned() };
    let facts = &attempt.facts;
    let (state, held_back) = match answer::classify(&error, facts.topology_supported, facts.node_selected) {
        AttemptState::Final => ("Finished", false),
        AttemptState::Infeasible => ("Finished", true),
        AttemptState::Background => ("InBackground", false),
        AttemptState::Reschedule => ("Reschedule", false),
    };
    json!({ "error": {
        "condition": "driver-error", "state": state, "held_back": held_back, "reason": "ProvisioningFailed",
        "grpc_code": error.code.name(),
    } })
}
