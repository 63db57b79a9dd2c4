//! Keeps sources alive while volumes are made from them.
//!
//! [`clone`] (claims), [`snapshot`] (snapshots), [`sweep`] (protection of snapshots that was left behind), [`index`]
//! (who uses which source), [`book`] (what is known), [`watching`] (how claims get in). [`worker`] does the I/O; the
//! finalizers are put on by the claim room, right before the driver is asked.

pub mod book;
pub mod clone;
pub mod index;
pub mod snapshot;
pub mod sweep;
pub mod watching;
pub mod worker;

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
