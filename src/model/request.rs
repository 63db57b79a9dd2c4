//! What is asked of the driver and what it answers, in our words; [`crate::csi`] translates to the wire.

use super::accessibility::Accessibility;
use super::secret::Secrets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Topology segments: key to value, all of which must hold.
pub type Segments = BTreeMap<String, String>;

/// One `CreateVolume` call. While a creation is unresolved the same value is sent again and again, and since all maps
/// are ordered it is the same bytes each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateRequest {
    /// Volume name: the key of idempotency.
    pub name: String,
    /// Smallest acceptable size in bytes.
    pub required_bytes: i64,
    /// One per access mode of the claim, in the claim's order.
    pub capabilities: Vec<VolumeCapability>,
    /// Class parameters without the reserved ones.
    pub parameters: BTreeMap<String, String>,
    /// Provisioner secret; never written anywhere, so a request that was stored gets it anew.
    #[serde(skip)]
    pub secrets: Secrets,
    /// What the volume is filled from.
    pub source: Option<ContentSource>,
    /// Where it must be reachable from; `None` leaves the field out.
    pub accessibility: Option<Accessibility>,
    /// Parameters of the attributes class.
    pub mutable_parameters: BTreeMap<String, String>,
}

/// What a volume is filled from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentSource {
    /// Snapshot handle of the driver.
    Snapshot(String),
    /// Volume handle of the driver.
    Volume(String),
}

/// One capability that the volume must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeCapability {
    /// How many may use it and how.
    pub access_mode: AccessMode,
    /// Device or file system.
    pub access_type: AccessType,
}

/// The access modes that a provisioner sends (CSI 1.13; numbers in [`crate::csi`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessMode {
    /// `SINGLE_NODE_WRITER`
    SingleNodeWriter,
    /// `SINGLE_NODE_SINGLE_WRITER`
    SingleNodeSingleWriter,
    /// `SINGLE_NODE_MULTI_WRITER`
    SingleNodeMultiWriter,
    /// `MULTI_NODE_READER_ONLY`
    MultiNodeReaderOnly,
    /// `MULTI_NODE_MULTI_WRITER`
    MultiNodeMultiWriter,
}

/// Device or file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessType {
    /// Raw block device.
    Block,
    /// File system.
    Mount {
        /// Empty: the driver's default.
        fs_type: String,
        /// Mount options of the class; they count as sensitive and never reach a log.
        mount_flags: Vec<String>,
    },
}

/// The volume that the driver says it made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedVolume {
    /// Volume id.
    pub id: String,
    /// Size in bytes; 0 = the driver does not know.
    pub capacity_bytes: i64,
    /// Opaque context for later calls.
    pub context: BTreeMap<String, String>,
    /// Whether the driver says that the volume was filled from a source, and from which.
    pub source: Option<ContentSource>,
    /// Where it is reachable from; empty = anywhere.
    pub accessible_topology: Vec<Segments>,
}

/// A call that did not end with OK.
///
/// The distinction decides over leaks: what our side makes up (transport error, reset, decoding or size error, own
/// deadline) says nothing about the backend, whatever code the client library gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// Status code; for failures of our own side the nearest one, for display only.
    pub code: Code,
    /// Whether `grpc-status` really came from the driver, in headers or trailers.
    pub from_driver: bool,
    /// Free text of the driver or of our side, valid UTF-8, bounded in length, without secrets.
    pub message: String,
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rpc error: code = {} desc = {}", self.code.name(), self.message)
    }
}

impl std::error::Error for CallError {}

/// gRPC status codes other than OK. A number outside the list reads as [`Code::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the documentation: gRPC status codes")]
pub enum Code {
    Canceled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl Code {
    /// The spelling that events and metrics use (`DeadlineExceeded`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Canceled => "Canceled",
            Self::Unknown => "Unknown",
            Self::InvalidArgument => "InvalidArgument",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::PermissionDenied => "PermissionDenied",
            Self::ResourceExhausted => "ResourceExhausted",
            Self::FailedPrecondition => "FailedPrecondition",
            Self::Aborted => "Aborted",
            Self::OutOfRange => "OutOfRange",
            Self::Unimplemented => "Unimplemented",
            Self::Internal => "Internal",
            Self::Unavailable => "Unavailable",
            Self::DataLoss => "DataLoss",
            Self::Unauthenticated => "Unauthenticated",
        }
    }
}
