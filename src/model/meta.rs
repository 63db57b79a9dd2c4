//! Object metadata as the rooms read it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The metadata fields that some rule reads. Managed fields, owner references and labels are skipped while parsing.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Slim {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
}

/// Parses metadata without the parts nobody reads. The deletion timestamp keeps only whether it is set: its value is
/// replaced by the epoch, because no rule depends on it and a test table may give any text.
pub fn slim<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let slim = Slim::deserialize(from)?;
    Ok(ObjectMeta {
        name: slim.name,
        namespace: slim.namespace,
        uid: slim.uid,
        resource_version: slim.resource_version,
        deletion_timestamp: slim
            .deletion_timestamp
            .map(|_| k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)),
        annotations: slim.annotations,
        finalizers: slim.finalizers,
        ..ObjectMeta::default()
    })
}

/// Short names for what rules ask of metadata. An absent field reads as empty.
pub trait MetaExt {
    /// Object name.
    fn name(&self) -> &str;
    /// Namespace; empty for cluster-wide objects.
    fn namespace(&self) -> &str;
    /// UID.
    fn uid(&self) -> &str;
    /// Resource version as the API wrote it.
    fn version(&self) -> &str;
    /// `namespace/name`, or the name alone for cluster-wide objects.
    fn key(&self) -> String;
    /// Value of an annotation; `None` when the key is absent, `Some("")` when it is there and empty.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// Whether the object carries this finalizer.
    fn has_finalizer(&self, finalizer: &str) -> bool;
    /// Whether deletion was asked for.
    fn is_being_deleted(&self) -> bool;
}

impl MetaExt for ObjectMeta {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
    fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
    fn uid(&self) -> &str {
        self.uid.as_deref().unwrap_or_default()
    }
    fn version(&self) -> &str {
        self.resource_version.as_deref().unwrap_or_default()
    }
    fn key(&self) -> String {
        match self.namespace() {
            "" => self.name().to_owned(),
            namespace => format!("{namespace}/{}", self.name()),
        }
    }
    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }
    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().flatten().any(|have| have == finalizer)
    }
    fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// Implements [`kube::Resource`] for a slim read type with a `metadata: ObjectMeta` field.
///
/// Written by hand because `kube`'s derive feature pulls a schema library that nothing here needs.
macro_rules! slim_resource {
    ($type:ty, $group:literal, $version:literal, $kind:literal, $plural:literal, $scope:ty) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;
            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                $kind.into()
            }
            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use slim_resource;

/// Reads `null` as the default value: API objects written by hand may carry it for lists and maps.
pub fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Whether resource version `one` is older than `other`. Versions are compared as numbers of any length, as Kubernetes
/// 1.35 and later allow (and etcd-backed servers always did); anything that is no number counts as newer.
pub fn is_older(one: &str, other: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
    digits(one) && digits(other) && (one.len(), one) < (other.len(), other)
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn versions_compare_as_numbers_of_any_length() {
        assert!(is_older("9", "10"));
        assert!(!is_older("10", "9"));
        assert!(!is_older("10", "10"));
        assert!(is_older("99999999999999999999999", "100000000000000000000000"));
        assert!(!is_older("abc", "10"));
        assert!(!is_older("", "10"));
    }
}
