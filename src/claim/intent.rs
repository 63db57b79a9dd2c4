//! The durable record of a creation that may be running in the backend (weak points W1 to W4; `--durable-intent`).
//!
//! A record is a `ConfigMap` in the sidecar's own namespace, never on a user's object: who may write a claim could forge
//! it. It holds the whole request but no secret, only where the secret is.
//!
//! Promises: the name is a pure function of driver, node (in a node deployment) and claim UID, so that all replicas mean the
//! same record and an instance never goes on with another node's creation; a record
//! that is not exactly ours (other driver, other claim, unknown version, unreadable) is refused with a reason and
//! changes nothing.

use super::plan::Attempt;
use serde_json::{Value, json};

/// Label that all records of one [`Scope`] carry; its value is [`Scope::mark`].
pub const LABEL: &str = "csi-provisioner/intent-of";
/// Version of the stored form. Another version is refused, never guessed.
const VERSION: &str = "1";
/// Most bytes of a stored request: objects of more than about 1 MiB are refused by the API server.
const LARGEST: usize = 900 * 1024;

/// Why a record cannot be written or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// The request does not fit into one object.
    #[error("the request takes {0} bytes, too much for one record; narrow the class's allowedTopologies")]
    TooLarge(usize),
    /// It is of another driver, version or claim.
    #[error("record {name} is not one of this driver's: {why}")]
    Foreign {
        /// Name of the `ConfigMap`.
        name: String,
        /// What differs.
        why: &'static str,
    },
    /// Its content is no request.
    #[error("record {name} cannot be read: {why}")]
    Unreadable {
        /// Name of the `ConfigMap`.
        name: String,
        /// What is wrong.
        why: String,
    },
}

/// Whose records: those of a driver, in a node deployment of the driver on one node.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Name of the driver.
    pub driver: &'a str,
    /// The node of a node deployment.
    pub node: Option<&'a str>,
}

impl Scope<'_> {
    /// Stable mark: 64-bit FNV-1a of the names, in hexadecimal.
    pub fn mark(&self) -> String {
        // No name holds a slash, so that no two scopes have the same text.
        let node = self.node.into_iter().flat_map(|node| b"/".iter().copied().chain(node.bytes()));
        let bytes = self.driver.bytes().chain(node);
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325_u64, step))
    }
}

/// Name of the record of a claim.
pub fn name(scope: Scope<'_>, claim_uid: &str) -> String {
    format!("csi-provisioner-intent-{}-{claim_uid}", scope.mark())
}

/// The `ConfigMap` for an attempt.
pub fn record(attempt: &Attempt, namespace: &str, scope: Scope<'_>) -> Result<Value, RecordFault> {
    let facts = &attempt.facts;
    let name = name(scope, &facts.claim.uid);
    let content = serde_json::to_string(attempt)
        .map_err(|error| RecordFault::Unreadable { name: name.clone(), why: error.to_string() })?;
    if content.len() > LARGEST {
        return Err(RecordFault::TooLarge(content.len()));
    }
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": { LABEL: scope.mark() },
        },
        "data": {
            "version": VERSION,
            "driver": facts.driver,
            "claim": format!("{}/{}", facts.claim.namespace, facts.claim.name),
            "attempt": content,
        },
    }))
}

/// The attempt of a record, without secrets: they are read anew before it is repeated.
pub fn attempt(record: &Value, scope: Scope<'_>) -> Result<Attempt, RecordFault> {
    let driver = scope.driver;
    let text = |path: &str| record.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let found = text("/metadata/name");
    let foreign = |why| RecordFault::Foreign { name: found.to_owned(), why };
    if text("/data/version") != VERSION {
        return Err(foreign("its version is not known"));
    }
    if text("/data/driver") != driver {
        return Err(foreign("it names another driver"));
    }
    let attempt: Attempt = serde_json::from_str(text("/data/attempt"))
        .map_err(|error| RecordFault::Unreadable { name: found.to_owned(), why: error.to_string() })?;
    if found != name(scope, &attempt.facts.claim.uid) {
        return Err(foreign("its name does not belong to its claim"));
    }
    if attempt.facts.driver != driver || attempt.request.name != attempt.facts.volume_name {
        return Err(foreign("its request does not belong to its facts"));
    }
    Ok(attempt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CreateRequest, Secrets};
    use std::collections::BTreeMap;

    const SCOPE: Scope<'_> = Scope { driver: "d.example", node: None };

    fn sample() -> Attempt {
        let mut attempt = Attempt::default();
        attempt.facts.driver = "d.example".into();
        attempt.facts.volume_name = "pvc-1".into();
        attempt.facts.claim.uid = "uid-1".into();
        attempt.request = CreateRequest {
            name: "pvc-1".into(),
            secrets: Secrets::new(BTreeMap::from([("password".into(), "s3cr3t".into())])),
            ..CreateRequest::default()
        };
        attempt
    }

    #[test]
    fn record_gives_the_attempt_back_without_its_secrets() {
        let record = record(&sample(), "ns", SCOPE).expect("fits");
        assert!(!record.to_string().contains("s3cr3t"));
        let mut wanted = sample();
        wanted.request.secrets = Secrets::default();
        assert_eq!(attempt(&record, SCOPE), Ok(wanted));
    }

    #[test]
    fn record_of_another_driver_version_or_claim_is_refused() {
        let good = record(&sample(), "ns", SCOPE).expect("fits");
        for (path, value) in [
            ("/data/version", "2"),
            ("/data/driver", "other"),
            ("/metadata/name", "csi-provisioner-intent-x-uid-1"),
            ("/data/attempt", "{}x"),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(path).expect("there") = value.into();
            assert!(attempt(&bad, SCOPE).is_err(), "{path}");
        }
    }

    #[test]
    fn record_of_another_node_is_refused() {
        let on = |node| Scope { node: Some(node), ..SCOPE };
        let record = record(&sample(), "ns", on("n1")).expect("fits");
        assert!(attempt(&record, on("n1")).is_ok());
        assert!(attempt(&record, on("n2")).is_err());
        assert!(attempt(&record, SCOPE).is_err());
    }
}
