//! Builds the rooms of a leading instance out of what they share.

use super::surroundings::{ForClaims, ForProtection, ForVolumes};
use crate::claim;
use crate::claim::worker::ClaimRoom;
use crate::claim::worker::intent::{Intents, When};
use crate::csi::Calls;
use crate::flags::Config;
use crate::flags::config::DurableIntent;
use crate::kube_api::client::Clients;
use crate::kube_api::events::Recorder;
use crate::kube_api::objects::Objects;
use crate::kube_api::queue::{Backoff, Lane, Queue};
use crate::kube_api::secrets::SecretReader;
use crate::model::driver::DriverCell;
use crate::node_deployment::worker::Instance;
use crate::protection;
use crate::protection::SourceKey;
use crate::protection::worker::ProtectionRoom;
use crate::random::Random;
use crate::report::metrics::{Metrics, Sizes};
use crate::topology::watching::SharedNodes;
use crate::volume;
use crate::volume::worker::VolumeRoom;
use std::sync::Arc;

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
    /// This node's instance in a node deployment.
    pub instance: Option<Instance>,
}

/// The rooms.
pub struct Rooms {
    /// Claims become volumes.
    pub claims: Arc<ClaimRoom>,
    /// Released volumes go away.
    pub volumes: Arc<VolumeRoom>,
    /// Sources stay while they are copied.
    pub protection: Arc<ProtectionRoom>,
    /// Places of the cluster.
    pub nodes: SharedNodes,
    /// Reference grants.
    pub grants: Arc<claim::grants::Grants>,
}

/// What several rooms share.
struct Shared {
    objects: Objects,
    secrets: Arc<SecretReader>,
    classes: Arc<claim::classes::Classes>,
    volume_book: Arc<volume::book::Book>,
    nodes: SharedNodes,
    grants: Arc<claim::grants::Grants>,
    /// Sources whose protection has to be looked at.
    source_claims: Queue<SourceKey>,
    snapshots: Queue<SourceKey>,
}

impl Rooms {
    /// Builds the rooms; nothing runs yet.
    pub fn new(ground: &Ground) -> Self {
        let objects = Objects::new(ground.clients.main.clone());
        let shared = Shared {
            secrets: Arc::new(SecretReader::new(objects.clone())),
            objects,
            classes: Arc::default(),
            volume_book: Arc::default(),
            nodes: known_places(ground),
            grants: Arc::default(),
            source_claims: Queue::new(backoff(&ground.config), Arc::new(())),
            snapshots: Queue::new(backoff(&ground.config), Arc::new(())),
        };
        let claims = Arc::new(claim_room(ground, &shared));
        let protection = Arc::new(protection_room(ground, &shared, &claims));
        let volumes = Arc::new(volume_room(ground, &shared, &claims));
        ground.metrics.measure(sizes(&shared.secrets, &claims, &volumes, &protection));
        Self { claims, volumes, protection, nodes: shared.nodes, grants: shared.grants }
    }
}

fn backoff(config: &Config) -> Backoff {
    Backoff { base: config.retry_start, max: config.retry_max }
}

/// The places that are known from the start: in a node deployment this node, and there will be no others.
fn known_places(ground: &Ground) -> SharedNodes {
    let nodes = SharedNodes::default();
    if let Some(instance) = &ground.instance {
        let (node, registrations) = instance.objects(&ground.driver.get().name);
        nodes.put_fixed(&node, &registrations);
    }
    nodes
}

fn claim_room(ground: &Ground, shared: &Shared) -> ClaimRoom {
    let config = &ground.config;
    let book = Arc::new(claim::book::Book::new(config.retry_max));
    // Thousands of claims of one class hold up no claim of another class.
    let lanes = Arc::clone(&book);
    let class = move |uid: &String| Lane::from(lanes.class_name(uid));
    ClaimRoom {
        book,
        classes: Arc::clone(&shared.classes),
        queue: Queue::with_lanes(backoff(config), ground.metrics.queue("claims"), class),
        calls: ground.calls.clone(),
        driver: ground.driver.clone(),
        objects: shared.objects.clone(),
        recorder: ground.recorder.clone(),
        metrics: Arc::clone(&ground.metrics),
        options: config.options.clone(),
        identity: ground.identity.clone(),
        surroundings: Arc::new(ForClaims {
            volumes: Arc::clone(&shared.volume_book),
            nodes: shared.nodes.clone(),
            grants: Arc::clone(&shared.grants),
            driver: ground.driver.clone(),
            options: config.options.clone(),
            source_claims: shared.source_claims.clone(),
            snapshots: shared.snapshots.clone(),
            instance: ground.instance.clone(),
        }),
        secrets: Arc::clone(&shared.secrets),
        sources: Arc::default(),
        intents: Intents::new(shared.objects.clone(), &config.durable_intent_namespace, when(config.durable_intent))
            .of_node(ground.instance.as_ref().map(Instance::name)),
    }
}

