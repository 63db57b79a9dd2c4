//! Keeps a snapshot alive while a volume is made from it (provisioning.md 10.1 and the reference rule of 10.2).
//!
//! Promises: the protection goes when no restore is open any more, not with the first finished one, and not before the
//! volume object is saved (weak point W9 of the reference).

use super::SourceKey;
use crate::model::Claim;
use crate::model::claim::SourceReference;
use crate::model::meta::MetaExt;
use crate::model::snapshot::{SNAPSHOT_FINALIZER, SNAPSHOT_GROUP, Snapshot};

/// The snapshot that the claim restores, however it names it; `None` = it restores none.
pub fn restored_by(claim: &Claim) -> Option<SourceKey> {
    let own = claim.metadata.namespace();
    let is_snapshot = |source: &&SourceReference| {
        source.kind == "VolumeSnapshot" && matches!(source.api_group.as_deref(), None | Some(SNAPSHOT_GROUP))
    };
    if let Some(source) = claim.spec.data_source.as_ref().filter(is_snapshot) {
        return Some(SourceKey::new(own, &source.name));
    }
    let source = claim.spec.data_source_ref.as_ref().filter(is_snapshot)?;
    let namespace = source.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(own);
    Some(SourceKey::new(namespace, &source.name))
}

/// The snapshot of a restore that is not finished; `None` for every other claim.
pub fn source_of_unfinished(claim: &Claim) -> Option<SourceKey> {
    if matches!(claim.phase(), "Pending" | "") { restored_by(claim) } else { None }
}

/// Whether the finalizer is to be removed after a restore. `open` = restores of this snapshot that are not finished:
/// unbound claims that name it, unresolved creations, created volumes whose object is not saved.
pub fn may_release(snapshot: &Snapshot, open: usize) -> bool {
    open == 0 && snapshot.metadata.has_finalizer(SNAPSHOT_FINALIZER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protection_goes_with_the_last_open_restore() {
        let mut snapshot = Snapshot::default();
        assert!(!may_release(&snapshot, 0));
        snapshot.metadata.finalizers = Some(vec![SNAPSHOT_FINALIZER.to_owned()]);
        assert!(!may_release(&snapshot, 2) && !may_release(&snapshot, 1));
        assert!(may_release(&snapshot, 0));
    }
}
