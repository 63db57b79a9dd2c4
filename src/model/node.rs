//! `Node` and `CSINode` as the rooms read them.

use super::meta::{null_as_default, slim, slim_resource};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A node: name and labels.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Node {
    /// Trimmed metadata plus labels.
    #[serde(deserialize_with = "slim_with_labels")]
    pub metadata: ObjectMeta,
}
slim_resource!(Node, "", "v1", "Node", "nodes", ClusterResourceScope);

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Labelled {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

fn slim_with_labels<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let read = Labelled::deserialize(from)?;
    Ok(ObjectMeta {
        name: read.name,
        uid: read.uid,
        resource_version: read.resource_version,
        labels: read.labels,
        ..ObjectMeta::default()
    })
}

/// A `CSINode`: which drivers run on a node and which topology keys they use.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct CsiNode {
    /// Trimmed metadata; the name is the node's.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// Registered drivers.
    pub spec: CsiNodeSpec,
}
slim_resource!(CsiNode, "storage.k8s.io", "v1", "CSINode", "csinodes", ClusterResourceScope);

/// Registered drivers of a node.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct CsiNodeSpec {
    /// One entry per driver.
    #[serde(deserialize_with = "null_as_default")]
    pub drivers: Vec<NodeDriver>,
}

/// A driver registered on a node.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeDriver {
    /// Driver name.
    pub name: String,
    /// Keys of the labels that place the node for this driver.
    #[serde(deserialize_with = "null_as_default")]
    pub topology_keys: Vec<String>,
}
