//! Reads sources and puts our finalizers on them.
//!
//! What was read is used again for half a minute, so that a burst of copies of one source reads it once: the first clone
//! costs two reads and one write, the further ones nothing. A source that is refused is never kept, nor one that nobody
//! may protect. A claim's view ends with the first news of another version of it, so that a source that is being deleted,
//! or another one of the same name, is seen as what it is.

use super::{ClaimRoom, Hindrance};
use crate::claim::clone_source::{self, Wanted};
use crate::claim::refusal::{Refusal, cut};
use crate::claim::snapshot_source;
use crate::claim::source::{DataSource, Found, SourceKind};
use crate::kube_api::error::{ApiError, ApiErrorKind, PASSING_REFUSALS};
use crate::kube_api::objects::Path;
use crate::model::claim::CLONE_FINALIZER;
use crate::model::finalizers;
use crate::model::meta::MetaExt;
use crate::model::request::ContentSource;
use crate::model::snapshot::{SNAPSHOT_FINALIZER, SNAPSHOT_GROUP, Snapshot, SnapshotContent};
use crate::model::{Claim, Volume};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tracing::warn;

/// How long a view of a source may be used without reading it again.
const FRESH: Duration = Duration::from_secs(30);
/// Writes of a finalizer that may collide with other writers before the user is told (weak point W37).
const TRIES: usize = 4;

/// A source as it was read: itself and the object behind it (volume object or snapshot content).
#[derive(Clone)]
struct View {
    object: Value,
    behind: Option<Value>,
    read: Instant,
}

type Views = BTreeMap<(SourceKind, String, String), Arc<View>>;

/// Views of sources that were read lately, and which snapshots carry our finalizer because of us.
#[derive(Default)]
pub struct SourceViews {
    views: Mutex<Views>,
    /// Namespace and name. Follows open work: it ends with the protection.
    protected: Mutex<BTreeSet<(String, String)>>,
    /// Our finalizer may not be put on snapshots: refused again and again, and not accepted since.
    snapshots_are_refused: AtomicBool,
}

impl SourceViews {
    fn fresh(&self, source: &DataSource) -> Option<Arc<View>> {
        let now = Instant::now();
        self.with(|views| {
            views.retain(|_, view| now.duration_since(view.read) < FRESH);
            views.get(&key(source)).cloned()
        })
    }

    /// Hands out the object as last written or read, and forgets it: whoever changes it next makes it stale.
    pub fn take(&self, kind: SourceKind, namespace: &str, name: &str) -> Option<Value> {
        let source = DataSource { kind, namespace: namespace.to_owned(), name: name.to_owned() };
        let view = self.fresh(&source)?;
        self.forget(&source);
        Some(view.object.clone())
    }

    /// The watch tells a claim's version: what was read of another one does not count any more.
    pub fn claim_changed(&self, claim: &Claim) {
        let (meta, source) = (&claim.metadata, of_claim(claim));
        let differs = |view: &Arc<View>| view.object["metadata"]["resourceVersion"].as_str() != Some(meta.version());
        self.with(|views| {
            if views.get(&key(&source)).is_some_and(differs) {
                views.remove(&key(&source));
            }
        });
    }

    /// A claim is gone.
    pub fn claim_gone(&self, claim: &Claim) {
        self.forget(&of_claim(claim));
    }

    /// The watch was interrupted: nobody told about changes of claims.
    pub fn claims_unknown(&self) {
        self.with(|views| views.retain(|(kind, ..), _| *kind != SourceKind::Claim));
    }

    /// How many views are kept.
    pub fn entries(&self) -> usize {
        self.with(|views| views.len())
    }

    fn keep(&self, source: &DataSource, view: View) {
        self.with(|views| views.insert(key(source), Arc::new(view)));
    }

    fn forget(&self, source: &DataSource) {
        self.with(|views| views.remove(&key(source)));
    }

    /// Whether this process protected the snapshot.
    pub fn protects(&self, namespace: &str, name: &str) -> bool {
        self.protected().contains(&(namespace.to_owned(), name.to_owned()))
    }

