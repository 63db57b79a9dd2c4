//! Why a claim cannot be provisioned (yet), before the driver was asked.
//!
//! Promises:
//! - [`Refusal::condition`] is a stable identifier; the text is for people and may be reworded;
//! - each text names the object, the field and the next step, is bounded in length whatever the user wrote, and says
//!   nothing about objects that the claim's owner did not name;
//! - no refusal changes what is known about the backend: an earlier request may still be running there (weak point W2
//!   of the reference).
//!
//! What the driver answered is in [`super::answer`].

use super::clone_source::CloneFault;
use super::naming::NameFault;
use super::secrets::SecretFault;
use super::snapshot_source::SnapshotFault;
use crate::model::secret::SecretRef;

/// Longest piece of foreign text that a message repeats, in characters.
const LONGEST_SHOWN: usize = 256;

/// The text, shortened to 256 characters.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// What a refusal means for the queue. There is no "finished": a refusal happens before the driver is reached, so
/// whatever may be running there stays remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalState {
    /// Tell the user, try again with back-off.
    NoChange,
    /// Tell the user and let the scheduler pick another node.
    Reschedule,
    /// Not our business: no failure event, no failure counted, looked at again when the claim changes.
    Ignored,
}

/// Capability that the driver does not report (provisioning.md 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "capabilities of the CSI interface")]
pub enum Capability {
    ControllerService,
    CreateDeleteVolume,
    CreateDeleteSnapshot,
    CloneVolume,
    ModifyVolume,
}

impl Capability {
    fn condition(self) -> &'static str {
        match self {
            Self::ControllerService => "capability-controller-service-missing",
            Self::CreateDeleteVolume => "capability-create-delete-volume-missing",
            Self::CreateDeleteSnapshot => "capability-create-delete-snapshot-missing",
            Self::CloneVolume => "capability-clone-volume-missing",
            Self::ModifyVolume => "capability-modify-volume-missing",
        }
    }

    fn explain(self) -> &'static str {
        match self {
            Self::ControllerService => {
                "the CSI driver cannot create or delete volumes: it does not report the plugin capability \
                 CONTROLLER_SERVICE"
            }
            Self::CreateDeleteVolume => {
                "the CSI driver cannot create or delete volumes: it does not report the controller capability \
                 CREATE_DELETE_VOLUME"
            }
            Self::CreateDeleteSnapshot => {
                "the CSI driver cannot make volumes from snapshots: it does not report the controller capability \
                 CREATE_DELETE_SNAPSHOT; remove the claim's data source or use another class"
            }
            Self::CloneVolume => {
                "the CSI driver cannot clone volumes: it does not report the controller capability CLONE_VOLUME; \
                 remove the claim's data source or use another class"
            }
            Self::ModifyVolume => {
                "the CSI driver has no volume attributes: it does not report the controller capability MODIFY_VOLUME; \
                 remove spec.volumeAttributesClassName or use another class"
            }
        }
    }
}

