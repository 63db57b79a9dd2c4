//! What a decision looks like: writes and events in order, and what to look at next.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Objects of one kind by key (`name` or `namespace/name`).
pub type Objects = BTreeMap<String, Arc<Value>>;

/// Everything a decision may look at.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Volumes by name.
    pub volumes: Objects,
    /// Claims by key.
    pub claims: Objects,
    /// Claims that the API has and the cache has not.
    pub live_claims: Objects,
    /// Storage classes by name.
    pub classes: Objects,
    /// Pods by key.
    pub pods: Objects,
}

impl View {
    /// A claim as the API has it.
    pub fn live_claim(&self, key: &str) -> Option<&Arc<Value>> {
        self.live_claims.get(key).or_else(|| self.claims.get(key))
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Write a volume's main part.
    WriteVolume(Value),
    /// Write a volume's status.
    WriteVolumeStatus(Value),
    /// Write a claim's main part.
    WriteClaim(Value),
    /// Write a claim's status.
    WriteClaimStatus(Value),
    /// Send an event.
    Tell(Note),
    /// Look at this claim next.
    WakeClaim(String),
    /// Start the operation that has the claim provisioned.
    Provision(String),
    /// Start the operation that deletes what is behind the volume.
    Delete(String),
    /// Start the operation that empties the volume.
    Recycle(String),
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Reference to the object that it is about.
    pub regarding: Value,
    /// `Warning` instead of `Normal`.
    pub warning: bool,
    /// Reason.
    pub reason: &'static str,
    /// Text.
    pub message: String,
}

/// Actions in order; the first that fails ends the plan. `error` is what made the decision itself stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// Why the sync counts as failed and is tried again with back-off.
    pub error: Option<String>,
}

impl Plan {
    /// Adds an action.
    pub fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Adds a Normal event.
    pub fn normal(&mut self, about: Value, reason: &'static str, message: String) {
        self.act(Action::Tell(Note { regarding: about, warning: false, reason, message }));
    }

    /// Adds a Warning event.
    pub fn warning(&mut self, about: Value, reason: &'static str, message: String) {
        self.act(Action::Tell(Note { regarding: about, warning: true, reason, message }));
    }
}

/// The reference by which an event names a claim.
pub fn about_claim(claim: &Value) -> Value {
    reference("PersistentVolumeClaim", claim)
}

/// The reference by which an event names a volume.
pub fn about_volume(volume: &Value) -> Value {
    reference("PersistentVolume", volume)
}

/// An `ObjectReference` to an object of the core group.
pub fn reference(kind: &str, object: &Value) -> Value {
    let mut reference = json!({"kind": kind, "apiVersion": "v1"});
    for field in ["namespace", "name", "uid", "resourceVersion"] {
        if let (Some(value), Some(fields)) = (object.pointer(&format!("/metadata/{field}")), reference.as_object_mut())
        {
            fields.insert(field.to_owned(), value.clone());
        }
    }
    reference
}
