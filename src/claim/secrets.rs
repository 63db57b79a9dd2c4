//! Which secret each operation uses (provisioning.md 4.13). Nothing here reads a secret.
//!
//! Promises:
//! - a role without keys of its own falls back to the default secret, then to none;
//! - templates expand shell style, values put in are not expanded again, and an unknown token is an error that names it;
//! - a resolved namespace is a DNS label and a resolved name a DNS subdomain, so both can be asked for.

use super::naming::{is_dns_label, is_dns_subdomain};
use super::refusal::cut;
use crate::model::secret::SecretRef;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Prefix of the class parameters that belong to Kubernetes and not to the driver.
pub const RESERVED_PREFIX: &str = "csi.storage.k8s.io/";

/// Operation that may use a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `CreateVolume` and `DeleteVolume`.
    Provisioner,
    /// `ControllerPublishVolume`.
    ControllerPublish,
    /// `NodeStageVolume`.
    NodeStage,
    /// `NodePublishVolume`.
    NodePublish,
    /// `ControllerExpandVolume`.
    ControllerExpand,
    /// `NodeExpandVolume`.
    NodeExpand,
    /// `ControllerModifyVolume`.
    ControllerModify,
}

/// Keys of one style for one role.
type Keys = (&'static str, &'static str);

const DEFAULT_KEYS: Keys = ("csi.storage.k8s.io/secret-name", "csi.storage.k8s.io/secret-namespace");

impl Role {
    /// All roles, in the order in which references are resolved.
    pub const ALL: [Self; 7] = [
        Self::Provisioner,
        Self::ControllerPublish,
        Self::NodeStage,
        Self::NodePublish,
        Self::ControllerExpand,
        Self::NodeExpand,
        Self::ControllerModify,
    ];

    /// Name of the role as users know it from the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Provisioner => "Provisioner",
            Self::ControllerPublish => "ControllerPublish",
            Self::NodeStage => "NodeStage",
            Self::NodePublish => "NodePublish",
            Self::ControllerExpand => "ControllerExpand",
            Self::NodeExpand => "NodeExpand",
            Self::ControllerModify => "ControllerModify",
        }
    }

    /// Keys for name and namespace.
    pub fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Provisioner => {
                ("csi.storage.k8s.io/provisioner-secret-name", "csi.storage.k8s.io/provisioner-secret-namespace")
            }
            Self::ControllerPublish => (
                "csi.storage.k8s.io/controller-publish-secret-name",
                "csi.storage.k8s.io/controller-publish-secret-namespace",
            ),
            Self::NodeStage => {
                ("csi.storage.k8s.io/node-stage-secret-name", "csi.storage.k8s.io/node-stage-secret-namespace")
            }
            Self::NodePublish => {
                ("csi.storage.k8s.io/node-publish-secret-name", "csi.storage.k8s.io/node-publish-secret-namespace")
            }
            Self::ControllerExpand => (
                "csi.storage.k8s.io/controller-expand-secret-name",
                "csi.storage.k8s.io/controller-expand-secret-namespace",
            ),
            Self::NodeExpand => {
                ("csi.storage.k8s.io/node-expand-secret-name", "csi.storage.k8s.io/node-expand-secret-namespace")
            }
            Self::ControllerModify => (
                "csi.storage.k8s.io/controller-modify-secret-name",
                "csi.storage.k8s.io/controller-modify-secret-namespace",
            ),
        }
    }

    /// Keys of the time before the reserved prefix; still accepted and still sent to the driver.
    pub fn deprecated_keys(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Provisioner => Some(("csiProvisionerSecretName", "csiProvisionerSecretNamespace")),
            Self::ControllerPublish => Some(("csiControllerPublishSecretName", "csiControllerPublishSecretNamespace")),
            Self::NodeStage => Some(("csiNodeStageSecretName", "csiNodeStageSecretNamespace")),
            Self::NodePublish => Some(("csiNodePublishSecretName", "csiNodePublishSecretNamespace")),
            Self::ControllerExpand | Self::NodeExpand | Self::ControllerModify => None,
        }
    }
}

