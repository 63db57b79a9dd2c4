//! Takes our finalizers off sources that nothing is made from any more.
//!
//! Objects are read as JSON, changed and written back whole with their resource version: the usual role has no patch
//! here, and unknown fields must survive.

use super::book::Book;
use super::clone::{self, Release};
use super::index::Kind;
use super::{SourceKey, snapshot, sweep};
use crate::kube_api::error::{ApiError, ApiErrorKind};
use crate::kube_api::events::{Recorder, Regarding};
use crate::kube_api::objects::{Objects, Path};
use crate::kube_api::pool::{self, Next};
use crate::kube_api::queue::Queue;
use crate::model::claim::CLONE_FINALIZER;
use crate::model::driver::DriverCell;
use crate::model::finalizers;
use crate::model::meta::MetaExt;
use crate::model::snapshot::{SNAPSHOT_FINALIZER, SNAPSHOT_GROUP, Snapshot, SnapshotContent};
use crate::model::{Claim, Volume};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// How long a clone that was not begun holds a source that is being deleted. It cannot begin any more, so this only
/// covers one that another leader may have begun.
const HOPELESS_AFTER: Duration = Duration::from_secs(300);

/// What the claim room knows that protection needs.
pub trait Surroundings: Send + Sync {
    /// Creations from this source that may be running or whose volume object is not saved.
    fn open_creations(&self, kind: Kind, source: &SourceKey) -> usize;
    /// The snapshot as the claim room wrote it last, if that was just now: saves a read.
    fn take_snapshot(&self, source: &SourceKey) -> Option<Value>;
    /// Whether this process protected the snapshot, which it only does with one of our driver.
    fn protects_snapshot(&self, source: &SourceKey) -> bool;
    /// The snapshot carries our protection no more.
    fn snapshot_released(&self, source: &SourceKey);
}

/// Everything that the protection room works with.
pub struct ProtectionRoom {
    /// What is known.
    pub book: Arc<Book>,
    /// Source claims to look at.
    pub claims: Queue<SourceKey>,
    /// Snapshots to look at.
    pub snapshots: Queue<SourceKey>,
    /// The driver.
    pub driver: DriverCell,
    /// The API server.
    pub objects: Objects,
    /// Events.
    pub recorder: Recorder,
    /// The claim room.
    pub surroundings: Arc<dyn Surroundings>,
    /// `--snapshot-orphan-sweep-interval`.
    pub sweep_interval: Option<Duration>,
}

impl ProtectionRoom {
    /// Works until `stop`: releases source claims and snapshots as they become free, and sweeps what was left behind.
    pub async fn run(self: Arc<Self>, threads: usize, stop: CancellationToken) {
        let (claims, snapshots) = (Arc::clone(&self), Arc::clone(&self));
        tokio::join!(
            pool::run(&self.claims, threads, &stop, move |key: SourceKey| {
                let room = Arc::clone(&claims);
                async move { room.release_claim(&key).await }
            }),
            pool::run(&self.snapshots, 1, &stop, move |key: SourceKey| {
                let room = Arc::clone(&snapshots);
                async move { room.release_snapshot(&key).await }
            }),
            self.sweep(&stop),
        );
    }

    async fn release_claim(&self, key: &SourceKey) -> Next {
        let Some(waiting) = self.book.waiting(key) else { return Next::Done };
        let Some(named) = self.book.users(Kind::Claim, key) else { return Next::After(HOPELESS_AFTER) };
        let open = self.surroundings.open_creations(Kind::Claim, key);
        let age = waiting.since.elapsed();
        let used = open > 0 || (named > 0 && age < HOPELESS_AFTER);
        match clone::release(&waiting.claim, used) {
            Release::NotDue => Next::Done,
            Release::CloneInProgress => {
                self.tell_clones(&waiting.claim, named.max(open));
                Next::After(HOPELESS_AFTER.saturating_sub(age).max(Duration::from_secs(1)))
            }
            Release::Due => self.remove_from_claim(&waiting.claim).await,
        }
    }

