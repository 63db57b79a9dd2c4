//! What a volume is to be filled from, as the claim says it (provisioning.md 4.8, 4.9, steps 2 and 4 to 6 of 4.2).
//!
//! Promises: `dataSource` wins over `dataSourceRef`; a source of another namespace needs the gate and a grant; kinds
//! that nobody here knows are left to populators. Whether the source can be used is decided by
//! [`super::clone_source`] and [`super::snapshot_source`].

use super::grant;
use super::refusal::{Refusal, cut};
use crate::model::Claim;
use crate::model::claim::SourceReference;
use crate::model::grant::Grant;
use crate::model::meta::MetaExt;
use crate::model::snapshot::SNAPSHOT_GROUP;

/// Result of reading one object.
#[derive(Clone, Debug)]
pub enum Found<T> {
    /// It was read.
    Object(T),
    /// There is none of that name, or nobody had to ask for it.
    Missing,
    /// It could not be read; the API's own text, bounded.
    Unreadable(String),
}

/// Source of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSource {
    /// Snapshot or claim.
    pub kind: SourceKind,
    /// Namespace of the source.
    pub namespace: String,
    /// Its name, never empty.
    pub name: String,
}

/// Kinds of sources that are copied here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// `VolumeSnapshot`.
    Snapshot,
    /// `PersistentVolumeClaim`.
    Claim,
}

/// A normalised reference of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
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

/// The claim's reference, gates and grants not considered. An empty `dataSourceRef.namespace` counts as absent
/// (upstream crashes on it while the gate is off, W22).
pub fn reference(claim: &Claim) -> Option<Reference<'_>> {
    let own = claim.metadata.namespace();
    if let Some(source) = &claim.spec.data_source {
        return Some(normalised(source, own, "spec.dataSource"));
    }
    let source = claim.spec.data_source_ref.as_ref()?;
    let namespace = source.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(own);
    Some(normalised(source, namespace, "spec.dataSourceRef"))
}

fn normalised<'a>(source: &'a SourceReference, namespace: &'a str, field: &'static str) -> Reference<'a> {
    let group = source.api_group.as_deref().unwrap_or_default();
    Reference { group, kind: &source.kind, name: &source.name, namespace, field }
}

/// The claim's source, or none. `grants` holds at least those of the source's namespace.
pub fn data_source(claim: &Claim, cross_namespace: bool, grants: &[Grant]) -> Result<Option<DataSource>, Refusal> {
    let Some(reference) = reference(claim) else { return Ok(None) };
    check_namespace(claim, &reference, cross_namespace, grants)?;
    if reference.name.is_empty() {
        return Err(Refusal::SourceNameEmpty { field: reference.field });
    }
    let kind = match reference.kind {
        "VolumeSnapshot" if reference.group == SNAPSHOT_GROUP => SourceKind::Snapshot,
        "VolumeSnapshot" => return Err(Refusal::SourceGroupWrong { group: cut(reference.group) }),
        "PersistentVolumeClaim" => SourceKind::Claim,
        kind => return Err(Refusal::ExternalPopulator { kind: cut(kind) }),
    };
    Ok(Some(DataSource { kind, namespace: reference.namespace.to_owned(), name: reference.name.to_owned() }))
}

fn check_namespace(
    claim: &Claim,
    reference: &Reference<'_>,
    cross_namespace: bool,
    grants: &[Grant],
) -> Result<(), Refusal> {
    let by_ref = claim.spec.data_source.is_none().then_some(claim.spec.data_source_ref.as_ref()).flatten();
    let named = by_ref.and_then(|source| source.namespace.as_deref()).filter(|namespace| !namespace.is_empty());
    let Some(namespace) = named else { return Ok(()) };
    if !cross_namespace {
        return Err(Refusal::SourceNamespaceOff { namespace: cut(namespace) });
    }
    let own = claim.metadata.namespace();
    if namespace == own || grant::allows(own, reference, grants) {
        return Ok(());
    }
    Err(Refusal::SourceNotGranted {
        namespace: cut(namespace),
        kind: cut(reference.kind),
        name: cut(reference.name),
        claim_namespace: own.to_owned(),
    })
}
