//! Claims whose request the driver called invalid, held back for a while (provisioning.md 3.7).
//!
//! Promises:
//! - a claim is held for the given time since its first such answer; another equal answer does not prolong it;
//! - the hold ends at once when something changes that the request is made of: the claim's specification, its class or
//!   its selected node (weak points W5 b and c of the reference); labels, annotations and status do not matter.
//!
//! The time comes as an argument; whoever holds this decides when to look again ([`HoldBack::remaining`]).

use crate::model::claim::ClaimSpec;
use crate::model::meta::MetaExt;
use crate::model::{Claim, Class};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What a request is made of. Two equal ones lead to the same request.
#[derive(Clone, Debug, PartialEq)]
pub struct Fingerprint {
    spec: ClaimSpec,
    class_name: String,
    selected_node: String,
    class_uid: String,
    class_version: String,
}

impl Fingerprint {
    /// Of a claim and its class. The attributes class counts by name, as part of the claim's specification.
    pub fn of(claim: &Claim, class: &Class) -> Self {
        Self {
            spec: claim.spec.clone(),
            class_name: claim.class_name().to_owned(),
            selected_node: claim.selected_node().to_owned(),
            class_uid: class.metadata.uid().to_owned(),
            class_version: class.metadata.version().to_owned(),
        }
    }
}

/// The held claims, by UID.
#[derive(Debug)]
pub struct HoldBack {
    retention: Duration,
    held: BTreeMap<String, (Instant, Fingerprint)>,
}

impl HoldBack {
    /// How many claims are held back.
    pub fn entries(&self) -> usize {
        self.held.len()
    }

    /// Nothing held. `retention` = how long a claim is held.
    pub fn new(retention: Duration) -> Self {
        Self { retention, held: BTreeMap::new() }
    }

    /// Holds a claim. If it is held for the same request already, the time of the first answer stands.
    pub fn hold(&mut self, uid: &str, fingerprint: Fingerprint, now: Instant) {
        if self.remaining(uid, &fingerprint, now).is_none() {
            self.held.insert(uid.to_owned(), (now, fingerprint));
        }
    }

    /// How long the claim is still held; `None` = it is not, and what was remembered is dropped.
    pub fn remaining(&mut self, uid: &str, fingerprint: &Fingerprint, now: Instant) -> Option<Duration> {
        let (since, held) = self.held.get(uid)?;
        let left = self.retention.saturating_sub(now.saturating_duration_since(*since));
        if held == fingerprint && !left.is_zero() {
            return Some(left);
        }
        self.held.remove(uid);
        None
    }

    /// When the claim was first held, if it is remembered.
    pub fn since(&self, uid: &str) -> Option<Instant> {
        self.held.get(uid).map(|(since, _)| *since)
    }

    /// The claim is gone or got its volume.
    pub fn forget(&mut self, uid: &str) {
        self.held.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(spec: &serde_json::Value, annotations: &serde_json::Value) -> Claim {
        serde_json::from_value(json!({ "metadata": { "uid": "u", "annotations": annotations }, "spec": spec })).unwrap()
    }

    fn class(version: &str) -> Class {
        serde_json::from_value(json!({ "metadata": { "uid": "c", "resourceVersion": version } })).unwrap()
    }

    #[test]
    fn only_a_change_of_the_request_ends_the_hold() {
        let now = Instant::now();
        let mut held = HoldBack::new(Duration::from_mins(5));
        let spec = json!({ "storageClassName": "a", "resources": { "requests": { "storage": "1Gi" } } });
        held.hold("u", Fingerprint::of(&claim(&spec, &json!({})), &class("1")), now);
        let noted = claim(&spec, &json!({ "team": "x" }));
        let left = held.remaining("u", &Fingerprint::of(&noted, &class("1")), now + Duration::from_secs(299));
        assert_eq!(left, Some(Duration::from_secs(1)));
        let changes = [
            (claim(&json!({ "storageClassName": "a", "volumeAttributesClassName": "g" }), &json!({})), class("1")),
            (claim(&spec, &json!({ "volume.kubernetes.io/selected-node": "n" })), class("1")),
            (claim(&spec, &json!({ "volume.beta.kubernetes.io/storage-class": "b" })), class("1")),
            (claim(&spec, &json!({})), class("2")),
        ];
        for (changed, class) in changes {
            let mut held = HoldBack::new(Duration::from_mins(5));
            held.hold("u", Fingerprint::of(&claim(&spec, &json!({})), &self::class("1")), now);
            assert_eq!(held.remaining("u", &Fingerprint::of(&changed, &class), now), None);
            assert_eq!(held.since("u"), None);
        }
    }
}