/// A claim cannot be provisioned (yet). User text in the fields is already [`cut`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum Refusal {
    /// 3.4 point 5.
    #[error("storage class {class:?} does not exist; create it or name another class in a new claim")]
    ClassNotFound { class: String },
    /// 4.2 step 3.
    #[error("storage class {class:?} cannot be translated to the CSI driver's parameters: {why}")]
    ClassNotTranslatable { class: String, why: String },
    /// 4.1 point 1.
    #[error("the claim is left to the provisioner named in its annotations, not to driver {driver}")]
    NotForThisDriver { driver: String },
    /// 4.1 point 2.
    #[error("the claim is not assigned to node {node}")]
    NotOurNode { node: String },
    /// 8.2 step 7.
    #[error("node {node:?} cannot be selected for the claim: {why}")]
    NodeNotWritten { node: String, why: String },
    /// 4.2 step 4.
    #[error("the claim's data source has no name; set {field}.name in a new claim")]
    SourceNameEmpty { field: &'static str },
    /// 4.2 step 5.
    #[error(
        "the claim's data source is a VolumeSnapshot of API group {group:?}; the group must be snapshot.storage.k8s.io"
    )]
    SourceGroupWrong { group: String },
    /// 4.2 step 6, 4.9.
    #[error("a data source of kind {kind:?} is left to an external populator")]
    ExternalPopulator { kind: String },
    /// 4.8.
    #[error(
        "spec.dataSourceRef.namespace is {namespace:?}, but sources of other namespaces are switched off; \
         start the provisioner with --feature-gates=CrossNamespaceVolumeDataSource=true or use a source of the claim's \
         namespace"
    )]
    SourceNamespaceOff { namespace: String },
    /// 4.8.
    #[error(
        "no ReferenceGrant in namespace {namespace:?} lets claims of namespace {claim_namespace:?} use {kind:?} {name:?}; \
         ask its owner for one"
    )]
    SourceNotGranted { namespace: String, kind: String, name: String, claim_namespace: String },
    /// 4.3.
    #[error("{}", .0.explain())]
    Capability(Capability),
    /// 4.2 step 8.
    #[error("spec.selector is not supported for provisioned volumes; make a new claim without it")]
    Selector,
    /// 4.4.
    #[error("spec.resources.requests.storage {request:?} is no size: {why}")]
    RequestUnreadable { request: String, why: String },
    /// 4.4.
    #[error(transparent)]
    Name(#[from] NameFault),
    /// 4.5.
    #[error("the class sets the file system more than once ({}); keep csi.storage.k8s.io/fstype only", .keys.join(", "))]
    FsTypeTwice { keys: Vec<String> },
    /// 4.6.
    #[error(
        "spec.accessModes {modes:?} cannot be provisioned; \
         use ReadWriteOnce, ReadWriteOncePod, ReadOnlyMany or ReadWriteMany in a new claim"
    )]
    AccessModesUnsupported { modes: Vec<String> },
    /// 4.6.
    #[error("spec.accessModes {modes:?} exclude each other on one volume; choose one of them")]
    AccessModesNotCombinable { modes: Vec<String> },
    /// 4.7.
    #[error(
        "class parameter {key:?} is unknown, and the prefix csi.storage.k8s.io/ is reserved; \
         correct or remove it in the class"
    )]
    ReservedParameter { key: String },
    /// 4.13.
    #[error(transparent)]
    Secret(#[from] SecretFault),
    /// 4.13.
    #[error("secret {} in namespace {} cannot be read: {why}", secret.name, secret.namespace)]
    SecretUnreadable { secret: SecretRef, why: String },
    /// 4.10.
    #[error(transparent)]
    Clone(#[from] CloneFault),
    /// 4.11.
    #[error(transparent)]
    Snapshot(#[from] SnapshotFault),
    /// 4.12: the selected node is not known, or no longer.
    #[error("node {node:?}, selected for the claim, is not known to the driver (no Node or CSINode object of it)")]
    SelectedNodeUnknown { node: String },
    /// 4.12.
    #[error("no place for the volume can be asked of the driver: {why}")]
    TopologyImpossible { why: String },
    /// 4.14.
    #[error("volume attributes class {class:?} cannot be read: {why}")]
    AttributesClassUnreadable { class: String, why: String },
    /// 4.14.
    #[error(
        "volume attributes class {class:?} is for driver {driver:?}, the claim's storage class for {ours:?}; \
         name an attributes class of {ours:?} in spec.volumeAttributesClassName"
    )]
    AttributesClassOfOtherDriver { class: String, driver: String, ours: String },
    /// 15.1 W6: with shortened UIDs two claims can share a name.
    #[error(
        "the volume name {volume:?} belongs to another claim; set a longer --volume-name-uuid-length or another \
         --volume-name-prefix of the provisioner"
    )]
    VolumeNameTaken { volume: String },
    /// 4.2 steps 12 to 14.
    #[error("the data source {source_name:?} cannot be read or protected: {why}")]
    SourceNotProtected { source_name: String, why: String },
    /// `--durable-intent`: what cannot be written down is not begun.
    #[error("{why}; no volume is created before the request is recorded (--durable-intent)")]
    NotRecorded { why: String },
    /// A part that the request needs was not handed over. Only a defect of this program does that; refusing it keeps
    /// an empty volume from being made in place of a copy.
    #[error("the {missing} of the request is missing; this is a defect of the provisioner")]
    Unprepared { missing: &'static str },
}

