//! Keeps a claim alive while another one is cloned from it (provisioning.md 9).
//!
//! Promises: an unfinished clone counts wherever it is and however it names its source, also before any controller has
//! seen it (weak point W13 of the reference). The finalizer only leaves a source that is being deleted.
//!
//! A source protects itself by key, not by UID: like the reference's clones, ours name it by namespace and name.

use super::SourceKey;
use crate::model::Claim;
use crate::model::claim::CLONE_FINALIZER;
use crate::model::meta::MetaExt;

/// What a source claim needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Nothing: it is not being deleted or not protected.
    NotDue,
    /// To wait: an unfinished clone uses it.
    CloneInProgress,
    /// Its finalizer removed.
    Due,
}

/// Whether the claim is to be looked at: it is being deleted.
pub fn is_candidate(claim: &Claim) -> bool {
    claim.metadata.is_being_deleted()
}

/// The source of a clone that is not finished; `None` for every other claim.
pub fn source_of_unfinished(claim: &Claim) -> Option<SourceKey> {
    if !matches!(claim.phase(), "Pending" | "") {
        return None;
    }
    let reference = claim.source()?;
    (reference.kind == "PersistentVolumeClaim").then(|| SourceKey::new(reference.namespace, reference.name))
}

/// What is due for a source. `used` = some claim's [`source_of_unfinished`] is this one, or a creation from it is
/// unresolved.
pub fn release(source: &Claim, used: bool) -> Release {
    if !is_candidate(source) || !source.metadata.has_finalizer(CLONE_FINALIZER) {
        return Release::NotDue;
    }
    if used { Release::CloneInProgress } else { Release::Due }
}
