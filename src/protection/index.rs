//! Which sources unfinished claims name, in a few bytes per claim.
//!
//! Fed with every claim of the cluster: any driver's, with or without a provisioner annotation (late binding has none
//! yet). A claim counts while it is unbound, so what is kept follows open work, not the size of the cluster. Looking a
//! source up costs no scan (weak point W19).

use super::{SourceKey, clone, snapshot};
use crate::model::Claim;
use crate::model::meta::MetaExt;
use std::collections::BTreeMap;

/// Kind of a source that is copied here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `PersistentVolumeClaim`.
    Claim,
    /// `VolumeSnapshot`.
    Snapshot,
}

/// Sources of unfinished claims.
#[derive(Debug, Default)]
pub struct Sources {
    by_claim: BTreeMap<String, (Kind, SourceKey)>,
    users: BTreeMap<(Kind, SourceKey), u32>,
}

impl Sources {
    /// Number of all entries.
    pub fn entries(&self) -> usize {
        self.by_claim.len() + self.users.len()
    }

    /// Takes in a claim; returns the source that has lost its last user by this, to look at its protection.
    pub fn put(&mut self, claim: &Claim) -> Option<(Kind, SourceKey)> {
        let uid = claim.metadata.uid();
        let source = clone::source_of_unfinished(claim)
            .map(|key| (Kind::Claim, key))
            .or_else(|| snapshot::source_of_unfinished(claim).map(|key| (Kind::Snapshot, key)));
        if self.by_claim.get(uid) == source.as_ref() {
            return None;
        }
        let freed = self.remove(uid);
        if let Some(source) = source {
            *self.users.entry(source.clone()).or_default() += 1;
            self.by_claim.insert(uid.to_owned(), source);
        }
        freed.filter(|freed| !self.users.contains_key(freed))
    }

    /// The claim is gone; returns the source that has lost its last user by this.
    pub fn remove(&mut self, claim_uid: &str) -> Option<(Kind, SourceKey)> {
        let source = self.by_claim.remove(claim_uid)?;
        let users = self.users.get_mut(&source)?;
        *users = users.saturating_sub(1);
        if *users > 0 {
            return None;
        }
        self.users.remove(&source);
        Some(source)
    }

    /// How many unfinished claims name this source.
    pub fn users(&self, kind: Kind, key: &SourceKey) -> usize {
        self.users.get(&(kind, key.clone())).map_or(0, |users| *users as usize)
    }

    /// UIDs of the claims that are counted, for the sweep at the end of a list.
    pub fn claims(&self) -> Vec<String> {
        self.by_claim.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn clone_of(uid: &str, source: &str, phase: &str) -> Claim {
        let object = json!({
            "metadata": {"uid": uid, "namespace": "ns", "name": uid},
            "spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": source}},
            "status": {"phase": phase},
        });
        serde_json::from_value(object).expect("a claim")
    }

    #[test]
    fn source_is_used_until_its_last_clone_is_bound_or_gone() {
        let mut sources = Sources::default();
        let key = SourceKey::new("ns", "s");
        sources.put(&clone_of("a", "s", "Pending"));
        sources.put(&clone_of("b", "s", ""));
        assert_eq!(sources.users(Kind::Claim, &key), 2);
        assert_eq!(sources.put(&clone_of("a", "s", "Bound")), None);
        assert_eq!(sources.remove("b"), Some((Kind::Claim, key.clone())));
        assert_eq!(sources.users(Kind::Claim, &key), 0);
    }

    #[test]
    fn the_same_claim_counts_once() {
        let mut sources = Sources::default();
        sources.put(&clone_of("a", "s", "Pending"));
        sources.put(&clone_of("a", "s", "Pending"));
        assert_eq!(sources.users(Kind::Claim, &SourceKey::new("ns", "s")), 1);
    }
}