impl Refusal {
    /// Identifier of the condition, as in the case tables.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::ClassNotFound { .. } => "class-not-found",
            Self::ClassNotTranslatable { .. } => "class-not-translatable",
            Self::NotForThisDriver { .. } => "claim-not-annotated-for-driver",
            Self::NotOurNode { .. } => "not-our-node",
            Self::NodeNotWritten { .. } => "node-not-written",
            Self::SourceNameEmpty { .. } => "data-source-name-empty",
            Self::SourceGroupWrong { .. } => "data-source-group-wrong",
            Self::ExternalPopulator { .. } => "external-populator",
            Self::SourceNamespaceOff { .. } => "cross-namespace-gate-off",
            Self::SourceNotGranted { .. } => "source-not-granted",
            Self::Capability(missing) => missing.condition(),
            Self::Selector => "selector-unsupported",
            Self::RequestUnreadable { .. } => "claim-request-unreadable",
            Self::Name(fault) => fault.condition(),
            Self::FsTypeTwice { .. } => "fstype-given-twice",
            Self::AccessModesUnsupported { .. } => "access-modes-unsupported",
            Self::AccessModesNotCombinable { .. } => "access-modes-not-combinable",
            Self::ReservedParameter { .. } => "reserved-parameter-unknown",
            Self::Secret(fault) => fault.condition(),
            Self::SecretUnreadable { .. } => "secret-unreadable",
            Self::Clone(fault) => fault.condition(),
            Self::Snapshot(fault) => fault.condition(),
            Self::SelectedNodeUnknown { .. } => "selected-node-unknown",
            Self::TopologyImpossible { .. } => "topology-requirement-impossible",
            Self::AttributesClassUnreadable { .. } => "attributes-class-unreadable",
            Self::AttributesClassOfOtherDriver { .. } => "attributes-class-of-other-driver",
            Self::VolumeNameTaken { .. } => "volume-object-of-other-claim",
            Self::SourceNotProtected { .. } => "snapshot-finalizer-write-failed",
            Self::NotRecorded { .. } => "request-not-recorded",
            Self::Unprepared { .. } => "request-unprepared",
        }
    }

    /// What it means for the queue.
    pub fn state(&self) -> RefusalState {
        match self {
            Self::NotForThisDriver { .. } | Self::NotOurNode { .. } | Self::ExternalPopulator { .. } => {
                RefusalState::Ignored
            }
            Self::SelectedNodeUnknown { .. } => RefusalState::Reschedule,
            Self::ClassNotFound { .. }
            | Self::NodeNotWritten { .. }
            | Self::ClassNotTranslatable { .. }
            | Self::SourceNameEmpty { .. }
            | Self::SourceGroupWrong { .. }
            | Self::SourceNamespaceOff { .. }
            | Self::SourceNotGranted { .. }
            | Self::Capability(_)
            | Self::Selector
            | Self::RequestUnreadable { .. }
            | Self::Name(_)
            | Self::FsTypeTwice { .. }
            | Self::AccessModesUnsupported { .. }
            | Self::AccessModesNotCombinable { .. }
            | Self::ReservedParameter { .. }
            | Self::Secret(_)
            | Self::SecretUnreadable { .. }
            | Self::Clone(_)
            | Self::Snapshot(_)
            | Self::TopologyImpossible { .. }
            | Self::AttributesClassUnreadable { .. }
            | Self::AttributesClassOfOtherDriver { .. }
            | Self::VolumeNameTaken { .. }
            | Self::SourceNotProtected { .. }
            | Self::NotRecorded { .. }
            | Self::Unprepared { .. } => RefusalState::NoChange,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_cut_at_256_characters() {
        assert_eq!(cut(&"a".repeat(256)), "a".repeat(256));
        assert_eq!(cut(&"ä".repeat(257)), format!("{}...", "ä".repeat(256)));
    }
}
