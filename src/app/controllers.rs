//! The controllers of a leading instance: rooms, their watches and workers.

use super::surroundings::{ForClaims, ForVolumes};
use crate::claim;
use crate::claim::watching::{ClaimObserver, ClassObserver};
use crate::claim::worker::ClaimRoom;
use crate::csi::Calls;
use crate::flags::Config;
use crate::kube_api::client::Clients;
use crate::kube_api::events::Recorder;
use crate::kube_api::objects::Objects;
use crate::kube_api::queue::{Backoff, Queue};
use crate::kube_api::secrets::SecretReader;
use crate::kube_api::watch::{self, Observer, Readiness, WatchSettings};
use crate::model::driver::DriverCell;
use crate::model::{Attachment, Claim, Class, Volume};
use crate::random::Random;
use crate::report::metrics::Metrics;
use crate::volume;
use crate::volume::watching::{AttachmentObserver, VolumeObserver};
use crate::volume::worker::VolumeRoom;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// What every room is built from.
#[derive(Clone)]
pub struct Ground {
    /// Resolved settings.
    pub config: Arc<Config>,
    /// The API server.
    pub clients: Clients,
    /// The driver.
    pub calls: Calls,
    /// Its name and capabilities.
    pub driver: DriverCell,
    /// Events.
    pub recorder: Recorder,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Randomness.
    pub random: Random,
    /// Identity of this process in volume attributes.
    pub identity: String,
}

/// The rooms of a running leader.
pub struct Controllers {
    ground: Ground,
    claims: Arc<ClaimRoom>,
    volumes: Arc<VolumeRoom>,
}

impl Controllers {
    /// Builds the rooms; nothing runs yet.
    pub fn new(ground: Ground) -> Self {
        let config = &ground.config;
        let backoff = Backoff { base: config.retry_start, max: config.retry_max };
        let objects = Objects::new(ground.clients.main.clone());
        let secrets = Arc::new(SecretReader::new(objects.clone()));
        let classes = Arc::new(claim::classes::Classes::default());
        let volume_book = Arc::new(volume::book::Book::default());
        let claims = ClaimRoom {
            book: Arc::default(),
            classes: Arc::clone(&classes),
            queue: Queue::new("claims", backoff, ground.metrics.queue("claims")),
            calls: ground.calls.clone(),
            driver: ground.driver.clone(),
            objects: objects.clone(),
            recorder: ground.recorder.clone(),
            metrics: Arc::clone(&ground.metrics),
            options: config.options.clone(),
            identity: ground.identity.clone(),
            retry_max: config.retry_max,
            surroundings: Arc::new(ForClaims { volumes: Arc::clone(&volume_book) }),
            secrets: Arc::clone(&secrets),
        };
        let volumes = VolumeRoom {
            book: volume_book,
            queue: Queue::new("volumes", backoff, ground.metrics.queue("volumes")),
            calls: ground.calls.clone(),
            driver: ground.driver.clone(),
            objects,
            recorder: ground.recorder.clone(),
            metrics: Arc::clone(&ground.metrics),
            secrets,
            surroundings: Arc::new(ForVolumes { classes }),
        };
        Self { ground, claims: Arc::new(claims), volumes: Arc::new(volumes) }
    }

    /// Watches and works until `stop`; then running turns are awaited. The caller bounds that wait.
    pub async fn run(&self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let readiness = Readiness::new();
        self.watch_all(&mut tasks, &readiness, &stop);
        let ready = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = readiness.all_ready() => true,
        };
        if ready {
            info!(target: "app", "watches are filled, workers start");
            let threads = self.ground.config.worker_threads;
            tokio::join!(
                Arc::clone(&self.claims).run(threads, stop.clone()),
                Arc::clone(&self.volumes).run(threads, stop.clone()),
            );
        }
        tasks.shutdown().await;
        self.tell_open_creations();
    }

    fn watch_all(&self, tasks: &mut JoinSet<()>, readiness: &Readiness, stop: &CancellationToken) {
        let (claims, volumes, driver) = (&self.claims, &self.volumes, &self.ground.driver);
        let claim_observer = ClaimObserver::new(Arc::clone(&claims.book), claims.queue.clone(), driver.clone());
        self.watch::<Claim>("persistentvolumeclaims", claim_observer, tasks, readiness, stop);
        let class_observer =
            ClassObserver::new(Arc::clone(&claims.book), Arc::clone(&claims.classes), claims.queue.clone());
        self.watch::<Class>("storageclasses", class_observer, tasks, readiness, stop);
        let volume_observer = VolumeObserver::new(Arc::clone(&volumes.book), volumes.queue.clone(), driver.clone());
        self.watch::<Volume>("persistentvolumes", volume_observer, tasks, readiness, stop);
        if driver.get().can.publish_unpublish_volume {
            let observer = AttachmentObserver::new(Arc::clone(&volumes.book), volumes.queue.clone(), driver.clone());
            self.watch::<Attachment>("volumeattachments", observer, tasks, readiness, stop);
        }
    }

    fn watch<K>(
        &self,
        resource: &'static str,
        observer: impl Observer<K> + 'static,
        tasks: &mut JoinSet<()>,
        readiness: &Readiness,
        stop: &CancellationToken,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        let api: Api<K> = Api::all(self.ground.clients.watch.clone());
        let settings = WatchSettings::new(resource, self.ground.random.clone());
        let (ready, stop) = (readiness.handle(), stop.clone());
        tasks.spawn(async move { watch::watch(api, observer, settings, ready, stop).await });
    }

    /// What is left open at a stop is told, so that nobody has to guess.
    fn tell_open_creations(&self) {
        for (uid, creation) in self.claims.book.all_creations() {
            let facts = creation.facts();
            info!(
                target: "app",
                claim = %format_args!("{}/{}", facts.claim_namespace, facts.claim_name),
                claim_uid = %uid,
                volume = creation.volume_name(),
                "a creation is still open; the next leader asks the driver again while the claim exists"
            );
        }
    }
}
