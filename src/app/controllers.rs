//! The controllers of a leading instance: rooms, their watches and workers.

use super::surroundings::{ForClaims, ForVolumes};
use crate::claim;
use crate::claim::watching::{ClaimObserver, ClassObserver};
use crate::claim::worker::ClaimRoom;
use crate::claim::worker::intent::{Intents, When};
use crate::csi::Calls;
use crate::flags::Config;
use crate::flags::config::DurableIntent;
use crate::kube_api::client::Clients;
use crate::kube_api::events::Recorder;
use crate::kube_api::objects::Objects;
use crate::kube_api::queue::{Backoff, Queue};
use crate::kube_api::secrets::SecretReader;
use crate::kube_api::watch::{self, Observer, Readiness, WatchSettings};
use crate::model::driver::DriverCell;
use crate::model::node::{CsiNode, Node};
use crate::model::{Attachment, Claim, Class, Volume};
use crate::random::Random;
use crate::report::metrics::Metrics;
use crate::topology::watching::{CsiNodeObserver, NodeObserver, SharedNodes, Wake};
use crate::volume;
use crate::volume::watching::{AttachmentObserver, VolumeObserver};
use crate::volume::worker::VolumeRoom;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

fn when(flag: DurableIntent) -> When {
    match flag {
        DurableIntent::Off => When::Never,
        DurableIntent::Uncertain => When::Uncertain,
        DurableIntent::Always => When::Always,
    }
}

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
    nodes: SharedNodes,
}

impl Controllers {
    /// Builds the rooms; nothing runs yet.
    pub fn new(ground: Ground) -> Self {
        let config = &ground.config;
        let backoff = Backoff { base: config.retry_start, max: config.retry_max };
        let objects = Objects::new(ground.clients.main.clone());
        let secrets = Arc::new(SecretReader::new(objects.clone()));
        let classes = Arc::new(claim::classes::Classes::default());
        let nodes = SharedNodes::default();
        let volume_book = Arc::new(volume::book::Book::default());
        let claims = ClaimRoom {
            book: Arc::new(claim::book::Book::new(config.retry_max)),
            classes: Arc::clone(&classes),
            queue: Queue::new(backoff, ground.metrics.queue("claims")),
            calls: ground.calls.clone(),
            driver: ground.driver.clone(),
            objects: objects.clone(),
            recorder: ground.recorder.clone(),
            metrics: Arc::clone(&ground.metrics),
            options: config.options.clone(),
            identity: ground.identity.clone(),
            surroundings: Arc::new(ForClaims {
                volumes: Arc::clone(&volume_book),
                nodes: nodes.clone(),
                driver: ground.driver.clone(),
                options: config.options.clone(),
            }),
            secrets: Arc::clone(&secrets),
            intents: Intents::new(objects.clone(), &config.durable_intent_namespace, when(config.durable_intent)),
        };
        let volumes = VolumeRoom {
            book: volume_book,
            queue: Queue::new(backoff, ground.metrics.queue("volumes")),
            calls: ground.calls.clone(),
            driver: ground.driver.clone(),
            objects,
            recorder: ground.recorder.clone(),
            metrics: Arc::clone(&ground.metrics),
            secrets,
            surroundings: Arc::new(ForVolumes { classes, driver: ground.driver.clone() }),
        };
        Self { ground, claims: Arc::new(claims), volumes: Arc::new(volumes), nodes }
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
            self.claims.take_over(&stop).await;
            let threads = self.ground.config.worker_threads;
            tokio::join!(
                Arc::clone(&self.claims).run(threads, stop.clone()),
                Arc::clone(&self.volumes).run(threads, stop.clone()),
            );
        }
        tasks.shutdown().await;
        self.claims.record_all_open().await;
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
        self.watch_places(tasks, readiness, stop);
    }

    /// Nodes and registrations, only for a driver with topology: other drivers need neither the memory nor the rights.
    fn watch_places(&self, tasks: &mut JoinSet<()>, readiness: &Readiness, stop: &CancellationToken) {
        let driver = self.ground.driver.get();
        if !driver.can.accessibility_constraints || !self.ground.config.options.topology {
            return;
        }
        let (book, queue) = (Arc::clone(&self.claims.book), self.claims.queue.clone());
        let wake: Wake = Arc::new(move |node: &str| {
            for uid in book.waiting(|claim| claim.selected_node() == node) {
                queue.add(uid);
            }
        });
        let nodes = NodeObserver::new(self.nodes.clone(), Arc::clone(&wake));
        self.watch::<Node>("nodes", nodes, tasks, readiness, stop);
        let registrations = CsiNodeObserver::new(self.nodes.clone(), self.ground.driver.clone(), wake);
        self.watch::<CsiNode>("csinodes", registrations, tasks, readiness, stop);
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
    pub fn tell_open_creations(&self) {
        for (uid, creation) in self.claims.book.all_creations() {
            let facts = creation.facts();
            info!(
                target: "app",
                claim = %format_args!("{}/{}", facts.claim.namespace, facts.claim.name),
                claim_uid = %uid,
                volume = creation.volume_name(),
                "a creation is still open; the next leader asks the driver again while the claim exists"
            );
        }
    }
}
