//! Reference grants by namespace: who may copy sources of other namespaces. Kept only with the gate on.

use crate::model::grant::Grant;
use crate::model::meta::MetaExt;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The grants as last seen, by `namespace/name`.
#[derive(Debug, Default)]
pub struct Grants(Mutex<BTreeMap<String, Grant>>);

impl Grants {
    /// All grants of a namespace.
    pub fn of_namespace(&self, namespace: &str) -> Vec<Grant> {
        self.with(|grants| grants.values().filter(|grant| grant.metadata.namespace() == namespace).cloned().collect())
    }

    /// Takes in a grant.
    pub fn put(&self, grant: Grant) {
        self.with(|grants| grants.insert(grant.metadata.key(), grant));
    }

    /// Forgets a grant.
    pub fn remove(&self, key: &str) {
        self.with(|grants| grants.remove(key));
    }

    /// Keys of all grants, for the sweep at the end of a list.
    pub fn keys(&self) -> Vec<String> {
        self.with(|grants| grants.keys().cloned().collect())
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Grant>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
