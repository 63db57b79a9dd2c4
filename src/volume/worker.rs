//! Takes released volumes away and keeps our finalizer where it belongs.
//!
//! One turn handles one volume object. Deleting is: read live where the view may be old, wait for detach, call
//! `DeleteVolume` once, DELETE the object, take our finalizer off; each later step is repeated without the earlier ones.

use super::book::{Book, HeldVolume, Progress};
use super::delete::{self, DeleteRefusal, DeleteState, OwnNode, SecretSource};
use super::finalizer::{self, Upkeep};
use super::ownership;
use crate::csi::Calls;
use crate::kube_api::error::{ApiError, ApiErrorKind, PASSING_REFUSALS};
use crate::kube_api::events::{Recorder, Regarding};
use crate::kube_api::objects::{Objects, Patch, Path};
use crate::kube_api::pool::{self, Next};
use crate::kube_api::queue::Queue;
use crate::kube_api::secrets::SecretReader;
use crate::model::driver::DriverCell;
use crate::model::meta::MetaExt;
use crate::model::request::Code;
use crate::model::volume::VOLUME_FINALIZER;
use crate::model::{Class, Secrets, Volume};
use crate::report::metrics::Metrics;
use crate::report::reasons;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A view older than this is read again before anything is destroyed.
const FRESH: Duration = Duration::from_secs(30);

/// What other rooms know that a deletion needs; the composition root provides it.
pub trait Surroundings: Send + Sync {
    /// A storage class by name: the fallback for volumes without secret annotations (provisioning.md 7.6).
    fn class(&self, name: &str) -> Option<Arc<Class>>;
    /// The CSI form of a volume object that still has an in-tree source.
    fn to_csi(&self, volume: &Value) -> Result<Volume, String>;
    /// Our node in a node deployment: only volumes that it reaches are ours to delete.
    fn own_node(&self) -> Option<OwnNode<'_>>;
    /// Whether the creation of this claim's volume is still open or recorded, so that the volume could be made again.
    fn is_creation_open(&self, claim_uid: &str) -> bool;
}

/// Everything that the volume room works with.
pub struct VolumeRoom {
    /// What is known.
    pub book: Arc<Book>,
    /// Names of volume objects to look at.
    pub queue: Queue<String>,
    /// The driver.
    pub calls: Calls,
    /// Its name and capabilities.
    pub driver: DriverCell,
    /// The API server, with the main budget.
    pub objects: Objects,
    /// Events.
    pub recorder: Recorder,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Secrets, read by name.
    pub secrets: Arc<SecretReader>,
    /// Other rooms.
    pub surroundings: Arc<dyn Surroundings>,
}

/// Why a deletion did not get to its end.
enum Stop {
    /// Nothing is due any more.
    NotDue,
    /// Told where it belongs; try again.
    Again(Option<Duration>),
}

impl From<Stop> for Next {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::NotDue => Self::Done,
            Stop::Again(None) => Self::Retry,
            Stop::Again(Some(wait)) => Self::Busy(wait),
        }
    }
}

impl VolumeRoom {
    /// Works until `stop`, with at most `threads` volumes at once; running turns are awaited.
    pub async fn run(self: Arc<Self>, threads: usize, stop: CancellationToken) {
        let room = Arc::clone(&self);
        pool::run(&self.queue, threads, &stop, move |name: String| {
            let room = Arc::clone(&room);
            async move { room.turn(&name).await }
        })
        .await;
    }

    async fn turn(&self, name: &str) -> Next {
        let Some(held) = self.book.get(name) else { return Next::Done };
        // Before anything is read or written: the other instances see this volume too.
        if self.surroundings.own_node().is_some_and(|node| delete::is_of_other_node(&held.volume, node)) {
            return Next::Done;
        }
        if let Err(stop) = self.change_finalizer(&held.volume, finalizer::upkeep(&held.volume)).await {
            return stop.into();
        }
        if !delete::should_delete(&held.volume) {
            return Next::Done;
        }
        let claim = held.volume.spec.claim_ref.as_ref();
        if claim.is_some_and(|claim| self.surroundings.is_creation_open(&claim.uid)) {
            info!(target: "volume", volume = name, "is deleted when the record of its creation is gone");
            return Next::Retry;
        }
        match self.delete(&held).await {
            Ok(()) => Next::Done,
            Err(stop) => stop.into(),
        }
    }

