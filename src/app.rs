//! Puts the sidecar together: connect, probe, build, lead, stop.
//!
//! Exit codes: 0 after an orderly stop, 1 for a lost lease, a changed driver or a failed start, 255 for what the Go
//! sidecar calls fatal, 2 for wrong flags (`flags`).

mod controllers;
pub mod driver;
pub mod embedded;
mod place;
mod rooms;
pub mod start;
mod surroundings;

use crate::capacity::worker::OwnerFault;
use crate::clock::Clock;
use crate::csi::presence::Presence;
use crate::csi::{Calls, Transport, identity};
use crate::flags::Config;
use crate::kube_api::client::Clients;
use crate::kube_api::events::{self, EventSink, Recorder};
use crate::kube_api::lease::{self, Candidate, LeaseConfig, LeaseEnd, LeaseHealth, LeaseState, StopTokens};
use crate::node_deployment::worker::{Instance, NodeInfoFault};
use crate::random::Random;
use crate::report::metrics::Metrics;
use crate::report::{http, reasons};
use controllers::Controllers;
use rooms::Ground;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

/// Deadline of the one discovery call.
const DISCOVERY: Duration = Duration::from_secs(10);
/// Longest wait for running calls at a stop; `--timeout` shortens it.
const DRAIN: Duration = Duration::from_secs(20);

/// Longest wait for the last events: the sink gives up by itself before.
const EVENTS: Duration = Duration::from_secs(20);
/// The same after a failure: the process has to end, for another works already or the next start may help.
const EVENTS_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Everything that comes from outside the program: real or simulated.
pub struct World {
    /// The API server.
    pub clients: Clients,
    /// The driver.
    pub transport: Transport,
    /// Counts reconnections to the driver.
    pub losses: watch::Receiver<u64>,
    /// Wall clock.
    pub clock: Clock,
    /// Randomness.
    pub random: Random,
    /// Host name, part of identities.
    pub hostname: String,
    /// Counters.
    pub metrics: Arc<Metrics>,
}

/// Why the sidecar ended other than by an orderly stop.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The driver could not be used.
    #[error(transparent)]
    Driver(#[from] driver::DriverFailure),
    /// The driver did not say where it is.
    #[error(transparent)]
    Node(#[from] NodeInfoFault),
    /// The owner of capacity objects is not known.
    #[error(transparent)]
    Owner(#[from] OwnerFault),
    /// The HTTP address cannot be served.
    #[error("cannot serve --http-endpoint {address}: {reason}")]
    Http {
        /// As given.
        address: String,
        /// Why not.
        reason: std::io::Error,
    },
    /// Another instance took over, or renewing failed for too long.
    #[error("stopped leading: {0}")]
    LeaseLost(String),
}

impl Failure {
    /// Exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Driver(failure) => failure.exit_code(),
            // Fatal in the Go sidecar.
            Self::Http { .. } | Self::Node(_) | Self::Owner(_) => 255,
            Self::LeaseLost(_) => 1,
        }
    }
}

/// Runs until `stop` is cancelled and everything is put away, or until something ends it.
pub async fn run(config: Arc<Config>, world: World, stop: CancellationToken) -> Result<(), Failure> {
    let presence = Presence::new(world.losses.clone());
    let calls =
        Calls::new(world.transport.clone(), config.timeout, world.metrics.clone()).waiting_for(presence.clone());
    let driver = driver::first_contact(&calls, &stop).await?;
    let Some(driver) = driver else { return Ok(()) };
    let instance = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        found = place::find(&config, &calls, &world) => found?,
    };
    let config = Arc::new(discover_attributes_class(&config, &world.clients).await);
    let component = reasons::component(&driver.get().name, &world.hostname, &world.random.uuid());
    let (recorder, sink) = events::recorder(
        world.clients.events.clone(),
        &component,
        world.clock.clone(),
        world.random.clone(),
        world.metrics.clone(),
    );
    let sink = sink.ending_through(world.clients.main.clone());
    let ground = Ground {
        config: Arc::clone(&config),
        clients: world.clients.clone(),
        calls: calls.clone(),
        driver: driver.clone(),
        recorder: recorder.clone(),
        metrics: Arc::clone(&world.metrics),
        random: world.random.clone(),
        identity: identity::identity(
            world.clock.now(),
            &world.random,
            &driver.get().name,
            instance.as_ref().map(Instance::name),
        ),
        instance,
    };
    let run = Run { config, world, ground, recorder, presence, stop, health: Arc::default() };
    Box::pin(run.until_the_end(sink)).await
}

/// One run of the sidecar after its start.
struct Run {
    config: Arc<Config>,
    world: World,
    ground: Ground,
    recorder: Recorder,
    presence: Presence,
    stop: CancellationToken,
    health: Arc<OnceLock<LeaseHealth>>,
}