    fn tell_clones(&self, source: &Claim, clones: usize) {
        let meta = &source.metadata;
        let about = Regarding {
            kind: "PersistentVolumeClaim".to_owned(),
            api_version: "v1".to_owned(),
            namespace: meta.namespace().to_owned(),
            name: meta.name().to_owned(),
            uid: meta.uid().to_owned(),
            resource_version: meta.version().to_owned(),
        };
        let text = format!("deletion waits: {clones} unfinished clone(s) use this claim as their data source");
        self.recorder.normal(&about, "CloneInProgress", &text);
    }

    async fn remove_from_claim(&self, source: &Claim) -> Next {
        let meta = &source.metadata;
        match self.is_bound_to_another_driver(source).await {
            Ok(false) => {}
            Ok(true) => return Next::Done,
            Err(error) => return after(&Err(error)),
        }
        let path = Path::core("persistentvolumeclaims").namespace(meta.namespace()).name(meta.name());
        let removed = self.remove_finalizer(&path, meta.uid(), CLONE_FINALIZER, |_| true).await;
        if let Err(error) = &removed {
            info!(target: "protection", claim = %meta.key(), %error, "cannot release the clone source yet");
        }
        after(&removed)
    }

    /// A claim that was bound by hand names no provisioner; then its volume tells whose clones protect it.
    async fn is_bound_to_another_driver(&self, source: &Claim) -> Result<bool, ApiError> {
        let Some(volume) = source.spec.volume_name.as_deref().filter(|name| !name.is_empty()) else { return Ok(false) };
        if source.named_provisioner().is_some() {
            return Ok(false);
        }
        match self.objects.get::<Volume>(&Path::core("persistentvolumes").name(volume)).await {
            Ok(volume) => Ok(volume.spec.csi.is_some_and(|csi| !self.driver.get().is_known_as(&csi.driver))),
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn release_snapshot(&self, key: &SourceKey) -> Next {
        let Some(named) = self.book.users(Kind::Snapshot, key) else { return Next::Retry };
        if named + self.surroundings.open_creations(Kind::Snapshot, key) > 0 {
            return Next::Done;
        }
        let removed = match self.is_our_business(key).await {
            Ok(true) => self.remove_from_snapshot(key).await,
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = &removed {
            debug!(target: "protection", snapshot = %format_args!("{}/{}", key.namespace, key.name), %error, "cannot release the snapshot yet");
        }
        after(&removed)
    }

    /// Each driver has its own provisioner, which alone knows what is open: other drivers' snapshots are not touched
    /// (weak point W10 d). One without our finalizer is nobody's business.
    async fn is_our_business(&self, key: &SourceKey) -> Result<bool, ApiError> {
        if self.surroundings.protects_snapshot(key) {
            return Ok(true);
        }
        let path = snapshots().namespace(&key.namespace).name(&key.name);
        match self.objects.get::<Snapshot>(&path).await {
            Ok(object) => Ok(object.metadata.has_finalizer(SNAPSHOT_FINALIZER) && self.is_of_our_driver(&object).await),
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn remove_from_snapshot(&self, key: &SourceKey) -> Result<(), ApiError> {
        let path = snapshots().namespace(&key.namespace).name(&key.name);
        let open = || {
            self.book.users(Kind::Snapshot, key).unwrap_or(1) + self.surroundings.open_creations(Kind::Snapshot, key)
        };
        // Asked again right before the write: a restore that began meanwhile keeps its protection (W10 c).
        let still_free = |object: &Value| {
            serde_json::from_value::<Snapshot>(object.clone())
                .is_ok_and(|snapshot| snapshot::may_release(&snapshot, open()))
        };
        let taken = match self.surroundings.take_snapshot(key) {
            Some(object) => self.write_without(&path, object, "", SNAPSHOT_FINALIZER, &still_free).await.map(Some),
            None => Ok(None),
        };
        match taken {
            Ok(Some(())) => {}
            // Not known, or somebody wrote since then: read it.
            Ok(None) => self.remove_finalizer(&path, "", SNAPSHOT_FINALIZER, still_free).await?,
            Err(error) if error.kind == ApiErrorKind::Conflict => {
                self.remove_finalizer(&path, "", SNAPSHOT_FINALIZER, still_free).await?;
            }
            Err(error) => return Err(error),
        }
        if open() == 0 {
            self.surroundings.snapshot_released(key);
        }
        Ok(())
    }

    /// Takes one finalizer off. `uid` empty = whatever object has the name. Nothing is written if it is not there or
    /// `still` says no.
    async fn remove_finalizer(
        &self,
        path: &Path,
        uid: &str,
        finalizer: &str,
        still: impl Fn(&Value) -> bool,
    ) -> Result<(), ApiError> {
        match self.objects.get::<Value>(path).await {
            Ok(object) => self.write_without(path, object, uid, finalizer, still).await,
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn write_without(
        &self,
        path: &Path,
        mut object: Value,
        uid: &str,
        finalizer: &str,
        still: impl Fn(&Value) -> bool,
    ) -> Result<(), ApiError> {
        if !uid.is_empty() && object["metadata"]["uid"].as_str() != Some(uid) {
            return Ok(());
        }
        if !still(&object) || !finalizers::change(&mut object, finalizer, finalizers::removed) {
            return Ok(());
        }
        match self.objects.replace(path, &object).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Looks for snapshots whose protection was left behind, at once and then after each interval.
    async fn sweep(&self, stop: &CancellationToken) {
        let Some(interval) = self.sweep_interval else { return };
        loop {
            // Whether the API has snapshots is told by the sweep's own list.
            if sweep::is_enabled(Some(interval), true, self.driver.get().can) {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = self.sweep_once() => {}
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep(interval) => {}
            }
        }
    }

    async fn sweep_once(&self) {
        let found = match self.objects.list::<Snapshot>(&snapshots(), &[("limit", "250")]).await {
            Ok(found) => found,
            // The API may be installed or the right be granted later: the next sweep tries again (W40).
            Err(error) if error.kind == ApiErrorKind::NotFound => return,
            Err(error) => return debug!(target: "protection", %error, "no sweep of snapshots this time"),
        };
        for object in found {
            let key = SourceKey::new(object.metadata.namespace(), object.metadata.name());
            let Some(named) = self.book.users(Kind::Snapshot, &key) else { return };
            let open = self.surroundings.open_creations(Kind::Snapshot, &key);
            let used = if named + open > 0 { [key.clone()].into() } else { std::collections::BTreeSet::new() };
            if !sweep::is_orphan(&object, Some(&used)) || !self.is_of_our_driver(&object).await {
                continue;
            }
            match self.remove_from_snapshot(&key).await {
                Ok(()) => {
                    info!(target: "protection", snapshot = %object.metadata.key(), "removed protection that was left behind");
                }
                Err(error) => {
                    warn!(target: "protection", snapshot = %object.metadata.key(), %error, "cannot remove protection that was left behind");
                }
            }
        }
    }

    /// Whether our driver cut the snapshot: other drivers' snapshots are their provisioners' business (W10 d). One that
    /// has no content is nobody's.
    async fn is_of_our_driver(&self, object: &Snapshot) -> bool {
        let Some(content) =
            object.status.as_ref().and_then(|status| status.bound_volume_snapshot_content_name.as_deref())
        else {
            return false;
        };
        let path = Path::group(SNAPSHOT_GROUP, "v1", "volumesnapshotcontents").name(content);
        match self.objects.get::<SnapshotContent>(&path).await {
            Ok(content) => self.driver.get().is_known_as(&content.spec.driver),
            Err(_) => false,
        }
    }
}

fn snapshots() -> Path {
    Path::group(SNAPSHOT_GROUP, "v1", "volumesnapshots")
}

fn after(result: &Result<(), ApiError>) -> Next {
    match result {
        Ok(()) => Next::Done,
        Err(error) => match error.kind {
            ApiErrorKind::Forbidden => Next::Refused(HOPELESS_AFTER),
            _ => Next::after_failure(error),
        },
    }
}
