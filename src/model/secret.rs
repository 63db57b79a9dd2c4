//! Secret values: usable, never printable.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Decoded entries of a Secret, or none. `Debug` tells only how many there are.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Wraps decoded entries.
    pub fn new(entries: BTreeMap<String, String>) -> Self {
        Self(entries)
    }

    /// The entries, for the one place that sends them to the driver.
    pub fn reveal(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} secret entries>", self.0.len())
    }
}

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretRef {
    /// Name, a DNS subdomain.
    pub name: String,
    /// Namespace, a DNS label.
    pub namespace: String,
}
