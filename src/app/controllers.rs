//! The controllers of a leading instance: watches, workers, and their end.

use super::rooms::{Ground, Rooms};
use crate::claim::watching::{ClaimObserver, ClassObserver, GrantObserver};
use crate::kube_api::watch::{self, Both, Observer, Readiness, Ready, WatchSettings};
use crate::model::driver::Capabilities;
use crate::model::grant::Grant;
use crate::model::node::{CsiNode, Node};
use crate::model::{Attachment, Claim, Class, Volume};
use crate::protection::watching::SourceObserver;
use crate::topology::watching::{CsiNodeObserver, NodeObserver, Wake};
use crate::volume::watching::{AttachmentObserver, VolumeObserver};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// The rooms of a running leader.
pub struct Controllers {
    ground: Ground,
    rooms: Rooms,
    /// The API server has no streaming lists.
    pages_only: Arc<AtomicBool>,
}

/// Where a watch is started.
struct Start<'a> {
    tasks: &'a mut JoinSet<()>,
    readiness: &'a Readiness,
    stop: &'a CancellationToken,
}

impl Controllers {
    /// Builds the rooms; nothing runs yet.
    pub fn new(ground: Ground) -> Self {
        let rooms = Rooms::new(&ground);
        Self { ground, rooms, pages_only: Arc::default() }
    }

    /// Watches and works until `stop`; then running turns are awaited. The caller bounds that wait.
    pub async fn run(&self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let readiness = Readiness::new();
        self.watch_all(&mut Start { tasks: &mut tasks, readiness: &readiness, stop: &stop });
        let ready = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = readiness.all_ready() => true,
        };
        if ready {
            info!(target: "app", v = 2, "watches are filled, workers start");
            self.work(&stop).await;
        }
        tasks.shutdown().await;
    }

    async fn work(&self, stop: &CancellationToken) {
        let (claims, volumes) = (&self.rooms.claims, &self.rooms.volumes);
        claims.take_over(stop).await;
        let threads = self.ground.config.worker_threads;
        tokio::join!(
            claims.take_over_late(stop),
            Arc::clone(claims).run(threads, stop.clone()),
            Arc::clone(volumes).run(threads, stop.clone()),
            Arc::clone(&self.rooms.protection).run(self.ground.config.cloning_protection_threads, stop.clone()),
        );
    }

    fn watch_all(&self, start: &mut Start<'_>) {
        let (claims, volumes, driver) = (&self.rooms.claims, &self.rooms.volumes, &self.ground.driver);
        let wanting = ClaimObserver::new(
            Arc::clone(&claims.book),
            Arc::clone(&claims.sources),
            claims.queue.clone(),
            driver.clone(),
        );
        let sources = SourceObserver::new(&self.rooms.protection);
        self.watch::<Claim>("persistentvolumeclaims", Both(sources, wanting), start);
        let classes = ClassObserver::new(Arc::clone(&claims.book), Arc::clone(&claims.classes), claims.queue.clone());
        self.watch::<Class>("storageclasses", classes, start);
        let released = VolumeObserver::new(Arc::clone(&volumes.book), volumes.queue.clone(), driver.clone());
        self.watch::<Volume>("persistentvolumes", released, start);
        let attached = AttachmentObserver::new(Arc::clone(&volumes.book), volumes.queue.clone(), driver.clone());
        self.watch_once_needed::<Attachment>("volumeattachments", attached, start, |can| can.publish_unpublish_volume);
        // In a node deployment the one place that matters is known from the start.
        if self.ground.config.options.topology && self.ground.instance.is_none() {
            self.watch_places(start);
        }
        if self.ground.config.options.cross_namespace_source {
            let grants =
                GrantObserver::new(Arc::clone(&claims.book), Arc::clone(&self.rooms.grants), claims.queue.clone());
            // A missing grant API or right must not hold up everything else: nobody waits for this one.
            let nobody = Readiness::new();
            self.watch::<Grant>(
                "referencegrants",
                grants,
                &mut Start { tasks: &mut *start.tasks, readiness: &nobody, stop: start.stop },
            );
        }
    }

    fn watch_places(&self, start: &mut Start<'_>) {
        let (book, queue) = (Arc::clone(&self.rooms.claims.book), self.rooms.claims.queue.clone());
        let wake: Wake = Arc::new(move |node: &str| {
            for uid in book.waiting(|claim| claim.selected_node() == node) {
                queue.add(uid);
            }
        });
        let nodes = NodeObserver::new(self.rooms.nodes.clone(), Arc::clone(&wake));
        let needed = |can: Capabilities| can.accessibility_constraints;
        self.watch_once_needed::<Node>("nodes", nodes, start, needed);
        let registrations = CsiNodeObserver::new(self.rooms.nodes.clone(), self.ground.driver.clone(), wake);
        self.watch_once_needed::<CsiNode>("csinodes", registrations, start, needed);
    }

    /// Watches only while the driver can what needs it: memory and rights that nobody uses are wasted. A driver that can
    /// more after a restart gets its watch then; one that is not needed now holds up nobody's start.
    fn watch_once_needed<K>(
        &self,
        resource: &'static str,
        observer: impl Observer<K> + 'static,
        start: &mut Start<'_>,
        needed: fn(Capabilities) -> bool,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        let driver = self.ground.driver.clone();
        if needed(driver.get().can) {
            return self.watch::<K>(resource, observer, start);
        }
        let watching = self.watching::<K>(resource, observer, Readiness::new().handle(), start.stop.clone());
        let stop = start.stop.clone();
        start.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = driver.until(needed) => {}
            }
            watching.await;
        });
    }

    fn watch<K>(&self, resource: &'static str, observer: impl Observer<K> + 'static, start: &mut Start<'_>)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        let watching = self.watching(resource, observer, start.readiness.handle(), start.stop.clone());
        start.tasks.spawn(watching);
    }

    fn watching<K>(
        &self,
        resource: &'static str,
        observer: impl Observer<K> + 'static,
        ready: Ready,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        let api: Api<K> = Api::all(self.ground.clients.watch.clone());
        let settings = WatchSettings::new(resource, self.ground.random.clone(), Arc::clone(&self.pages_only));
        watch::watch(api, observer, settings, ready, stop)
    }

    /// Writes down and tells what is left open at a stop, so that nobody has to guess.
    pub async fn hand_over(&self) {
        let claims = &self.rooms.claims;
        claims.record_all_open().await;
        for (uid, creation) in claims.book.all_creations() {
            let facts = creation.facts();
            info!(
                target: "app",
                claim = %format_args!("{}/{}", facts.claim.namespace, facts.claim.name),
                claim_uid = %uid,
                volume = creation.volume_name(),
                "a creation is still open; the next leader asks the driver again while the claim or its record exists"
            );
        }
    }
}
