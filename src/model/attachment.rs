//! `VolumeAttachment` as the rooms read it.

use super::meta::{null_as_default, slim, slim_resource};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

/// An attachment: while one names a volume object, its storage is not deleted.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Attachment {
    /// Trimmed metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// What is attached where.
    pub spec: AttachmentSpec,
}
slim_resource!(Attachment, "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", ClusterResourceScope);

/// What is attached where.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSpec {
    /// Driver that attaches.
    #[serde(deserialize_with = "null_as_default")]
    pub attacher: String,
    /// Node name.
    #[serde(deserialize_with = "null_as_default")]
    pub node_name: String,
    /// Source of the attachment.
    pub source: AttachmentSource,
}

/// Source of an attachment.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSource {
    /// Name of the volume object; absent for inline volumes.
    pub persistent_volume_name: Option<String>,
}