    async fn delete(&self, held: &HeldVolume) -> Result<(), Stop> {
        let began = Instant::now();
        let uid = held.volume.metadata.uid();
        let progress = self.book.progress(uid);
        if progress == Some(Progress::Released) {
            return Ok(());
        }
        if progress.is_none() {
            let volume = self.fresh_view(held).await?;
            self.delete_storage(&volume).await?;
            self.book.set_progress(&held.volume, Progress::StorageGone, Instant::now());
            self.metrics.delete_ok(volume.class_name(), began.elapsed().as_secs_f64());
        }
        self.remove_object(&held.volume).await?;
        self.book.set_progress(&held.volume, Progress::Released, Instant::now());
        Ok(())
    }

    /// The view to decide on: read live if it came from a list or is old, because a list may show a state from before
    /// an administrator kept the volume.
    async fn fresh_view(&self, held: &HeldVolume) -> Result<Arc<Volume>, Stop> {
        if held.live && held.since.elapsed() <= FRESH {
            return Ok(Arc::clone(&held.volume));
        }
        let name = held.volume.metadata.name();
        match self.objects.get::<Volume>(&Path::core("persistentvolumes").name(name)).await {
            Ok(now) if now.metadata.uid() != held.volume.metadata.uid() => Err(Stop::NotDue),
            Ok(now) if ownership::is_ours(&now, &self.driver.get()) && delete::should_delete(&now) => Ok(Arc::new(now)),
            Ok(_) => Err(Stop::NotDue),
            Err(error) if error.kind == ApiErrorKind::NotFound => Err(Stop::NotDue),
            Err(error) => Err(again(&error)),
        }
    }

    async fn delete_storage(&self, volume: &Arc<Volume>) -> Result<(), Stop> {
        let driver = self.driver.get();
        let migrated = volume.spec.csi.is_none();
        let csi_view = if migrated { self.csi_view(volume).await? } else { Arc::clone(volume) };
        let handle = delete::handle(volume, csi_view.spec.csi.as_ref(), driver.can, self.surroundings.own_node());
        let handle = handle.map_err(|refusal| self.refused(volume, &refusal))?;
        if driver.can.publish_unpublish_volume {
            if !self.book.knows_attachments() {
                return Err(Stop::Again(None));
            }
            let node = self.book.attached_to(volume.metadata.name());
            delete::check_attachments(volume, node.as_deref()).map_err(|refusal| self.refused(volume, &refusal))?;
        }
        let (secrets, missing) = self.deletion_secrets(&csi_view).await?;
        match self.calls.delete_volume(handle, &secrets, migrated).await {
            Ok(()) => Ok(()),
            Err(error) if error.from_driver && error.code == Code::NotFound => Ok(()),
            Err(error) => {
                if matches!(error.code, Code::Unauthenticated | Code::PermissionDenied)
                    && let SecretSource::Named(secret) = delete::secret_source(&csi_view)
                {
                    self.secrets.forget(&secret);
                }
                let text = match missing {
                    Some(why) => format!("{error} (called without its secret: {why})"),
                    None => error.to_string(),
                };
                Err(self.failed(volume, &text))
            }
        }
    }

    /// A volume object with an in-tree source, in its CSI form.
    async fn csi_view(&self, volume: &Volume) -> Result<Arc<Volume>, Stop> {
        let path = Path::core("persistentvolumes").name(volume.metadata.name());
        let full = self.objects.get::<Value>(&path).await.map_err(|error| again(&error))?;
        self.surroundings.to_csi(&full).map(Arc::new).map_err(|text| self.failed(volume, &text))
    }

    /// The secrets for `DeleteVolume`, and why there are none although some are named (W33).
    async fn deletion_secrets(&self, volume: &Volume) -> Result<(Secrets, Option<String>), Stop> {
        let wanted = match delete::secret_source(volume) {
            SecretSource::None => return Ok((Secrets::default(), None)),
            SecretSource::HalfAnnotated => {
                let why = "the volume's deletion secret annotations name only one of secret and namespace";
                return Ok((Secrets::default(), Some(why.to_owned())));
            }
            SecretSource::Named(secret) => secret,
            SecretSource::Class(name) => {
                let Some(class) = self.surroundings.class(name) else {
                    return Ok((Secrets::default(), Some(format!("its class {name} does not exist any more"))));
                };
                match delete::secret_from_class(volume, Some(&class)) {
                    Ok(Some(secret)) => secret,
                    Ok(None) => return Ok((Secrets::default(), None)),
                    Err(refusal) => return Err(self.refused(volume, &refusal)),
                }
            }
        };
        match self.secrets.read(&wanted).await {
            Ok(secrets) => Ok((secrets, None)),
            Err(error) if !self.is_missing_for_good(volume, &error) => Err(again(&error)),
            Err(error) => {
                let why = format!("secret {} in namespace {}: {error}", wanted.name, wanted.namespace);
                warn!(target: "volume", volume = volume.metadata.name(), "deleting without secrets: {why}");
                Ok((Secrets::default(), Some(why)))
            }
        }
    }

