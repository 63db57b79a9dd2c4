//! What a volume is to be filled from, as the claim says it (provisioning.md 4.8, 4.9, steps 2 and 4 to 6 of 4.2).
//!
//! Promises: `dataSource` wins over `dataSourceRef`; a source of another namespace needs the gate and a grant; kinds
//! that nobody here knows are left to populators. Whether the source can be used is decided by
//! [`super::clone_source`] and [`super::snapshot_source`].

use super::grant;
use super::refusal::{Refusal, cut};
use crate::model::Claim;
use crate::model::claim::Source;
use crate::model::grant::Grant;
use crate::model::meta::MetaExt;
use crate::model::snapshot::SNAPSHOT_GROUP;
use serde::{Deserialize, Serialize};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSource {
    /// Snapshot or claim.
    pub kind: SourceKind,
    /// Namespace of the source.
    pub namespace: String,
    /// Its name, never empty.
    pub name: String,
}

/// Kinds of sources that are copied here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SourceKind {
    /// `VolumeSnapshot`.
    Snapshot,
    /// `PersistentVolumeClaim`.
    Claim,
}

/// The claim's source, or none. `grants` holds at least those of the source's namespace.
pub fn data_source(claim: &Claim, cross_namespace: bool, grants: &[Grant]) -> Result<Option<DataSource>, Refusal> {
    let Some(reference) = claim.source() else { return Ok(None) };
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
    reference: &Source<'_>,
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