/// Keys of every secret under the reserved prefix, the default one included.
pub fn reserved_keys() -> impl Iterator<Item = &'static str> {
    Role::ALL.into_iter().map(Role::keys).chain([DEFAULT_KEYS]).flat_map(|(name, namespace)| [name, namespace])
}

/// The references of one claim, by role; none = no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "one field per role, see Role")]
pub struct SecretRefs {
    pub provisioner: Option<SecretRef>,
    pub controller_publish: Option<SecretRef>,
    pub node_stage: Option<SecretRef>,
    pub node_publish: Option<SecretRef>,
    pub controller_expand: Option<SecretRef>,
    pub node_expand: Option<SecretRef>,
    pub controller_modify: Option<SecretRef>,
}

/// What templates may know of the claim. At deletion only the names are left, so there are no annotations.
#[derive(Clone, Copy, Debug)]
pub struct TemplateClaim<'a> {
    /// `${pvc.namespace}`
    pub namespace: &'a str,
    /// `${pvc.name}`
    pub name: &'a str,
    /// `${pvc.annotations['<key>']}`
    pub annotations: Option<&'a BTreeMap<String, String>>,
}

/// Which half of a reference a fault is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The secret's name.
    Name,
    /// The secret's namespace.
    Namespace,
}

impl std::fmt::Display for Half {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Name => "name",
            Self::Namespace => "namespace",
        })
    }
}

/// Why the class parameters give no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// The same half under the deprecated and the prefixed key.
    #[error(
        "class parameters {deprecated} and {key} both set the secret {half} of role {role}; keep only {key}",
        role = role.name()
    )]
    #[allow(missing_docs, reason = "the text says it")]
    BothStyles { role: Role, half: Half, deprecated: &'static str, key: &'static str },
    /// Only one half is given.
    #[error("class parameter {given} needs its counterpart {missing}; set both or neither")]
    #[allow(missing_docs, reason = "the text says it")]
    HalfMissing { given: &'static str, missing: &'static str },
    /// A given half is empty.
    #[error("class parameter {key} is empty; give the secret's {half} or remove both secret parameters of the role")]
    #[allow(missing_docs, reason = "the text says it")]
    Empty { key: &'static str, half: Half },
    /// Tokens that this template cannot use.
    #[error("class parameter {key} = {template:?} uses {} here; available: {}", list(tokens), available(*half))]
    #[allow(missing_docs, reason = "the text says it")]
    UnknownTokens { key: &'static str, half: Half, template: String, tokens: Vec<String> },
    /// The result is no valid name.
    #[error(
        "class parameter {key} = {template:?} gives the secret {half} {value:?}, which is no valid one; \
         use lower-case letters, digits and dashes"
    )]
    #[allow(missing_docs, reason = "the text says it")]
    Invalid { key: &'static str, half: Half, template: String, value: String },
}

fn list(tokens: &[String]) -> String {
    let quoted: Vec<String> = tokens.iter().map(|token| format!("{token:?}")).collect();
    format!("{} {}, unknown", if tokens.len() == 1 { "the token" } else { "the tokens" }, quoted.join(", "))
}

fn available(half: Half) -> &'static str {
    match half {
        Half::Name => {
            "${pv.name}, ${pvc.namespace}, ${pvc.name}, ${pvc.annotations['<key>']} of an existing annotation"
        }
        Half::Namespace => "${pv.name}, ${pvc.namespace}",
    }
}

impl SecretFault {
    /// Identifier of the condition.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::BothStyles { .. } => "secret-keys-in-both-styles",
            Self::HalfMissing { .. } => "secret-name-or-namespace-missing",
            Self::Empty { .. } => "secret-name-or-namespace-empty",
            Self::UnknownTokens { .. } => "secret-token-unknown",
            Self::Invalid { half: Half::Name, .. } => "secret-name-invalid",
            Self::Invalid { half: Half::Namespace, .. } => "secret-namespace-invalid",
        }
    }
}

