//! `VolumeSnapshot` and `VolumeSnapshotContent` as the rooms read them.

use super::meta::{null_as_default, slim, slim_resource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use serde::Deserialize;

/// API group of snapshots.
pub const SNAPSHOT_GROUP: &str = "snapshot.storage.k8s.io";
/// Our finalizer on a snapshot that a volume is being made from (provisioning.md 10.1).
pub const SNAPSHOT_FINALIZER: &str = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";

/// A snapshot.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Snapshot {
    /// Trimmed metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// Status; absent until the snapshotter has seen it.
    pub status: Option<SnapshotStatus>,
}
slim_resource!(Snapshot, "snapshot.storage.k8s.io", "v1", "VolumeSnapshot", "volumesnapshots", NamespaceResourceScope);

/// Status of a snapshot.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotStatus {
    /// Content that the snapshot is bound to.
    pub bound_volume_snapshot_content_name: Option<String>,
    /// Whether volumes can be made from it.
    pub ready_to_use: Option<bool>,
    /// Smallest size of a volume made from it, as a quantity.
    pub restore_size: Option<String>,
}

/// The backend side of a snapshot.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct SnapshotContent {
    /// Trimmed metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// What it is.
    pub spec: SnapshotContentSpec,
    /// Handle and readiness.
    pub status: Option<SnapshotContentStatus>,
}
slim_resource!(
    SnapshotContent,
    "snapshot.storage.k8s.io",
    "v1",
    "VolumeSnapshotContent",
    "volumesnapshotcontents",
    ClusterResourceScope
);

/// What a content is.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotContentSpec {
    /// Driver that cut the snapshot.
    pub driver: String,
    /// Snapshot that it belongs to.
    pub volume_snapshot_ref: SnapshotReference,
    /// Volume mode of the volume that was snapshot.
    pub source_volume_mode: Option<String>,
}

/// Reference from a content to its snapshot.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct SnapshotReference {
    /// Namespace.
    #[serde(deserialize_with = "null_as_default")]
    pub namespace: String,
    /// Name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// UID.
    #[serde(deserialize_with = "null_as_default")]
    pub uid: String,
}

/// Handle and readiness of a content.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotContentStatus {
    /// Snapshot id of the driver.
    pub snapshot_handle: Option<String>,
}
