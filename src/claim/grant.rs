//! Whether a `ReferenceGrant` lets a claim use a source of another namespace (provisioning.md 4.8).

use crate::model::claim::Source;
use crate::model::grant::{Grant, GrantFrom, GrantTo};
use crate::model::meta::MetaExt;

/// Whether one of `grants` lets claims of `claim_namespace` refer to `source`. One grant must satisfy both sides, and
/// only grants of the source's own namespace count.
pub fn allows(claim_namespace: &str, source: &Source<'_>, grants: &[Grant]) -> bool {
    grants.iter().filter(|grant| grant.metadata.namespace() == source.namespace).any(|grant| {
        grant.spec.from.iter().any(|from| is_from(from, claim_namespace))
            && grant.spec.to.iter().any(|to| is_to(to, source))
    })
}

fn is_from(from: &GrantFrom, claim_namespace: &str) -> bool {
    from.group.is_empty() && from.kind == "PersistentVolumeClaim" && from.namespace == claim_namespace
}

fn is_to(to: &GrantTo, source: &Source<'_>) -> bool {
    let name = to.name.as_deref().unwrap_or_default();
    to.group == source.group && to.kind == source.kind && (name.is_empty() || name == source.name)
}