fn volume_room(ground: &Ground, shared: &Shared, claims: &Arc<ClaimRoom>) -> VolumeRoom {
    let lanes = Arc::clone(&shared.volume_book);
    // Not the lane of the class's claims: neither kind of work waits for the other.
    let class = move |name: &String| Lane::from(format!("deletion of {}", lanes.class_name(name)));
    VolumeRoom {
        book: Arc::clone(&shared.volume_book),
        queue: Queue::with_lanes(backoff(&ground.config), ground.metrics.queue("volumes"), class),
        calls: ground.calls.clone(),
        driver: ground.driver.clone(),
        objects: shared.objects.clone(),
        recorder: ground.recorder.clone(),
        metrics: Arc::clone(&ground.metrics),
        secrets: Arc::clone(&shared.secrets),
        surroundings: Arc::new(ForVolumes {
            claims: Arc::clone(claims),
            classes: Arc::clone(&shared.classes),
            driver: ground.driver.clone(),
            instance: ground.instance.clone(),
        }),
    }
}

fn protection_room(ground: &Ground, shared: &Shared, claims: &Arc<ClaimRoom>) -> ProtectionRoom {
    ProtectionRoom {
        book: Arc::new(protection::book::Book::default()),
        claims: shared.source_claims.clone(),
        snapshots: shared.snapshots.clone(),
        driver: ground.driver.clone(),
        objects: shared.objects.clone(),
        recorder: ground.recorder.clone(),
        surroundings: Arc::new(ForProtection { claims: Arc::clone(claims) }),
        sweep_interval: ground.config.snapshot_sweep_interval,
    }
}

/// How much the rooms remember. They are not kept alive by being measured.
fn sizes(
    secrets: &Arc<SecretReader>,
    claims: &Arc<ClaimRoom>,
    volumes: &Arc<VolumeRoom>,
    protection: &Arc<ProtectionRoom>,
) -> Sizes {
    let protection = Arc::downgrade(protection);
    let (secrets, claims, volumes) = (Arc::downgrade(secrets), Arc::downgrade(claims), Arc::downgrade(volumes));
    Box::new(move || {
        let (claims, volumes, protection) = (claims.upgrade(), volumes.upgrade(), protection.upgrade());
        let (of_claims, of_protection) = (claims.as_ref(), protection.as_ref());
        let source_queues = |room: &Arc<ProtectionRoom>| room.claims.entries() + room.snapshots.entries();
        vec![
            ("claims", of_claims.map_or(0, |room| room.book.entries())),
            ("claim_queue", of_claims.map_or(0, |room| room.queue.entries())),
            ("sources", of_claims.map_or(0, |room| room.sources.entries())),
            ("records", of_claims.map_or(0, |room| room.intents.entries())),
            ("events", of_claims.map_or(0, |room| room.recorder.entries())),
            ("volumes", volumes.as_ref().map_or(0, |room| room.book.entries())),
            ("volume_queue", volumes.as_ref().map_or(0, |room| room.queue.entries())),
            ("protection", of_protection.map_or(0, |room| room.book.entries())),
            ("source_queues", of_protection.map_or(0, source_queues)),
            ("secrets", secrets.upgrade().map_or(0, |secrets| secrets.entries())),
        ]
    })
}

fn when(flag: DurableIntent) -> When {
    match flag {
        DurableIntent::Off => When::Never,
        DurableIntent::Uncertain => When::Uncertain,
        DurableIntent::Always => When::Always,
    }
}