    /// The snapshot's protection is off.
    pub fn released(&self, namespace: &str, name: &str) {
        self.protected().remove(&(namespace.to_owned(), name.to_owned()));
    }

    fn protecting(&self, source: &DataSource) {
        if source.kind == SourceKind::Snapshot {
            self.protected().insert((source.namespace.clone(), source.name.clone()));
        }
    }

    fn protected(&self) -> MutexGuard<'_, BTreeSet<(String, String)>> {
        self.protected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Views) -> T) -> T {
        act(&mut self.views.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn of_claim(claim: &Claim) -> DataSource {
    let meta = &claim.metadata;
    DataSource { kind: SourceKind::Claim, namespace: meta.namespace().to_owned(), name: meta.name().to_owned() }
}

fn key(source: &DataSource) -> (SourceKind, String, String) {
    (source.kind, source.namespace.clone(), source.name.clone())
}

impl ClaimRoom {
    /// The content to fill the volume from, after all checks.
    pub(super) async fn checked_source(
        &self,
        claim: &Claim,
        source: &DataSource,
        required_bytes: i64,
    ) -> Result<ContentSource, Hindrance> {
        let driver = self.driver.get();
        let wanted = Wanted { claim, source, required_bytes, driver: &driver.name };
        if let Some(view) = self.sources.fresh(source)
            && let Ok(content) = self.check(&wanted, &Found::Object(&view.object), view.behind.as_ref())
        {
            return Ok(content);
        }
        self.sources.forget(source);
        let path = Self::source_path(source);
        let found = self.find(source, &path).await?;
        let behind = match &found {
            Found::Object(object) => self.behind(source, object).await?,
            Found::Missing | Found::Unreadable(_) => None,
        };
        let content = match &found {
            Found::Object(object) => self.check(&wanted, &Found::Object(object), behind.as_ref())?,
            Found::Missing => self.check(&wanted, &Found::Missing, None)?,
            Found::Unreadable(why) => self.check(&wanted, &Found::Unreadable(why.clone()), None)?,
        };
        if let Found::Object(object) = found {
            self.sources.keep(source, View { object, behind, read: Instant::now() });
        }
        Ok(content)
    }

    fn check(
        &self,
        wanted: &Wanted<'_>,
        object: &Found<&Value>,
        behind: Option<&Value>,
    ) -> Result<ContentSource, Refusal> {
        match wanted.source.kind {
            SourceKind::Claim => {
                let (source, volume) = (slim::<Claim>(object), slim_behind::<Volume>(behind));
                Ok(clone_source::check(wanted, &source, &volume)?)
            }
            SourceKind::Snapshot => {
                let (snapshot, content) = (slim::<Snapshot>(object), slim_behind::<SnapshotContent>(behind));
                let prevent = self.options.prevent_volume_mode_conversion;
                Ok(snapshot_source::check(wanted, &snapshot, &content, prevent)?)
            }
        }
    }

    /// Volume object or snapshot content, if the source names one.
    async fn behind(&self, source: &DataSource, object: &Value) -> Result<Option<Value>, Hindrance> {
        let (path, name) = match source.kind {
            SourceKind::Claim => (Path::core("persistentvolumes"), &object["spec"]["volumeName"]),
            SourceKind::Snapshot => (
                Path::group(SNAPSHOT_GROUP, "v1", "volumesnapshotcontents"),
                &object["status"]["boundVolumeSnapshotContentName"],
            ),
        };
        let Some(name) = name.as_str().filter(|name| !name.is_empty()) else { return Ok(None) };
        match self.objects.get::<Value>(&path.name(name)).await {
            Ok(behind) => Ok(Some(behind)),
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unreadable(source, &error)),
        }
    }

    /// Puts our finalizer on the source, so that it stays while it is copied. Nothing is written if it is there.
    /// `uid` is the claim's.
    pub(super) async fn protect(&self, source: &DataSource, uid: &str) -> Result<(), Hindrance> {
        let finalizer = match source.kind {
            SourceKind::Claim => CLONE_FINALIZER,
            SourceKind::Snapshot => SNAPSHOT_FINALIZER,
        };
        let path = Self::source_path(source);
        for _ in 0..TRIES {
            let view = match self.sources.fresh(source) {
                Some(view) => view.as_ref().clone(),
                None => {
                    let object = self.objects.get::<Value>(&path).await;
                    let object = object.map_err(|error| self.unreadable(source, &error))?;
                    View { object, behind: None, read: Instant::now() }
                }
            };
            let mut object = view.object;
            if !finalizers::change(&mut object, finalizer, finalizers::added) {
                self.sources.protecting(source);
                return Ok(());
            }
            match self.objects.replace(&path, &object).await {
                Ok(written) => {
                    self.sources.protecting(source);
                    if source.kind == SourceKind::Snapshot {
                        self.sources.snapshots_are_refused.store(false, Ordering::Relaxed);
                    }
                    if view.behind.is_some() {
                        self.sources.keep(source, View { object: written, behind: view.behind, read: view.read });
                    }
                    return Ok(());
                }
                // Somebody else wrote in between: take their version and add ours to it.
                Err(error) if error.kind == ApiErrorKind::Conflict => self.sources.forget(source),
                // The right to protect snapshots is optional (provisioning.md 10.1), that to protect claims is not.
                Err(error) if error.kind == ApiErrorKind::Forbidden && source.kind == SourceKind::Snapshot => {
                    self.sources.forget(source);
                    return self.goes_on_unprotected(source, uid, &error);
                }
                Err(error) => return Err(self.unreadable(source, &error)),
            }
        }
        warn!(target: "claim", source = %format_args!("{}/{}", source.namespace, source.name), "the source is written to all the time");
        Err(Refusal::SourceNotProtected {
            source_name: cut(&source.name),
            why: "other writers change it all the time".to_owned(),
        }
        .into())
    }

    /// The snapshot may not be written. The right may be missing for good, which is told once; or the API server has
    /// just started, or admission said no this time (weak point W41), so it is tried again a few times first.
    fn goes_on_unprotected(&self, source: &DataSource, uid: &str, error: &ApiError) -> Result<(), Hindrance> {
        let known = &self.sources.snapshots_are_refused;
        if !known.load(Ordering::Relaxed) {
            if self.queue.failures(&uid.to_owned()) < PASSING_REFUSALS {
                return Err(self.unreadable(source, error));
            }
            known.store(true, Ordering::Relaxed);
            warn!(target: "claim", snapshot = %format_args!("{}/{}", source.namespace, source.name), %error, "restores go on without protecting their snapshots: grant update on volumesnapshots");
        }
        Ok(())
    }

    fn source_path(source: &DataSource) -> Path {
        let path = match source.kind {
            SourceKind::Claim => Path::core("persistentvolumeclaims"),
            SourceKind::Snapshot => Path::group(SNAPSHOT_GROUP, "v1", "volumesnapshots"),
        };
        path.namespace(&source.namespace).name(&source.name)
    }

    fn unreadable(&self, source: &DataSource, error: &ApiError) -> Hindrance {
        self.sources.forget(source);
        let refusal = Refusal::SourceNotProtected { source_name: cut(&source.name), why: error.to_string() };
        Hindrance::by(error, refusal)
    }

    async fn find(&self, source: &DataSource, path: &Path) -> Result<Found<Value>, Hindrance> {
        match self.objects.get(path).await {
            Ok(object) => Ok(Found::Object(object)),
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(Found::Missing),
            Err(error) if error.kind.busy().is_some() => Err(self.unreadable(source, &error)),
            Err(error) => Ok(Found::Unreadable(error.to_string())),
        }
    }
}

fn slim<T: DeserializeOwned>(object: &Found<&Value>) -> Found<T> {
    match object {
        Found::Object(object) => match T::deserialize((*object).clone()) {
            Ok(object) => Found::Object(object),
            Err(error) => Found::Unreadable(error.to_string()),
        },
        Found::Missing => Found::Missing,
        Found::Unreadable(why) => Found::Unreadable(why.clone()),
    }
}

fn slim_behind<T: DeserializeOwned>(object: Option<&Value>) -> Found<T> {
    object.map_or(Found::Missing, |object| slim(&Found::Object(object)))
}