    /// Whether a secret that could not be read stays unreadable: only then the volume is deleted without it. A 403 may
    /// come from an API server that has just started.
    fn is_missing_for_good(&self, volume: &Volume, error: &ApiError) -> bool {
        match error.kind {
            ApiErrorKind::NotFound
            | ApiErrorKind::Invalid
            | ApiErrorKind::BadRequest
            | ApiErrorKind::Unreadable
            | ApiErrorKind::Other(_) => true,
            ApiErrorKind::Forbidden => self.queue.failures(&volume.metadata.name().to_owned()) >= PASSING_REFUSALS,
            ApiErrorKind::AlreadyExists
            | ApiErrorKind::Conflict
            | ApiErrorKind::Gone
            | ApiErrorKind::Unauthorized
            | ApiErrorKind::TooManyRequests { .. }
            | ApiErrorKind::Server(_)
            | ApiErrorKind::Deadline
            | ApiErrorKind::Transport => false,
        }
    }

    /// DELETE of the object and removal of our finalizer; both may already have happened.
    async fn remove_object(&self, volume: &Volume) -> Result<(), Stop> {
        let meta = &volume.metadata;
        let path = Path::core("persistentvolumes").name(meta.name());
        // Somebody may have asked for the deletion already: then only our finalizer holds it.
        if !meta.is_being_deleted() {
            match self.objects.delete(&path, Some(meta.uid())).await {
                Ok(()) => {}
                Err(error) if error.kind == ApiErrorKind::NotFound => return Ok(()),
                // Also a conflict: either a new object took the name, which the watch will tell, or somebody wrote at
                // the same moment.
                Err(error) => return Err(again(&error)),
            }
        }
        if meta.has_finalizer(VOLUME_FINALIZER) {
            self.change_finalizer(volume, Upkeep::Remove).await?;
        }
        Ok(())
    }

    /// Adds or removes our finalizer and nothing else; the UID keeps it off a new object of the same name.
    async fn change_finalizer(&self, volume: &Volume, change: Upkeep) -> Result<(), Stop> {
        let meta = &volume.metadata;
        let patch = match change {
            Upkeep::Keep => return Ok(()),
            Upkeep::Add => json!({"metadata": {"uid": meta.uid(), "finalizers": [VOLUME_FINALIZER]}}),
            Upkeep::Remove => {
                json!({"metadata": {"uid": meta.uid(), "$deleteFromPrimitiveList/finalizers": [VOLUME_FINALIZER]}})
            }
        };
        let path = Path::core("persistentvolumes").name(meta.name());
        match self.objects.patch(&path, Patch::Strategic, &patch).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(()),
            Err(error) => {
                info!(target: "volume", volume = meta.name(), %error, "cannot change the finalizer yet");
                Err(again(&error))
            }
        }
    }

    fn refused(&self, volume: &Volume, refusal: &DeleteRefusal) -> Stop {
        match refusal.state() {
            DeleteState::Ignored => Stop::NotDue,
            DeleteState::Failed => self.failed(volume, &refusal.to_string()),
            DeleteState::InUse => {
                if self.book.tell_attached(volume.metadata.name(), Instant::now()) {
                    self.recorder.normal(&regarding(volume), reasons::VOLUME_DELETE, &refusal.to_string());
                }
                // The detach wakes it; the retry is only the fallback for a missed event.
                Stop::Again(None)
            }
        }
    }

    fn failed(&self, volume: &Volume, text: &str) -> Stop {
        let name = volume.metadata.name();
        info!(target: "volume", volume = name, error = %text, "deletion failed");
        self.metrics.delete_failed(volume.class_name());
        self.recorder.warning(&regarding(volume), reasons::VOLUME_FAILED_DELETE, text);
        Stop::Again(None)
    }
}

fn again(error: &ApiError) -> Stop {
    Stop::Again(error.kind.busy())
}

fn regarding(volume: &Volume) -> Regarding {
    let meta = &volume.metadata;
    Regarding {
        kind: "PersistentVolume".to_owned(),
        api_version: "v1".to_owned(),
        namespace: String::new(),
        name: meta.name().to_owned(),
        uid: meta.uid().to_owned(),
        resource_version: meta.version().to_owned(),
    }
}
