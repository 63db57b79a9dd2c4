//! `PersistentVolume` as the rooms read it.

use super::meta::{MetaExt, null_as_default, slim, slim_resource};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

/// Annotation with the class provisioner that made the volume.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Our finalizer: the volume object stays until its storage is gone.
pub const VOLUME_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// Annotation: name of the secret for deletion; written at creation, possibly empty.
pub const DELETION_SECRET_NAME: &str = "volume.kubernetes.io/provisioner-deletion-secret-name";
/// Annotation: namespace of the secret for deletion.
pub const DELETION_SECRET_NAMESPACE: &str = "volume.kubernetes.io/provisioner-deletion-secret-namespace";

/// A volume object.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Volume {
    /// Trimmed metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// What it is.
    pub spec: VolumeSpec,
    /// Where it stands.
    pub status: VolumeStatus,
}
slim_resource!(Volume, "", "v1", "PersistentVolume", "persistentvolumes", ClusterResourceScope);

/// The fields of the volume's specification that some rule reads.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    /// Class name; the beta annotation wins.
    pub storage_class_name: Option<String>,
    /// `Delete`, `Retain` or `Recycle`.
    pub persistent_volume_reclaim_policy: Option<String>,
    /// Claim that it belongs or belonged to.
    pub claim_ref: Option<ClaimReference>,
    /// `Filesystem` (also when absent) or `Block`.
    pub volume_mode: Option<String>,
    /// CSI source.
    pub csi: Option<CsiSource>,
    /// Node affinity, kept as JSON: only node deployment and migration look inside.
    pub node_affinity: Option<Value>,
    /// In-tree source of a plug-in that a CSI driver replaced.
    pub aws_elastic_block_store: Option<Value>,
    /// See [`Self::aws_elastic_block_store`].
    pub gce_persistent_disk: Option<Value>,
    /// See [`Self::aws_elastic_block_store`].
    pub azure_disk: Option<Value>,
    /// See [`Self::aws_elastic_block_store`].
    pub azure_file: Option<Value>,
    /// See [`Self::aws_elastic_block_store`].
    pub cinder: Option<Value>,
    /// See [`Self::aws_elastic_block_store`].
    pub vsphere_volume: Option<Value>,
    /// See [`Self::aws_elastic_block_store`].
    pub portworx_volume: Option<Value>,
}

/// The CSI source, as far as deletion and the checks of clone sources need it.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiSource {
    /// Driver name.
    pub driver: String,
    /// Volume id as the driver returned it.
    pub volume_handle: String,
}

/// `spec.claimRef`.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default)]
pub struct ClaimReference {
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

/// Phase; the rest of the status is not read.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct VolumeStatus {
    /// `Pending`, `Available`, `Bound`, `Released`, `Failed` or absent.
    pub phase: Option<String>,
}

impl Volume {
    /// `status.phase`, empty when absent.
    pub fn phase(&self) -> &str {
        self.status.phase.as_deref().unwrap_or_default()
    }

    /// `spec.persistentVolumeReclaimPolicy`, empty when absent.
    pub fn reclaim_policy(&self) -> &str {
        self.spec.persistent_volume_reclaim_policy.as_deref().unwrap_or_default()
    }

    /// Class name: the beta annotation if present, else the field, else empty.
    pub fn class_name(&self) -> &str {
        self.metadata
            .annotation(super::claim::BETA_STORAGE_CLASS)
            .or(self.spec.storage_class_name.as_deref())
            .unwrap_or_default()
    }
}
