//! Whether a claim can be filled from another claim's volume (provisioning.md 4.10).
//!
//! Promises: the checks run in a fixed order and only say "yes" when the source is bound, ours and large enough; each
//! cause has a text of its own (field case U03: the reference hides eleven causes behind one text). The class counts
//! also when it is given by the old annotation (field case B07).

use super::refusal::cut;
use super::source::{DataSource, Found};
use crate::model::meta::MetaExt;
use crate::model::quantity;
use crate::model::request::ContentSource;
use crate::model::{Claim, Volume};

/// Why the source cannot be cloned (yet). `claim` is the source claim, as `namespace/name` if it is in another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum CloneFault {
    #[error("source claim {claim:?} does not exist; create it, or name another source in a new claim")]
    ClaimMissing { claim: String },
    #[error("source claim {claim:?} cannot be read: {why}")]
    ClaimUnreadable { claim: String, why: String },
    #[error("source claim {claim:?} is {phase}, not Bound; cloning starts once it is Bound")]
    NotBound { claim: String, phase: String },
    #[error("source claim {claim:?} is being deleted; name another source in a new claim")]
    BeingDeleted { claim: String },
    #[error("source claim {claim:?} has no storage class, so its volume cannot be cloned")]
    SourceClassMissing { claim: String },
    #[error("the claim has no storage class; set spec.storageClassName in a new claim")]
    ClassMissing,
    #[error("the claim requests {requested} bytes, its source {claim:?} {source_size}; request at least as much")]
    TooSmall { claim: String, requested: i64, source_size: i64 },
    #[error("source claim {claim:?} has an unreadable storage request: {why}")]
    SourceRequestUnreadable { claim: String, why: String },
    #[error("source claim {claim:?} names no volume yet")]
    VolumeNameEmpty { claim: String },
    #[error("the volume of source claim {claim:?} cannot be cloned: {why}")]
    VolumeUnusable { claim: String, why: VolumeFault },
    #[error("source claim {claim:?} has volume mode {source_mode}, the claim {mode}; they must be equal")]
    ModeDiffers { claim: String, source_mode: &'static str, mode: &'static str },
    #[error("the protection of source claim {claim:?} could not be written: {why}")]
    FinalizerWriteFailed { claim: String, why: String },
}

/// What is wrong with the source's volume. Names no object: the claim's owner may not be allowed to see volumes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum VolumeFault {
    #[error("its volume object does not exist")]
    Missing,
    #[error("its volume object cannot be read: {0}")]
    Unreadable(String),
    #[error("it is no CSI volume")]
    NotCsi,
    #[error("it belongs to another CSI driver than the claim's class")]
    OtherDriver,
    #[error("its volume object refers to no claim")]
    Unclaimed,
    #[error("its volume object is bound to another claim")]
    BoundElsewhere,
    #[error("its volume object is {0}, not Bound")]
    NotBound(String),
}

impl CloneFault {
    /// Identifier of the condition.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::ClaimMissing { .. } | Self::ClaimUnreadable { .. } => "clone-source-claim-missing",
            Self::NotBound { .. } => "clone-source-not-bound",
            Self::BeingDeleted { .. } => "clone-source-being-deleted",
            Self::SourceClassMissing { .. } => "clone-source-class-missing",
            Self::ClassMissing => "clone-class-missing",
            Self::TooSmall { .. } => "request-below-clone-source",
            Self::SourceRequestUnreadable { .. } => "clone-source-request-unreadable",
            Self::VolumeNameEmpty { .. } => "clone-source-volume-name-empty",
            Self::VolumeUnusable { .. } => "clone-source-volume-invalid",
            Self::ModeDiffers { .. } => "clone-volume-mode-differs",
            Self::FinalizerWriteFailed { .. } => "clone-finalizer-write-failed",
        }
    }
}

/// What the new claim wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The new claim.
    pub claim: &'a Claim,
    /// Its source.
    pub source: &'a DataSource,
    /// Its size.
    pub required_bytes: i64,
    /// Name of our driver.
    pub driver: &'a str,
}

