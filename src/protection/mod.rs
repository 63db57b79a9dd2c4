//! Keeps sources alive while volumes are made from them.
//!
//! [`clone`] (claims), [`snapshot`] (snapshots), [`sweep`] (protection of snapshots that was left behind).

pub mod clone;
pub mod snapshot;
pub mod sweep;

/// A source by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl SourceKey {
    /// The key of these names.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}
