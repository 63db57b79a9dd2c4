//! What the driver's answer to `CreateVolume` means (provisioning.md 5.1 and 6).
//!
//! Promises: every code has one meaning; only a code that really came from the driver says anything about the backend;
//! an answer that cannot be used names the volume to clean up, if there is one.

use super::plan::VolumeFacts;
use super::refusal::cut;
use crate::model::request::{CallError, Code, CreateRequest, CreatedVolume, Segments};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// Nothing runs in the backend; try again with back-off.
    Final,
    /// Nothing runs, and the same request will not succeed soon; hold it back (provisioning.md 3.7).
    Infeasible,
    /// A volume may exist or appear: repeat the same request until it is resolved, even if the claim is deleted.
    Background,
    /// Nothing runs here; let the scheduler pick another node.
    Reschedule,
}

/// The meaning of a failed call. `node_selected` = the request was made for a node that the scheduler picked.
pub fn classify(error: &CallError, topology_supported: bool, node_selected: bool) -> AttemptState {
    if !error.from_driver {
        // What our side makes up (lost connection, own deadline, unreadable answer) says nothing about the backend.
        return AttemptState::Background;
    }
    #[allow(clippy::match_same_arms, reason = "each arm says why its codes mean what they mean")]
    match error.code {
        // The driver did not finish in time, was interrupted, or works on the same volume already.
        Code::Canceled | Code::DeadlineExceeded | Code::Unavailable | Code::Aborted => AttemptState::Background,
        // No room at this node; another one may have some.
        Code::ResourceExhausted if topology_supported && node_selected => AttemptState::Reschedule,
        Code::ResourceExhausted => AttemptState::Final,
        // The request itself is wrong; it stays so until claim or class change.
        Code::InvalidArgument => AttemptState::Infeasible,
        // The driver refused and made nothing.
        Code::Unknown
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => AttemptState::Final,
    }
}

/// A volume as the driver made it, checked and completed; the rest of its answer is not needed any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Volume id.
    pub id: String,
    /// Size: the driver's, or what was asked for if it does not tell.
    pub capacity_bytes: i64,
    /// Opaque context.
    pub context: BTreeMap<String, String>,
    /// Where it is reachable from; empty = anywhere.
    pub accessible_topology: Vec<Segments>,
}

/// An answer that cannot become a volume object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum BadReply {
    /// No volume, or one without id: nothing can be cleaned up, the same request is asked again.
    #[error("the CSI driver answered CreateVolume without a volume id; this is a defect of the driver")]
    NoVolume,
    /// 5.1 point 3.
    #[error("the CSI driver made volume {id:?} of {made} bytes, {wanted} were requested; it is deleted again")]
    TooSmall { id: String, made: i64, wanted: i64 },
    /// 5.1 point 4.
    #[error(
        "the CSI driver made volume {id:?} but does not confirm that it was filled from the data source; \
         it is deleted again"
    )]
    SourceMissing { id: String },
    /// The API server would refuse the volume object for ever.
    #[error("the CSI driver made volume {id:?} with a topology that no node can have ({why}); it is deleted again")]
    TopologyUnusable { id: String, why: String },
    /// See [`Self::TopologyUnusable`].
    #[error("the CSI driver described volume {id:?} in {bytes} bytes, too much for an object; it is deleted again")]
    TooLarge { id: String, bytes: usize },
}

impl BadReply {
    /// Identifier of the condition.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::NoVolume => "reply-volume-missing",
            Self::TooSmall { .. } => "reply-capacity-too-small",
            Self::SourceMissing { .. } => "reply-content-source-missing",
            Self::TopologyUnusable { .. } => "reply-topology-unusable",
            Self::TooLarge { .. } => "reply-too-large",
        }
    }

    /// Whether there is a volume to clean up. Its id is [`CreatedVolume::id`] of the answer: texts may have cut it.
    pub fn left_a_volume(&self) -> bool {
        match self {
            Self::NoVolume => false,
            Self::TooSmall { .. }
            | Self::SourceMissing { .. }
            | Self::TopologyUnusable { .. }
            | Self::TooLarge { .. } => true,
        }
    }
}

/// Most that id, context and topology may take together. Objects of more than about 1.5 MiB are refused by the store
/// behind the API server, and the rest of the volume object needs some of that.
const LARGEST_REPLY: usize = 1024 * 1024;

/// Checks an OK answer (provisioning.md 5.1; csi-rules.md 4.1 point 8). `None` = an answer without a volume.
pub fn judge(
    request: &CreateRequest,
    facts: &VolumeFacts,
    volume: Option<&CreatedVolume>,
) -> Result<Accepted, BadReply> {
    let Some(volume) = volume.filter(|volume| !volume.id.is_empty()) else { return Err(BadReply::NoVolume) };
    let id = || cut(&volume.id);
    let (made, wanted) = (volume.capacity_bytes, request.required_bytes);
    if made < 0 || (made != 0 && made < wanted) {
        return Err(BadReply::TooSmall { id: id(), made, wanted });
    }
    if facts.needs_source && volume.source.is_none() {
        return Err(BadReply::SourceMissing { id: id() });
    }
    // Without the capability the field means nothing and is passed over, as by the reference.
    let accessible_topology = if facts.topology_supported { volume.accessible_topology.clone() } else { Vec::new() };
    if let Some(why) = accessible_topology.iter().flatten().find_map(unusable_segment) {
        return Err(BadReply::TopologyUnusable { id: id(), why });
    }
    let accepted = Accepted {
        id: volume.id.clone(),
        capacity_bytes: if made == 0 { wanted } else { made },
        context: volume.context.clone(),
        accessible_topology,
    };
    let bytes = size_of(&accepted);
    if bytes > LARGEST_REPLY { Err(BadReply::TooLarge { id: id(), bytes }) } else { Ok(accepted) }
}

fn size_of(accepted: &Accepted) -> usize {
    let pairs = accepted.context.iter().chain(accepted.accessible_topology.iter().flatten());
    pairs.fold(accepted.id.len(), |sum, (key, value)| sum.saturating_add(key.len()).saturating_add(value.len()))
}

/// Why no node label can match the segment; the API server refuses such a node affinity.
fn unusable_segment((key, value): (&String, &String)) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key.as_str()),
    };
    let valid_key = !name.is_empty() && is_label_part(name) && prefix.is_none_or(super::naming::is_dns_subdomain);
    if !valid_key {
        return Some(format!("{:?} is no label key", cut(key)));
    }
    (!is_label_part(value)).then(|| format!("{:?} is no label value", cut(value)))
}

/// At most 63 letters, digits, dashes, underscores and dots, alphanumeric at both ends; may be empty.
fn is_label_part(text: &str) -> bool {
    let outer = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && outer(text.bytes().next())
        && outer(text.bytes().next_back())
}

#[cfg(test)]
mod tests;
