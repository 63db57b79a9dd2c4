//! The simulated world: API server, driver, binder, protection and any number of sidecars on one paused clock.
//!
//! Nothing here touches a socket, a thread or the machine's clock, so a day passes in seconds and a seed tells the whole
//! story. It must live on a current-thread runtime with paused time.
//!
//! - this file: [`World`];
//! - [`seat`]: a running sidecar, which can be stopped or killed; [`cable`]: the points at which that can happen;
//! - [`socket`]: the driver's end of the connection; what the driver itself does wrong is scripted on [`World::driver`],
//!   what the API server does wrong on [`World::server`];
//! - [`chaos`]: drawn troubles; [`calls`] and [`trace`]: what happened; [`check`]: what must hold in the end;
//! - [`objects`]: claims, classes and the like.

pub mod cable;
pub mod calls;
pub mod chaos;
pub mod check;
pub mod objects;
pub mod seat;
pub mod socket;
pub mod trace;
mod wires;

use super::apiserver::ApiServer;
use super::direct::{Feed, Ground, News};
use super::driver::{DriverOptions, MockDriver};
use super::{binder, protection};
use crate::app::embedded::Sidecar;
use crate::clock::Clock;
use crate::random::Random;
use cable::{Cable, Incident};
use calls::Calls;
use k8s_openapi::jiff::Timestamp;
use objects::{VOLUMES, text};
use seat::{Parts, Running};
use serde_json::Value;
use socket::{DriverEnd, Socket};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use trace::Trace;

/// When every simulated world begins, in seconds since 1970.
const BEGINNING: i64 = 1_800_000_000;
/// Pause between two looks of [`World::until`].
const LOOK: Duration = Duration::from_millis(50);

/// How a world is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Seed of everything random.
    pub seed: u64,
    /// The driver.
    pub driver: DriverOptions,
    /// Flags of the sidecars, besides the address of the driver.
    pub flags: Vec<String>,
    /// Without binder and protection: only the sidecars and the test itself change objects.
    pub alone: bool,
}

/// The world.
pub struct World {
    /// The API server, its objects and its faults.
    pub server: ApiServer,
    /// The driver, its volumes and its faults.
    pub driver: MockDriver,
    /// The driver's end of all connections.
    pub socket: DriverEnd,
    /// What happened.
    pub trace: Trace,
    /// All driver calls.
    pub calls: Calls,
    /// Randomness for whoever plays in this world.
    pub random: Random,
    clock: Clock,
    /// Command line of the sidecars.
    arguments: Vec<String>,
    started: AtomicU64,
    /// UIDs of all volume objects that there ever were, by volume id.
    objects_of: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

impl World {
    /// A world without sidecars and objects.
    pub fn new(options: Options) -> Self {
        let beginning = Timestamp::from_second(BEGINNING).unwrap_or(Timestamp::UNIX_EPOCH);
        let (clock, random) = (Clock::simulated(beginning), Random::seeded(options.seed));
        let server = ApiServer::new(clock.clone(), Random::seeded(random.below(u64::MAX)));
        let own = Random::seeded(random.below(u64::MAX));
        let ground = Ground { server: server.clone(), clock: clock.clone(), random: own };
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        server.in_use_protection(!options.alone);
        if !options.alone {
            tasks.spawn(binder::worker::run(ground.clone(), stop.clone()));
            tasks.spawn(protection::worker::run(ground, stop.clone()));
        }
        let objects_of: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>> = Arc::default();
        tasks.spawn(note_objects(server.clone(), Arc::clone(&objects_of)));
        let mut arguments = vec!["csi-provisioner".to_owned(), "--csi-address=/simulated".to_owned()];
        arguments.extend(options.flags);
        Self {
            server,
            driver: MockDriver::new(options.driver),
            socket: DriverEnd::default(),
            trace: Trace::begin(),
            calls: Calls::begin(),
            random,
            clock,
            arguments,
            started: AtomicU64::new(0),
            objects_of,
            stop,
            _tasks: tasks,
        }
    }

