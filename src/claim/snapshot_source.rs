//! Whether a claim can be filled from a snapshot (provisioning.md 4.11).
//!
//! Promises: the checks run in a fixed order and only say "yes" when the snapshot is ready, ours, small enough and may
//! be read in the claim's volume mode; each cause has a text of its own (field case U03).

use super::clone_source::Wanted;
use super::refusal::cut;
use super::source::Found;
use crate::model::meta::MetaExt;
use crate::model::quantity;
use crate::model::request::ContentSource;
use crate::model::snapshot::{SNAPSHOT_FINALIZER, Snapshot, SnapshotContent};

/// Annotation on a content that allows its data to be read in another volume mode.
pub const MODE_CHANGE_ANNOTATION: &str = "snapshot.storage.kubernetes.io/allow-volume-mode-change";

/// Why the snapshot cannot be used (yet). `snapshot` is shown as `namespace/name` if it is in another namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum SnapshotFault {
    #[error("snapshot {snapshot:?} does not exist; create it, or name another source in a new claim")]
    Missing { snapshot: String },
    #[error("snapshot {snapshot:?} cannot be read: {why}")]
    Unreadable { snapshot: String, why: String },
    #[error("snapshot {snapshot:?} is being deleted; name another source in a new claim")]
    BeingDeleted { snapshot: String },
    #[error("snapshot {snapshot:?} is not bound to a content yet; see the snapshot's status and events")]
    NotBound { snapshot: String },
    #[error("the content of snapshot {snapshot:?} does not exist; see the snapshot's status and events")]
    ContentMissing { snapshot: String },
    #[error("the content of snapshot {snapshot:?} cannot be read: {why}")]
    ContentUnreadable { snapshot: String, why: String },
    #[error("the content of snapshot {snapshot:?} belongs to another snapshot; see the snapshot's status and events")]
    ContentBoundElsewhere { snapshot: String },
    #[error("snapshot {snapshot:?} was made by another CSI driver than that of storage class {class:?}")]
    OtherDriver { snapshot: String, class: String },
    #[error("snapshot {snapshot:?} is not ready to use yet; see the snapshot's status and events")]
    NotReady { snapshot: String },
    #[error("snapshot {snapshot:?} has no handle of the driver yet; see the snapshot's status and events")]
    HandleMissing { snapshot: String },
    #[error("snapshot {snapshot:?} has an unreadable status.restoreSize: {why}")]
    RestoreSizeUnreadable { snapshot: String, why: String },
    #[error("the claim requests no storage, snapshot {snapshot:?} needs at least {size} bytes")]
    RequestMissing { snapshot: String, size: i64 },
    #[error("the claim requests {requested} bytes, snapshot {snapshot:?} needs at least {size}")]
    TooSmall { snapshot: String, requested: i64, size: i64 },
    #[error(
        "the claim's volume mode differs from that of the volume behind snapshot {snapshot:?}, which needs the \
         administrator's permission: {why}"
    )]
    ModeChange { snapshot: String, why: ModeChangeFault },
    #[error("the protection of snapshot {snapshot:?} could not be written: {why}")]
    FinalizerWriteFailed { snapshot: String, why: String },
}

/// Why the volume mode may not change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModeChangeFault {
    /// No annotation.
    #[error("annotation {MODE_CHANGE_ANNOTATION} is not set on its content")]
    NotPermitted,
    /// The annotation is no boolean.
    #[error("annotation {MODE_CHANGE_ANNOTATION} of its content is {0:?}; use true or false")]
    Unparsable(String),
    /// The annotation is false.
    #[error("annotation {MODE_CHANGE_ANNOTATION} of its content is false")]
    Forbidden,
}

impl SnapshotFault {
    /// Identifier of the condition.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::Unreadable { .. } => "snapshot-unreadable",
            Self::BeingDeleted { .. } => "snapshot-being-deleted",
            Self::NotBound { .. } => "snapshot-not-bound",
            Self::ContentMissing { .. } | Self::ContentUnreadable { .. } => "snapshot-content-unreadable",
            Self::ContentBoundElsewhere { .. } => "snapshot-content-bound-elsewhere",
            Self::OtherDriver { .. } => "snapshot-content-of-other-driver",
            Self::NotReady { .. } => "snapshot-not-ready",
            Self::HandleMissing { .. } => "snapshot-handle-missing",
            Self::RestoreSizeUnreadable { .. } => "snapshot-restore-size-unreadable",
            Self::RequestMissing { .. } => "claim-request-missing",
            Self::TooSmall { .. } => "request-below-restore-size",
            Self::ModeChange { why: ModeChangeFault::NotPermitted, .. } => "volume-mode-change-annotation-missing",
            Self::ModeChange { why: ModeChangeFault::Unparsable(_), .. } => "volume-mode-change-annotation-unparsable",
            Self::ModeChange { why: ModeChangeFault::Forbidden, .. } => "volume-mode-change-annotation-false",
            Self::FinalizerWriteFailed { .. } => "snapshot-finalizer-write-failed",
        }
    }
}

/// The content to read before [`check`]; `None` while the snapshot names none.
pub fn content_to_read(snapshot: &Snapshot) -> Option<&str> {
    snapshot.status.as_ref()?.bound_volume_snapshot_content_name.as_deref().filter(|name| !name.is_empty())
}

