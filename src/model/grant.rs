//! `ReferenceGrant` as the rooms read it.

use super::meta::{null_as_default, slim, slim_resource};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

/// Permission, given in the source's namespace, to be referred to from elsewhere.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Grant {
    /// Trimmed metadata.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// Who may refer to what.
    pub spec: GrantSpec,
}
slim_resource!(
    Grant,
    "gateway.networking.k8s.io",
    "v1beta1",
    "ReferenceGrant",
    "referencegrants",
    NamespaceResourceScope
);

/// Who may refer to what; one grant must satisfy both sides.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct GrantSpec {
    /// Who.
    #[serde(deserialize_with = "null_as_default")]
    pub from: Vec<GrantFrom>,
    /// To what.
    #[serde(deserialize_with = "null_as_default")]
    pub to: Vec<GrantTo>,
}

/// Objects that may refer.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct GrantFrom {
    /// API group; empty = core.
    #[serde(deserialize_with = "null_as_default")]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
}

/// Objects that may be referred to.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct GrantTo {
    /// API group; empty = core.
    #[serde(deserialize_with = "null_as_default")]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name; absent or empty = every object of the kind.
    pub name: Option<String>,
}