    /// Starts a sidecar.
    ///
    /// # Panics
    /// If the flags are refused, as for every other start: a mistake of the test.
    pub fn start(&self) -> Running {
        self.start_with(Vec::new())
    }

    /// Starts a sidecar that meets these incidents.
    pub fn start_with(&self, incidents: Vec<Incident>) -> Running {
        let who = format!("sidecar-{}", self.started.fetch_add(1, Ordering::Relaxed) + 1);
        self.run(&who, self.parts(&who, &self.driver, incidents), &[], &|_| None)
    }

    /// Starts a sidecar of a node deployment on the node of this driver: it is called like the node.
    pub fn start_on(&self, driver: &MockDriver) -> Running {
        let node = driver.node();
        let parts = self.parts(node, driver, Vec::new());
        self.run(node, parts, &["--node-deployment"], &|name| (name == "NODE_NAME").then(|| node.to_owned()))
    }

    /// Starts a sidecar with further flags and an environment.
    pub fn start_within(&self, flags: &[&str], environment: &dyn Fn(&str) -> Option<String>) -> Running {
        let who = format!("sidecar-{}", self.started.fetch_add(1, Ordering::Relaxed) + 1);
        self.run(&who, self.parts(&who, &self.driver, Vec::new()), flags, environment)
    }

    fn parts(&self, who: &str, driver: &MockDriver, incidents: Vec<Incident>) -> Parts {
        Parts {
            cable: Cable::new(who, &self.trace, &self.calls, incidents),
            socket: Socket::to(&self.socket),
            server: self.server.service(),
            driver: driver.routes(),
            clock: self.clock.clone(),
            random: Random::seeded(self.random.below(u64::MAX)),
        }
    }

    /// # Panics
    /// If the flags are refused: a mistake of the test.
    fn run(&self, who: &str, parts: Parts, flags: &[&str], environment: &dyn Fn(&str) -> Option<String>) -> Running {
        let further = flags.iter().map(|flag| (*flag).to_owned());
        let arguments: Vec<String> = self.arguments.iter().cloned().chain(further).collect();
        match Sidecar::within(&arguments, environment) {
            Ok(sidecar) => Running::start(sidecar, parts),
            Err(ended) => panic!("the flags of {who} are refused: {ended}"),
        }
    }

    /// Waits until `holds`; false if that takes longer than `limit`.
    pub async fn until(&self, limit: Duration, mut holds: impl FnMut(&Self) -> bool) -> bool {
        let end = Instant::now() + limit;
        loop {
            if holds(self) {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            sleep(LOOK).await;
        }
    }

    /// All objects of a kind.
    pub fn all(&self, plural: &str) -> Vec<Value> {
        self.server.list(plural, "").unwrap_or_default()
    }

    /// How many volume objects there ever were for a volume.
    fn objects_ever(&self, id: &str) -> usize {
        self.objects_of.lock().unwrap_or_else(PoisonError::into_inner).get(id).map_or(0, BTreeSet::len)
    }

    /// How many volumes the backend holds.
    pub fn volumes_in_backend(&self) -> usize {
        self.driver.backend().volumes().len()
    }
}

/// Keeps account of volume objects, which come and go.
async fn note_objects(server: ApiServer, objects_of: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>) {
    let mut feed = Feed::new(&server, &[VOLUMES]);
    loop {
        for news in feed.news() {
            if let News::Changed(_, volume) = news {
                let (id, uid) = (text(&volume, "/spec/csi/volumeHandle"), text(&volume, "/metadata/uid"));
                let mut objects_of = objects_of.lock().unwrap_or_else(PoisonError::into_inner);
                objects_of.entry(id.to_owned()).or_default().insert(uid.to_owned());
            }
        }
        feed.wait().await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