impl Wanted<'_> {
    /// Name of the source in messages: with its namespace only where that is not the claim's own.
    pub fn source_name(&self) -> String {
        if self.source.namespace == self.claim.metadata.namespace() {
            cut(&self.source.name)
        } else {
            cut(&format!("{}/{}", self.source.namespace, self.source.name))
        }
    }
}

/// The volume to read before [`check`]; `None` while the source claim names none.
pub fn volume_to_read(source: &Claim) -> Option<&str> {
    source.spec.volume_name.as_deref().filter(|name| !name.is_empty())
}

/// The volume id to clone from.
pub fn check(wanted: &Wanted<'_>, source: &Found<Claim>, volume: &Found<Volume>) -> Result<ContentSource, CloneFault> {
    let claim = wanted.source_name();
    let source = match source {
        Found::Object(source) => source,
        Found::Missing => return Err(CloneFault::ClaimMissing { claim }),
        Found::Unreadable(why) => return Err(CloneFault::ClaimUnreadable { claim, why: cut(why) }),
    };
    check_claim(wanted, source)?;
    let (handle, source_mode) = match check_volume(source, volume, wanted.driver) {
        Ok((handle, mode)) => (handle, mode_name(mode)),
        Err(why) => return Err(CloneFault::VolumeUnusable { claim, why }),
    };
    let mode = mode_name(wanted.claim.spec.volume_mode.as_deref());
    if source_mode != mode {
        return Err(CloneFault::ModeDiffers { claim, source_mode, mode });
    }
    Ok(ContentSource::Volume(handle))
}

fn check_claim(wanted: &Wanted<'_>, source: &Claim) -> Result<(), CloneFault> {
    let claim = wanted.source_name();
    if source.phase() != "Bound" {
        let phase = if source.phase().is_empty() { "new" } else { source.phase() };
        return Err(CloneFault::NotBound { claim, phase: cut(phase) });
    }
    if source.metadata.is_being_deleted() {
        return Err(CloneFault::BeingDeleted { claim });
    }
    if source.class_name().is_empty() {
        return Err(CloneFault::SourceClassMissing { claim });
    }
    if wanted.claim.class_name().is_empty() {
        return Err(CloneFault::ClassMissing);
    }
    let requested = wanted.required_bytes;
    let request = source.spec.resources.requests.get("storage").map_or("0", String::as_str);
    let source_size = quantity::ceil_bytes(request)
        .map_err(|error| CloneFault::SourceRequestUnreadable { claim: claim.clone(), why: error.to_string() })?;
    if requested < source_size {
        return Err(CloneFault::TooSmall { claim, requested, source_size });
    }
    if volume_to_read(source).is_none() {
        return Err(CloneFault::VolumeNameEmpty { claim });
    }
    Ok(())
}

/// The volume's handle and mode.
fn check_volume<'a>(
    source: &Claim,
    volume: &'a Found<Volume>,
    driver: &str,
) -> Result<(String, Option<&'a str>), VolumeFault> {
    let volume = match volume {
        Found::Object(volume) => volume,
        Found::Missing => return Err(VolumeFault::Missing),
        Found::Unreadable(why) => return Err(VolumeFault::Unreadable(cut(why))),
    };
    let csi = volume.spec.csi.as_ref().ok_or(VolumeFault::NotCsi)?;
    if csi.driver != driver {
        return Err(VolumeFault::OtherDriver);
    }
    let owner = volume.spec.claim_ref.as_ref().ok_or(VolumeFault::Unclaimed)?;
    let meta = &source.metadata;
    if owner.uid != meta.uid() || owner.namespace != meta.namespace() || owner.name != meta.name() {
        return Err(VolumeFault::BoundElsewhere);
    }
    if volume.phase() != "Bound" {
        return Err(VolumeFault::NotBound(cut(volume.phase())));
    }
    Ok((csi.volume_handle.clone(), volume.spec.volume_mode.as_deref()))
}

fn mode_name(mode: Option<&str>) -> &'static str {
    if mode == Some("Block") { "Block" } else { "Filesystem" }
}

#[cfg(test)]
mod tests;
