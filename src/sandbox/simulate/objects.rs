//! Objects for simulated worlds, and what is mostly asked about them.

use super::World;
use crate::sandbox::apiserver::DeleteOptions;
use crate::sandbox::apiserver::refusal::Refusal;
use serde_json::{Value, json};

/// Namespace of all claims made here.
pub const NAMESPACE: &str = "default";
/// Plural of claims.
pub const CLAIMS: &str = "persistentvolumeclaims";
/// Plural of volume objects.
pub const VOLUMES: &str = "persistentvolumes";
/// Plural of classes.
pub const CLASSES: &str = "storageclasses";
/// Annotation that names the node for a late-binding claim.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A class of `driver` with policy Delete and immediate binding.
pub fn class(name: &str, driver: &str) -> Value {
    json!({"metadata": {"name": name}, "provisioner": driver, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})
}

/// A claim of 1 GiB.
pub fn claim(name: &str, class: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "storageClassName": class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

/// The text at a JSON pointer, or nothing.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl World {
    /// Creates an object.
    ///
    /// # Panics
    /// If the API server refuses it: a mistake of the test.
    pub fn add(&self, plural: &str, object: Value) -> Value {
        let namespace = text(&object, "/metadata/namespace").to_owned();
        match self.server.create(plural, &namespace, object) {
            Ok(stored) => stored,
            Err(refusal) => panic!("{plural} refused: {refusal:?}"),
        }
    }

    /// Adds a class of this world's driver.
    pub fn add_class(&self, name: &str) -> Value {
        self.add(CLASSES, class(name, self.driver.name()))
    }

    /// Adds a claim of 1 GiB.
    pub fn add_claim(&self, name: &str, class: &str) -> Value {
        self.trace.note("user", format_args!("creates claim {name}"));
        self.add(CLAIMS, claim(name, class))
    }

    /// Deletes an object; one that does not exist is fine.
    pub fn remove(&self, plural: &str, name: &str) {
        let namespace = if matches!(plural, VOLUMES | CLASSES | "nodes" | "csinodes" | "volumeattachments") {
            ""
        } else {
            NAMESPACE
        };
        self.trace.note("user", format_args!("deletes {plural} {name}"));
        // Gone already is as good.
        let _gone: Result<_, Refusal> = self.server.delete(plural, namespace, name, &DeleteOptions::default());
    }

    /// Changes an object by `change` and writes it, again when somebody else wrote in between.
    ///
    /// # Panics
    /// If the object does not exist or the change is refused: a mistake of the test.
    pub fn edit(&self, plural: &str, namespace: &str, name: &str, change: impl Fn(&mut Value)) -> Value {
        let mut object = match self.server.get(plural, namespace, name) {
            Ok(object) => object,
            Err(refusal) => panic!("{plural} {name} cannot be read: {refusal:?}"),
        };
        change(&mut object);
        self.trace.note("user", format_args!("edits {plural} {name}"));
        match self.server.update(plural, namespace, object) {
            Ok(object) => object,
            Err(refusal) => panic!("{plural} {name} cannot be changed: {refusal:?}"),
        }
    }

    /// A claim as it is.
    pub fn claim(&self, name: &str) -> Option<Value> {
        self.server.get(CLAIMS, NAMESPACE, name).ok()
    }

    /// Whether a claim is bound.
    pub fn is_bound(&self, name: &str) -> bool {
        self.claim(name).is_some_and(|claim| text(&claim, "/status/phase") == "Bound")
    }

    /// Whether every claim is bound.
    pub fn all_bound(&self) -> bool {
        self.all(CLAIMS).iter().all(|claim| text(claim, "/status/phase") == "Bound")
    }

    /// The volume object of a bound claim.
    pub fn volume_of(&self, claim: &str) -> Option<Value> {
        let claim = self.claim(claim)?;
        self.server.get(VOLUMES, "", text(&claim, "/spec/volumeName")).ok()
    }

    /// Events about objects of this name: reason, message and count.
    pub fn events_about(&self, name: &str) -> Vec<(String, String, i64)> {
        self.all("events")
            .iter()
            .filter(|event| text(event, "/involvedObject/name") == name)
            .map(|event| {
                let count = event.pointer("/count").and_then(Value::as_i64).unwrap_or(1);
                (text(event, "/reason").to_owned(), text(event, "/message").to_owned(), count)
            })
            .collect()
    }

    /// How many requests of this verb and kind arrived, with this answer if one is given.
    pub fn requests_of(&self, verb: &str, plural: &str, code: Option<u16>) -> usize {
        let hits = |request: &&crate::sandbox::apiserver::requests::Request| {
            request.call.verb == verb && request.call.resource == plural && (code.is_none() || request.code == code)
        };
        self.server.requests().iter().filter(hits).count()
    }
}