/// The snapshot handle to fill the volume from. `prevent_mode_change` = `--prevent-volume-mode-conversion`.
pub fn check(
    wanted: &Wanted<'_>,
    snapshot: &Found<Snapshot>,
    content: &Found<SnapshotContent>,
    prevent_mode_change: bool,
) -> Result<ContentSource, SnapshotFault> {
    let name = wanted.source_name();
    let object = match snapshot {
        Found::Object(object) => object,
        Found::Missing => return Err(SnapshotFault::Missing { snapshot: name }),
        Found::Unreadable(why) => return Err(SnapshotFault::Unreadable { snapshot: name, why: cut(why) }),
    };
    if object.metadata.is_being_deleted() && !object.metadata.has_finalizer(SNAPSHOT_FINALIZER) {
        return Err(SnapshotFault::BeingDeleted { snapshot: name });
    }
    if content_to_read(object).is_none() {
        return Err(SnapshotFault::NotBound { snapshot: name });
    }
    let content = check_content(wanted, object, content)?;
    if object.status.as_ref().and_then(|status| status.ready_to_use) != Some(true) {
        return Err(SnapshotFault::NotReady { snapshot: name });
    }
    let handle = content.status.as_ref().and_then(|status| status.snapshot_handle.as_deref());
    let Some(handle) = handle.filter(|handle| !handle.is_empty()) else {
        return Err(SnapshotFault::HandleMissing { snapshot: name });
    };
    check_size(wanted, object)?;
    if prevent_mode_change {
        check_mode(wanted, content).map_err(|why| SnapshotFault::ModeChange { snapshot: name, why })?;
    }
    Ok(ContentSource::Snapshot(handle.to_owned()))
}

fn check_content<'a>(
    wanted: &Wanted<'_>,
    snapshot: &Snapshot,
    content: &'a Found<SnapshotContent>,
) -> Result<&'a SnapshotContent, SnapshotFault> {
    let name = wanted.source_name();
    let content = match content {
        Found::Object(content) => content,
        Found::Missing => return Err(SnapshotFault::ContentMissing { snapshot: name }),
        Found::Unreadable(why) => return Err(SnapshotFault::ContentUnreadable { snapshot: name, why: cut(why) }),
    };
    let (owner, meta) = (&content.spec.volume_snapshot_ref, &snapshot.metadata);
    if owner.uid != meta.uid() || owner.namespace != meta.namespace() || owner.name != meta.name() {
        return Err(SnapshotFault::ContentBoundElsewhere { snapshot: name });
    }
    if content.spec.driver != wanted.driver {
        return Err(SnapshotFault::OtherDriver { snapshot: name, class: cut(wanted.claim.class_name()) });
    }
    Ok(content)
}

fn check_size(wanted: &Wanted<'_>, snapshot: &Snapshot) -> Result<(), SnapshotFault> {
    let Some(size) = snapshot.status.as_ref().and_then(|status| status.restore_size.as_deref()) else {
        return Ok(());
    };
    let name = wanted.source_name();
    let size = match quantity::ceil_bytes(size) {
        Ok(size) => size,
        Err(error) => return Err(SnapshotFault::RestoreSizeUnreadable { snapshot: name, why: error.to_string() }),
    };
    if !wanted.claim.spec.resources.requests.contains_key("storage") {
        return Err(SnapshotFault::RequestMissing { snapshot: name, size });
    }
    let requested = wanted.required_bytes;
    if requested < size {
        return Err(SnapshotFault::TooSmall { snapshot: name, requested, size });
    }
    Ok(())
}

/// Only a mode that is known on both sides can differ: old contents do not tell theirs.
fn check_mode(wanted: &Wanted<'_>, content: &SnapshotContent) -> Result<(), ModeChangeFault> {
    let (Some(from), Some(to)) = (&content.spec.source_volume_mode, &wanted.claim.spec.volume_mode) else {
        return Ok(());
    };
    if from == to {
        return Ok(());
    }
    match content.metadata.annotation(MODE_CHANGE_ANNOTATION) {
        None => Err(ModeChangeFault::NotPermitted),
        Some("1" | "t" | "T" | "TRUE" | "true" | "True") => Ok(()),
        Some("0" | "f" | "F" | "FALSE" | "false" | "False") => Err(ModeChangeFault::Forbidden),
        Some(other) => Err(ModeChangeFault::Unparsable(cut(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::source::{DataSource, SourceKind};
    use crate::model::Claim;
    use serde_json::json;

    fn mode_is_taken(from: Option<&str>, to: Option<&str>) -> bool {
        let source = DataSource { kind: SourceKind::Snapshot, namespace: "ns".to_owned(), name: "snap".to_owned() };
        let mut claim = Claim::default();
        claim.spec.volume_mode = to.map(str::to_owned);
        let content = serde_json::from_value(json!({ "spec": { "sourceVolumeMode": from } })).unwrap();
        check_mode(&Wanted { claim: &claim, source: &source, required_bytes: 1, driver: "d" }, &content).is_ok()
    }

    /// Field fault B06: the API server fills in the claim's mode, so that both sides usually name it.
    #[test]
    fn modes_compare_by_value_and_an_unknown_one_differs_from_none() {
        assert!(mode_is_taken(Some("Filesystem"), Some("Filesystem")) && mode_is_taken(Some("Block"), Some("Block")));
        assert!(mode_is_taken(None, Some("Block")) && mode_is_taken(Some("Block"), None));
        assert!(!mode_is_taken(Some("Block"), Some("Filesystem")) && !mode_is_taken(Some("Filesystem"), Some("Block")));
    }
}
