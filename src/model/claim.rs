//! `PersistentVolumeClaim` as the rooms read it.

use super::meta::{MetaExt, slim, slim_resource};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Annotation that names the provisioner, stable spelling; wins over [`BETA_STORAGE_PROVISIONER`] when the key is there.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// Older spelling of [`STORAGE_PROVISIONER`].
pub const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// Name of the CSI driver that took over from an in-tree plug-in; on claims and volumes.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// Class name of the time before `spec.storageClassName`; wins when present.
pub const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// Node that the scheduler picked. An empty value hides [`ALPHA_SELECTED_NODE`].
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Older spelling of [`SELECTED_NODE`].
pub const ALPHA_SELECTED_NODE: &str = "volume.alpha.kubernetes.io/selected-node";
/// Finalizer on a claim that is the source of a clone.
pub const CLONE_FINALIZER: &str = "provisioner.storage.kubernetes.io/cloning-protection";

/// A claim.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Claim {
    /// Trimmed metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: ClaimSpec,
    /// How far it got.
    pub status: ClaimStatus,
}
slim_resource!(Claim, "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", NamespaceResourceScope);

/// The fields of the claim's specification that some rule reads.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    /// Access modes in the user's order.
    #[serde(deserialize_with = "super::meta::null_as_default")]
    pub access_modes: Vec<String>,
    /// Present, even when empty: a label selector, which provisioning refuses.
    pub selector: Option<serde::de::IgnoredAny>,
    /// Requested size.
    pub resources: Resources,
    /// Bound volume; empty while unbound.
    pub volume_name: Option<String>,
    /// Class; the beta annotation wins over it.
    pub storage_class_name: Option<String>,
    /// `Filesystem` (also when absent) or `Block`.
    pub volume_mode: Option<String>,
    /// Source within the claim's namespace.
    pub data_source: Option<SourceReference>,
    /// Source of any kind, possibly of another namespace.
    pub data_source_ref: Option<SourceReference>,
    /// `VolumeAttributesClass` of the claim.
    pub volume_attributes_class_name: Option<String>,
}

/// Requested resources.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default)]
pub struct Resources {
    /// Quantities by name; only `storage` matters. Values are kept as the API wrote them.
    #[serde(deserialize_with = "super::meta::null_as_default")]
    pub requests: BTreeMap<String, String>,
}

/// Phase of the claim; the rest of the status is not read.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct ClaimStatus {
    /// `Pending`, `Bound`, `Lost`, or absent on a claim that no controller has seen yet.
    pub phase: Option<String>,
}

/// `dataSource` or `dataSourceRef`.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceReference {
    /// API group; absent and empty both mean the core group.
    pub api_group: Option<String>,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Only in `dataSourceRef`: namespace of the source.
    pub namespace: Option<String>,
}

/// What a claim is filled from, whichever field says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// API group; empty = core.
    pub group: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Name.
    pub name: &'a str,
    /// Namespace of the source.
    pub namespace: &'a str,
    /// Claim field that it came from.
    pub field: &'static str,
}

impl Claim {
    /// The claim's source, gates and grants not considered: `dataSource`, else `dataSourceRef` (provisioning.md 4.8).
    /// An empty `dataSourceRef.namespace` counts as absent (the reference crashes on it while its gate is off, W22).
    pub fn source(&self) -> Option<Source<'_>> {
        let own = self.metadata.namespace();
        let (source, namespace, field) = match (&self.spec.data_source, &self.spec.data_source_ref) {
            (Some(source), _) => (source, own, "spec.dataSource"),
            (None, Some(source)) => {
                let named = source.namespace.as_deref().filter(|namespace| !namespace.is_empty());
                (source, named.unwrap_or(own), "spec.dataSourceRef")
            }
            (None, None) => return None,
        };
        let group = source.api_group.as_deref().unwrap_or_default();
        Some(Source { group, kind: &source.kind, name: &source.name, namespace, field })
    }

    /// Class name: the beta annotation if present, else `spec.storageClassName`, else empty (provisioning.md 3.4).
    pub fn class_name(&self) -> &str {
        self.metadata.annotation(BETA_STORAGE_CLASS).or(self.spec.storage_class_name.as_deref()).unwrap_or_default()
    }

    /// The provisioner named by annotation, stable spelling first (provisioning.md 3.4 point 4).
    pub fn named_provisioner(&self) -> Option<&str> {
        self.metadata.annotation(STORAGE_PROVISIONER).or_else(|| self.metadata.annotation(BETA_STORAGE_PROVISIONER))
    }

    /// Node picked by the scheduler. The presence of the stable key decides, so an empty value hides the alpha key
    /// (provisioning.md 3.5 point 6). Empty means none.
    pub fn selected_node(&self) -> &str {
        self.metadata
            .annotation(SELECTED_NODE)
            .or_else(|| self.metadata.annotation(ALPHA_SELECTED_NODE))
            .unwrap_or_default()
    }

    /// `status.phase`, empty when absent.
    pub fn phase(&self) -> &str {
        self.status.phase.as_deref().unwrap_or_default()
    }

    /// Whether a volume is named, which ends provisioning.
    pub fn has_volume(&self) -> bool {
        self.spec.volume_name.as_deref().is_some_and(|name| !name.is_empty())
    }

    /// Whether the claim asks for a raw block device.
    pub fn is_block(&self) -> bool {
        self.spec.volume_mode.as_deref() == Some("Block")
    }
}
