//! Looks up at start who owns capacity objects: one read for each step of the walk, and one of the API's resources for
//! each kind that is no pod.

use super::owner::{NoOwner, Place, Step, Walk, Walked};
use crate::kube_api::error::{ApiError, ApiErrorKind};
use crate::kube_api::objects::{Objects, Path};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;
use std::future::Future;

/// Why the owner is not known.
#[derive(Debug, thiserror::Error)]
pub enum OwnerFault {
    /// An object of the walk does not exist.
    #[error(
        "the owner of capacity objects cannot be found: {kind} {name:?} ({api_version}) in namespace {namespace:?} does not \
         exist; set NAMESPACE and POD_NAME from the pod's own fields (metadata.namespace, metadata.name)",
        kind = .0.kind, name = .0.name, api_version = .0.api_version, namespace = .0.namespace
    )]
    Missing(Place),
    /// An object of the walk cannot be read.
    #[error(
        "the owner of capacity objects cannot be found: {kind} {name:?} ({api_version}) in namespace {namespace:?} cannot be \
         read; grant the right to get it, or use --capacity-ownerref-level=-1 for objects without owner",
        kind = at.kind, name = at.name, api_version = at.api_version, namespace = at.namespace
    )]
    Unreadable {
        /// The object.
        at: Place,
        /// Why not.
        #[source]
        why: ApiError,
    },
    /// The walk ends too early.
    #[error("the owner of capacity objects cannot be found: {0}")]
    NoOwner(#[from] NoOwner),
}

impl OwnerFault {
    /// Identifier of the condition, as in the case tables.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::Missing(_) => "object-not-found",
            Self::Unreadable { .. } => "object-unreadable",
            Self::NoOwner(_) => "no-controlling-owner",
        }
    }
}

/// Walks `levels` steps up from the pod.
///
/// # Errors
/// An object on the way cannot be read or is controlled by nothing.
pub async fn find_owner(objects: &Objects, pod: Place, levels: u32) -> Result<OwnerReference, OwnerFault> {
    walk(pod, levels, |place| read(objects, place)).await
}

/// The walk, with whoever reads the objects; `None` = there is none.
///
/// # Errors
/// See [`find_owner`].
pub async fn walk<R, F>(pod: Place, levels: u32, read: R) -> Result<OwnerReference, OwnerFault>
where
    R: Fn(Place) -> F,
    F: Future<Output = Result<Option<Walked>, ApiError>>,
{
    let mut walk = Walk::begin(pod, levels);
    loop {
        let at = walk.place().clone();
        let object = match read(at.clone()).await {
            Ok(Some(object)) => object,
            Ok(None) => return Err(OwnerFault::Missing(at)),
            Err(why) => return Err(OwnerFault::Unreadable { at, why }),
        };
        if let Step::Found(owner) = walk.read(object)? {
            return Ok(owner);
        }
    }
}

/// The kinds of an API group.
#[derive(Deserialize)]
struct Kinds {
    resources: Vec<Served>,
}

/// One of them. Parts of an object (`deployments/scale`) are in the list too.
#[derive(Deserialize)]
struct Served {
    name: String,
    kind: String,
    namespaced: bool,
}

async fn read(objects: &Objects, at: Place) -> Result<Option<Walked>, ApiError> {
    match existing(objects, at).await {
        Err(error) if error.kind == ApiErrorKind::NotFound => Ok(None),
        read => read,
    }
}

async fn existing(objects: &Objects, at: Place) -> Result<Option<Walked>, ApiError> {
    let (group, version) = at.api_version.split_once('/').unwrap_or(("", &at.api_version));
    let path = |plural: &str| {
        if group.is_empty() { Path::core(plural) } else { Path::group(group, version, plural) }
    };
    if group.is_empty() && at.kind == "Pod" {
        return objects.get(&path("pods").namespace(&at.namespace).name(&at.name)).await.map(Some);
    }
    let kinds: Kinds = objects.kinds(&path("")).await?;
    let found = kinds.resources.into_iter().find(|one| one.kind == at.kind && !one.name.contains('/'));
    let Some(found) = found else { return Ok(None) };
    let path = path(&found.name);
    let path = if found.namespaced { path.namespace(&at.namespace) } else { path };
    objects.get(&path.name(&at.name)).await.map(Some)
}
