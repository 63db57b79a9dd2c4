//! `StorageClass` and `VolumeAttributesClass` as the rooms read them.

use super::meta::{null_as_default, slim, slim_resource};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A storage class.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Class {
    /// Trimmed metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// Driver name, or the in-tree name of a migrated plug-in.
    pub provisioner: String,
    /// Parameters; keys under `csi.storage.k8s.io/` are ours, the rest belongs to the driver.
    #[serde(deserialize_with = "null_as_default")]
    pub parameters: BTreeMap<String, String>,
    /// `Delete`, `Retain`, or absent (the API server's default applies to the volume then).
    pub reclaim_policy: Option<String>,
    /// Mount options of the volumes.
    #[serde(deserialize_with = "null_as_default")]
    pub mount_options: Vec<String>,
    /// `Immediate`, `WaitForFirstConsumer` or absent.
    pub volume_binding_mode: Option<String>,
    /// Where volumes may live; empty means anywhere.
    #[serde(deserialize_with = "null_as_default")]
    pub allowed_topologies: Vec<TopologyTerm>,
}
slim_resource!(Class, "storage.k8s.io", "v1", "StorageClass", "storageclasses", ClusterResourceScope);

/// One term of `allowedTopologies`: all expressions must hold.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyTerm {
    /// Expressions of this term.
    #[serde(deserialize_with = "null_as_default")]
    pub match_label_expressions: Vec<TopologyExpression>,
}

/// `key` must have one of `values`.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default)]
pub struct TopologyExpression {
    /// Topology key.
    pub key: String,
    /// Allowed values.
    #[serde(deserialize_with = "null_as_default")]
    pub values: Vec<String>,
}

impl Class {
    /// Whether volumes wait until a pod that uses the claim is scheduled.
    pub fn binds_late(&self) -> bool {
        self.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
    }
}

/// A volume attributes class; read live, never watched.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct AttributesClass {
    /// Trimmed metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// Driver that understands the parameters.
    pub driver_name: String,
    /// Passed as mutable parameters, unchanged.
    #[serde(deserialize_with = "null_as_default")]
    pub parameters: BTreeMap<String, String>,
}