/// The secret of one role, or none. `claim` is absent where no claim is known.
pub fn resolve(
    role: Role,
    parameters: &BTreeMap<String, String>,
    volume_name: &str,
    claim: Option<TemplateClaim<'_>>,
) -> Result<Option<SecretRef>, SecretFault> {
    let own = template_pair(role, parameters)?;
    let Some((name, namespace)) = (match own {
        Some(pair) => Some(pair),
        None => complete(given(parameters, DEFAULT_KEYS.0), given(parameters, DEFAULT_KEYS.1), DEFAULT_KEYS)?,
    }) else {
        return Ok(None);
    };
    // The namespace first: its text is the one that the user of the reference sees when both are wrong.
    let namespace = expand(&namespace, Half::Namespace, volume_name, claim)?;
    let name = expand(&name, Half::Name, volume_name, claim)?;
    Ok(Some(SecretRef { name, namespace }))
}

/// A parameter and the key that it came from.
struct Template<'a> {
    key: &'static str,
    text: &'a str,
}

fn given<'a>(parameters: &'a BTreeMap<String, String>, key: &'static str) -> Option<Template<'a>> {
    parameters.get(key).map(|text| Template { key, text })
}

fn template_pair(
    role: Role,
    parameters: &BTreeMap<String, String>,
) -> Result<Option<(Template<'_>, Template<'_>)>, SecretFault> {
    let keys = role.keys();
    let one = |half, key, deprecated: Option<&'static str>| {
        let old = deprecated.and_then(|key| given(parameters, key));
        match (given(parameters, key), old) {
            (Some(_), Some(old)) => Err(SecretFault::BothStyles { role, half, deprecated: old.key, key }),
            (new, old) => Ok(new.or(old)),
        }
    };
    let deprecated = role.deprecated_keys();
    let name = one(Half::Name, keys.0, deprecated.map(|keys| keys.0))?;
    let namespace = one(Half::Namespace, keys.1, deprecated.map(|keys| keys.1))?;
    complete(name, namespace, keys)
}

type Pair<'a> = (Template<'a>, Template<'a>);

fn complete<'a>(
    name: Option<Template<'a>>,
    namespace: Option<Template<'a>>,
    keys: Keys,
) -> Result<Option<Pair<'a>>, SecretFault> {
    match (name, namespace) {
        (None, None) => Ok(None),
        (Some(name), None) => Err(SecretFault::HalfMissing { given: name.key, missing: keys.1 }),
        (None, Some(namespace)) => Err(SecretFault::HalfMissing { given: namespace.key, missing: keys.0 }),
        (Some(name), Some(namespace)) => {
            if name.text.is_empty() {
                return Err(SecretFault::Empty { key: name.key, half: Half::Name });
            }
            if namespace.text.is_empty() {
                return Err(SecretFault::Empty { key: namespace.key, half: Half::Namespace });
            }
            Ok(Some((name, namespace)))
        }
    }
}

fn expand(
    template: &Template<'_>,
    half: Half,
    volume_name: &str,
    claim: Option<TemplateClaim<'_>>,
) -> Result<String, SecretFault> {
    let mut unknown = BTreeSet::new();
    let value = super::template::expand(template.text, |token| {
        let value = token_value(token, half, volume_name, claim);
        if value.is_none() {
            unknown.insert(cut(token));
        }
        value.unwrap_or_default()
    });
    let key = template.key;
    if !unknown.is_empty() {
        let tokens = unknown.into_iter().take(10).collect();
        return Err(SecretFault::UnknownTokens { key, half, template: cut(template.text), tokens });
    }
    let valid = match half {
        Half::Name => is_dns_subdomain(&value),
        Half::Namespace => is_dns_label(&value),
    };
    if valid {
        Ok(value)
    } else {
        Err(SecretFault::Invalid { key, half, template: cut(template.text), value: cut(&value) })
    }
}

fn token_value<'a>(token: &str, half: Half, volume_name: &'a str, claim: Option<TemplateClaim<'a>>) -> Option<&'a str> {
    match (token, half) {
        ("pv.name", _) => Some(volume_name),
        ("pvc.namespace", _) => Some(claim?.namespace),
        ("pvc.name", Half::Name) => Some(claim?.name),
        (_, Half::Name) => {
            let key = token.strip_prefix("pvc.annotations['")?.strip_suffix("']")?;
            claim?.annotations?.get(key).map(String::as_str)
        }
        (_, Half::Namespace) => None,
    }
}

#[cfg(test)]
mod tests;
