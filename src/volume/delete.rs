//! Whether and how the storage of a volume is deleted (provisioning.md 7.4 to 7.7).
//!
//! The way: [`should_delete`]; [`handle`] (the volume id, or why there is none to delete); [`check_attachments`], before
//! any secret is read (weak point W25 of the reference); [`secret_source`] and, if that says so, [`secret_from_class`].

use crate::claim::refusal::{Capability, Refusal, cut};
use crate::claim::secrets::{Role, SecretFault, TemplateClaim, resolve};
use crate::model::driver::Capabilities;
use crate::model::meta::MetaExt;
use crate::model::secret::SecretRef;
use crate::model::volume::{CsiSource, DELETION_SECRET_NAME, DELETION_SECRET_NAMESPACE, VOLUME_FINALIZER};
use crate::model::{Class, Segments, Volume};
use crate::volume::affinity::{self, AffinityFault};

/// Why the storage is not deleted (now).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum DeleteRefusal {
    /// 7.5 point 2.
    #[error("the volume has no spec.csi source, so its storage cannot be deleted by a CSI driver")]
    NotCsi,
    /// 7.5 point 3: another instance deletes it.
    #[error("the volume is not reachable from node {node}")]
    OtherNode { node: String },
    /// 7.5 point 3.
    #[error(transparent)]
    Affinity(#[from] AffinityFault),
    /// 4.3.
    #[error(transparent)]
    Capability(Refusal),
    /// 7.6.
    #[error("the secret for deleting the volume cannot be told from storage class {class:?}: {fault}")]
    SecretUnresolvable { class: String, fault: SecretFault },
    /// 7.7. The text is one of the few that other tools may look for.
    #[error("persistentvolume {volume} is still attached to node {node}, waiting for detach")]
    Attached { volume: String, node: String },
}

/// What a refusal means for queue, events and metrics (provisioning.md 7.5, results).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteState {
    /// Not our business: no event, not counted, done.
    Ignored,
    /// Wait: Normal event `VolumeDelete`, try again, not counted.
    InUse,
    /// Warning event `VolumeFailedDelete`, try again, counted.
    Failed,
}

impl DeleteRefusal {
    /// Identifier of the condition.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::NotCsi => "volume-not-csi",
            Self::OtherNode { .. } => "volume-of-other-node",
            Self::Affinity(_) => "volume-affinity-unreadable",
            Self::Capability(refusal) => refusal.condition(),
            Self::SecretUnresolvable { .. } => "secret-reference-unresolvable",
            Self::Attached { .. } => "volume-attached",
        }
    }

    /// What it means.
    pub fn state(&self) -> DeleteState {
        match self {
            Self::OtherNode { .. } => DeleteState::Ignored,
            Self::Attached { .. } => DeleteState::InUse,
            Self::NotCsi | Self::Affinity(_) | Self::Capability(_) | Self::SecretUnresolvable { .. } => {
                DeleteState::Failed
            }
        }
    }
}

/// Whether the volume's storage is to be deleted. Ownership ([`super::ownership`]) is not part of it.
pub fn should_delete(volume: &Volume) -> bool {
    let done = volume.metadata.is_being_deleted() && !volume.metadata.has_finalizer(VOLUME_FINALIZER);
    !done && volume.phase() == "Released" && volume.reclaim_policy() == "Delete"
}

/// The node of a node deployment.
#[derive(Clone, Copy, Debug)]
pub struct OwnNode<'a> {
    /// Its name.
    pub name: &'a str,
    /// What the driver reports for it.
    pub segments: &'a Segments,
}

/// Whether another node's instance looks after the volume: its affinity can be read and leaves this node out.
pub fn is_of_other_node(volume: &Volume, node: OwnNode<'_>) -> bool {
    affinity::reaches(volume.spec.node_affinity.as_ref(), node.segments) == Ok(false)
}

/// The id of the storage to delete. `csi` is the volume's own source or, for a volume of a replaced in-tree plug-in,
/// its translation.
pub fn handle<'a>(
    volume: &Volume,
    csi: Option<&'a CsiSource>,
    can: Capabilities,
    node: Option<OwnNode<'_>>,
) -> Result<&'a str, DeleteRefusal> {
    let csi = csi.filter(|csi| !csi.volume_handle.is_empty()).ok_or(DeleteRefusal::NotCsi)?;
    if let Some(node) = node
        && !affinity::reaches(volume.spec.node_affinity.as_ref(), node.segments)?
    {
        return Err(DeleteRefusal::OtherNode { node: node.name.to_owned() });
    }
    for (there, capability) in [
        (can.controller_service, Capability::ControllerService),
        (can.create_delete_volume, Capability::CreateDeleteVolume),
    ] {
        if !there {
            return Err(DeleteRefusal::Capability(Refusal::Capability(capability)));
        }
    }
    Ok(&csi.volume_handle)
}

/// Refuses while an attachment names the volume, attached or not. `node` = the node of one such attachment, if any.
pub fn check_attachments(volume: &Volume, node: Option<&str>) -> Result<(), DeleteRefusal> {
    match node {
        Some(node) => Err(DeleteRefusal::Attached { volume: volume.metadata.name().to_owned(), node: cut(node) }),
        None => Ok(()),
    }
}

/// Where the secret for deletion comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource<'a> {
    /// There is none.
    None,
    /// Only half of the annotation pair is set: none is used, and the user is told (weak point W33).
    HalfAnnotated,
    /// This one; if it cannot be read, deletion goes on without and the user is told.
    Named(SecretRef),
    /// The class of this name tells: [`secret_from_class`].
    Class(&'a str),
}

/// Reads the volume's annotations (provisioning.md 7.6).
pub fn secret_source(volume: &Volume) -> SecretSource<'_> {
    let annotation = |key| volume.metadata.annotation(key);
    match (annotation(DELETION_SECRET_NAME), annotation(DELETION_SECRET_NAMESPACE)) {
        (Some(""), Some("")) => SecretSource::None,
        (Some(""), Some(_)) | (Some(_), Some("")) => SecretSource::HalfAnnotated,
        (Some(name), Some(namespace)) => {
            SecretSource::Named(SecretRef { name: name.to_owned(), namespace: namespace.to_owned() })
        }
        (None, _) | (_, None) => match volume.class_name() {
            "" => SecretSource::None,
            _ if volume.spec.claim_ref.is_none() => SecretSource::None,
            class => SecretSource::Class(class),
        },
    }
}

/// The secret that the volume's class names now, for volumes of the time before the annotations. `class` is the class
/// as it is, translated if it is one of a replaced in-tree plug-in. The claim's annotations are not known any more.
pub fn secret_from_class(volume: &Volume, class: Option<&Class>) -> Result<Option<SecretRef>, DeleteRefusal> {
    let (Some(class), Some(claim)) = (class, &volume.spec.claim_ref) else { return Ok(None) };
    let claim = TemplateClaim { namespace: &claim.namespace, name: &claim.name, annotations: None };
    resolve(Role::Provisioner, &class.parameters, volume.metadata.name(), Some(claim))
        .map_err(|fault| DeleteRefusal::SecretUnresolvable { class: cut(volume.class_name()), fault })
}