impl Run {
    async fn until_the_end(self, sink: EventSink) -> Result<(), Failure> {
        let ended = CancellationToken::new();
        let (state, mut lease_state) = watch::channel(LeaseState::Standby);
        let server = self.serve(&ended).await?;
        let events_stop = CancellationToken::new();
        // Whatever was spawned ends with this run, also when it is dropped half-way.
        let events = AbortOnDropHandle::new(tokio::spawn(sink.run(events_stop.clone())));
        let result = tokio::select! {
            biased;
            failure = self.driver_changes() => Err(Failure::Driver(failure)),
            result = self.lead_and_work(state, &mut lease_state) => result,
        };
        events_stop.cancel();
        let patience = if result.is_ok() { EVENTS } else { EVENTS_AFTER_FAILURE };
        let unwritten = events.abort_handle();
        match timeout(patience, events).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(target: "app", %error, "the event task ended early"),
            Err(_) => unwritten.abort(),
        }
        ended.cancel();
        if let Some(server) = server {
            server.await.ok();
        }
        result
    }

    async fn driver_changes(&self) -> driver::DriverFailure {
        let (losses, ground) = (self.world.losses.clone(), &self.ground);
        driver::stay_in_contact(losses, &self.presence, &ground.calls, &ground.driver, &self.stop).await
    }

    /// Leads (or just works, without election) until the stop; the lease is held while running calls end.
    async fn lead_and_work(
        &self,
        state: watch::Sender<LeaseState>,
        lease_state: &mut watch::Receiver<LeaseState>,
    ) -> Result<(), Failure> {
        let Some(leader) = &self.config.leader else {
            self.work().await;
            return Ok(());
        };
        let name = lease::lease_name(&self.ground.driver.get().name);
        let config = LeaseConfig {
            name,
            namespace: leader.namespace.clone(),
            identity: lease::identity(&self.world.hostname, &self.world.random),
            duration: leader.lease_duration,
            renew_deadline: leader.renew_deadline,
            retry_period: leader.retry_period,
            labels: leader.labels.clone(),
            release_on_stop: self.config.release_on_stop,
        };
        let component = reasons::lease_component(&self.ground.driver.get().name, &self.world.hostname);
        let (client, clock, random) =
            (self.world.clients.lease.clone(), self.world.clock.clone(), self.world.random.clone());
        let candidate = Candidate::new(client, config, clock, random).announcing(self.recorder.speaking_as(&component));
        self.health.set(candidate.health()).ok();
        let release = CancellationToken::new();
        let lease = candidate.lead(state, StopTokens { drain: self.stop.clone(), stop: release.clone() });
        let work = async {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = leading(lease_state) => {
                    self.world.metrics.set_leading(true);
                    self.work().await;
                }
            }
            release.cancel();
        };
        tokio::pin!(lease);
        let end = tokio::select! {
            biased;
            end = &mut lease => end,
            () = work => lease.await,
        };
        match end {
            LeaseEnd::Released => Ok(()),
            LeaseEnd::Lost { reason } => Err(Failure::LeaseLost(reason)),
        }
    }

    /// Runs the controllers until the stop and gives running calls a bounded time to end.
    async fn work(&self) {
        let controllers = Controllers::new(self.ground.clone());
        let running = controllers.run(self.stop.clone());
        tokio::pin!(running);
        tokio::select! {
            biased;
            () = &mut running => return controllers.hand_over().await,
            () = self.stop.cancelled() => {}
        }
        let drain = DRAIN.min(self.config.timeout);
        info!(target: "app", "stopping: running calls get up to {} s", drain.as_secs_f64());
        if timeout(drain, running).await.is_err() {
            warn!(target: "app", "calls were still running at the end of that time");
        }
        controllers.hand_over().await;
    }

    async fn serve(&self, ended: &CancellationToken) -> Result<Option<AbortOnDropHandle<()>>, Failure> {
        let Some(server) = &self.config.http else { return Ok(None) };
        let listener = http::bind(&server.address)
            .await
            .map_err(|reason| Failure::Http { address: server.address.clone(), reason })?;
        let routes = http::Routes::new(server, Arc::clone(&self.world.metrics), Arc::clone(&self.health));
        Ok(Some(AbortOnDropHandle::new(tokio::spawn(http::serve(listener, routes, ended.clone())))))
    }
}

async fn leading(state: &mut watch::Receiver<LeaseState>) {
    // An error means that the lease task ended, which the caller sees by itself.
    if state.wait_for(|state| *state == LeaseState::Leading).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Switches attributes classes off where the API server does not know them (provisioning.md 1.7). A failed discovery
/// leaves them on.
async fn discover_attributes_class(config: &Config, clients: &Clients) -> Config {
    let mut config = config.clone();
    if config.attributes_class_set_explicitly || !config.options.attributes_class {
        return config;
    }
    let listed = timeout(DISCOVERY, clients.main.list_api_group_resources("storage.k8s.io/v1")).await;
    if let Ok(Ok(listed)) = listed
        && !listed.resources.iter().any(|one| one.kind == "VolumeAttributesClass")
    {
        info!(target: "app", "the API server has no VolumeAttributesClass in storage.k8s.io/v1: the feature is off");
        config.options.attributes_class = false;
    }
    config
}
