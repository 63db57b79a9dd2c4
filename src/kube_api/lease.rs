//! Leader election on a Lease that Go replicas share.
//!
//! Promises:
//! - at most one of all candidates leads: every write carries the resourceVersion it is based on, and a leader that
//!   cannot renew stops before anybody else may take over (also with clocks that differ);
//! - the rights `get`, `create` and `update` are enough; with `watch` a standby takes a released Lease at once;
//! - a leader asked to stop gives the Lease back, and renews it until then;
//! - each call has a deadline, and a call without an answer does not use up the time for another one.
//!
//! A lost Lease ends [`Candidate::lead`]; the process must end then, because others work already
//! (provisioning.md 2.4). What the record means is decided in [`record`], waiting as standby is in `standby`.

pub mod record;
mod standby;
#[cfg(test)]
mod tests;

use super::error::{ApiError, ApiErrorKind};
use super::events::{Recorder, Regarding};
use super::objects::{Objects, Path};
use crate::clock::Clock;
use crate::random::Random;
use futures::stream::{FuturesUnordered, StreamExt};
use kube::Client;
use record::{Seen, Step, sanitized};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Pause after a renewal that failed; the usual period would leave room for two tries only.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How far beyond the lease duration the last renewal may lie before the health check complains (as client-go).
const HEALTH_TOLERANCE: Duration = Duration::from_secs(20);
/// Event reason (provisioning.md 11).
const REASON: &str = "LeaderElection";

/// The Lease to compete for, and how.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// Name of the Lease, see [`lease_name`].
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Who we are; must be unique, see [`identity`].
    pub identity: String,
    /// How long others wait for a holder that does not renew.
    pub duration: Duration,
    /// How long a holder tries to renew. Below `duration`.
    pub renew_deadline: Duration,
    /// Time between two renewals or looks.
    pub retry_period: Duration,
    /// Labels the holder puts on the Lease.
    pub labels: BTreeMap<String, String>,
    /// Whether the Lease is given back on a stop. Off, others wait for `duration`.
    pub release_on_stop: bool,
}

impl LeaseConfig {
    /// The Go sidecar's times, no labels, released on a stop.
    pub fn new(name: &str, namespace: &str, identity: &str) -> Self {
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(5),
            labels: BTreeMap::new(),
            release_on_stop: true,
        }
    }

    /// The duration as the record can say it: whole seconds, as client-go cuts them off.
    pub fn duration_seconds(&self) -> u64 {
        self.duration.as_secs().max(1)
    }

    /// How long after the sending of the last renewal that worked the leader stops: the renew deadline and up to
    /// one retry period, as in Go, but always with a margin to the moment others may take over.
    fn tenure(&self) -> Duration {
        let others = Duration::from_secs(self.duration_seconds());
        let middle = (others + self.renew_deadline.min(others)) / 2;
        (self.retry_period + self.renew_deadline).min(middle).min(others * 9 / 10)
    }

    fn path(&self) -> Path {
        Path::group("coordination.k8s.io", "v1", "leases").namespace(&self.namespace).name(&self.name)
    }
}

/// The Lease of a driver: `hostpath.csi.k8s.io` locks `hostpath-csi-k8s-io`.
pub fn lease_name(driver: &str) -> String {
    sanitized(driver)
}

/// Who we are: the host name and a random part, because two hosts of one name must not both lead
/// (external-provisioner#690).
pub fn identity(hostname: &str, random: &Random) -> String {
    format!("{}-{:08x}", sanitized(hostname), random.below(1 << 32))
}

/// Whether this process leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Somebody else leads, or nobody.
    Standby,
    /// We lead.
    Leading,
}

/// How an election ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// We were asked to stop and hold the Lease no more (or never did).
    Released,
    /// We led and do no more: others may.
    Lost {
        /// Why, for the log.
        reason: String,
    },
}

/// The two steps of a stop.
#[derive(Clone, Debug, Default)]
pub struct StopTokens {
    /// Do not become leader any more; a leader goes on renewing while its work drains.
    pub drain: CancellationToken,
    /// Give the Lease back now.
    pub stop: CancellationToken,
}

/// Tells whether a leader still renews; for the HTTP endpoint.
#[derive(Clone, Debug)]
pub struct LeaseHealth {
    renewed: Arc<Mutex<Option<Instant>>>,
    limit: Duration,
    name: String,
}

impl LeaseHealth {
    /// The failure's text when this process leads by a record that is long expired.
    pub fn check(&self) -> Result<(), String> {
        let renewed = *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        match renewed {
            Some(at) if at.elapsed() > self.limit => {
                Err(format!("failed election to renew leadership on lease {}", self.name))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn set(&self, renewed: Option<Instant>) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
    }
}

/// One process that wants to lead.
pub struct Candidate {
    client: Client,
    config: LeaseConfig,
    clock: Clock,
    random: Random,
    recorder: Option<Recorder>,
    health: LeaseHealth,
    began: Instant,
}

enum Trouble {
    Taken(String),
    Failed(String),
}

impl From<ApiError> for Trouble {
    fn from(failure: ApiError) -> Self {
        Self::Failed(failure.to_string())
    }
}

enum Renewal {
    /// The record says we lead; written at this time.
    Done(Instant),
    Stopped,
    Lost(String),
}

// === impl Candidate ===

impl Candidate {
    /// A candidate that has not begun. `client` should have a rate limit of its own (field fault R07).
    pub fn new(client: Client, config: LeaseConfig, clock: Clock, random: Random) -> Self {
        let limit = config.duration + HEALTH_TOLERANCE;
        let health = LeaseHealth { renewed: Arc::default(), limit, name: config.name.clone() };
        Self { client, config, clock, random, recorder: None, health, began: Instant::now() }
    }

    /// Also writes an event on the Lease when it leads.
    #[must_use]
    pub fn announcing(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// The health check of this candidate.
    pub fn health(&self) -> LeaseHealth {
        self.health.clone()
    }

    /// Competes, leads, and gives the Lease back when told to. `state` says [`LeaseState::Leading`] exactly while
    /// this process may work as the leader.
    pub async fn lead(self, state: watch::Sender<LeaseState>, tokens: StopTokens) -> LeaseEnd {
        let mut seen = Seen::default();
        let Some(sent) = self.acquire(&mut seen, &tokens).await else {
            return LeaseEnd::Released;
        };
        if tokens.drain.is_cancelled() || tokens.stop.is_cancelled() {
            self.release(&mut seen, sent).await;
            return LeaseEnd::Released;
        }
        self.announce(&seen);
        state.send_replace(LeaseState::Leading);
        let end = self.hold(&mut seen, sent, &state, &tokens.stop).await;
        self.health.set(None);
        state.send_replace(LeaseState::Standby);
        end
    }

    async fn hold(
        &self,
        seen: &mut Seen,
        sent: Instant,
        state: &watch::Sender<LeaseState>,
        stop: &CancellationToken,
    ) -> LeaseEnd {
        let mut sent = sent;
        loop {
            self.health.set(Some(sent));
            let due = sent + self.config.retry_period;
            let lost_at = sent + self.config.tenure();
            match self.renew(seen, due, lost_at, stop).await {
                Renewal::Done(at) => sent = at,
                Renewal::Lost(reason) => return LeaseEnd::Lost { reason },
                Renewal::Stopped => {
                    // First: from the moment the API server has the release, another one may lead.
                    state.send_replace(LeaseState::Standby);
                    self.release(seen, sent).await;
                    return LeaseEnd::Released;
                }
            }
        }
    }

    /// Renews from `due` on, until it works or `lost_at` has come. A call without an answer is not waited for
    /// alone: half the renew deadline later a second one is sent beside it (a dead connection would else cost the
    /// Lease).
    async fn renew(&self, seen: &mut Seen, due: Instant, lost_at: Instant, stop: &CancellationToken) -> Renewal {
        let mut tries = FuturesUnordered::new();
        let mut next = due;
        let mut why = "the API server did not answer in time".to_owned();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Renewal::Stopped,
                () = sleep_until(lost_at) => return Renewal::Lost(format!("the Lease could not be renewed: {why}")),
                Some(result) = tries.next(), if !tries.is_empty() => match result {
                    Ok((lease, sent)) => {
                        seen.observe(Some(lease), self.local());
                        return Renewal::Done(sent);
                    }
                    Err(Trouble::Taken(holder)) => return Renewal::Lost(format!("the Lease is held by {holder:?} now")),
                    Err(Trouble::Failed(failure)) => {
                        tracing::warn!(lease = %self.config.name, "The Lease could not be renewed yet: {failure}");
                        why = failure;
                        next = next.min(Instant::now() + AFTER_FAILURE.min(self.config.retry_period));
                    }
                },
                () = sleep_until(next) => {
                    tries.push(self.renew_once(seen.clone()));
                    next = Instant::now() + self.config.renew_deadline / 2;
                }
            }
        }
    }

    /// Writes on top of the record we know, as the usual case needs no reading; after a refusal reads first.
    async fn renew_once(&self, mut seen: Seen) -> Result<(Value, Instant), Trouble> {
        match self.write(&seen).await {
            Ok(done) => return Ok(done),
            Err(failure) if is_outdated(&failure) => {}
            Err(failure) => return Err(failure.into()),
        }
        seen.observe(self.read().await?, self.local());
        let holder = seen.holder();
        // An emptied or deleted Lease is nobody's: whoever writes first with this resourceVersion has it.
        if !holder.is_empty() && holder != self.config.identity {
            return Err(Trouble::Taken(holder.to_owned()));
        }
        Ok(self.write(&seen).await?)
    }

    /// Gives the Lease back, as long as it is ours. Failing is no disaster: it expires.
    async fn release(&self, seen: &mut Seen, sent: Instant) {
        if !self.config.release_on_stop {
            return;
        }
        let end = sent + self.config.tenure();
        loop {
            let Some(lease) = seen.released(self.clock.now()) else { return };
            let left = end.saturating_duration_since(Instant::now());
            let Err(failure) = self.put(lease, left).await else { return };
            if Instant::now() >= end {
                tracing::warn!(lease = %self.config.name, "The Lease could not be released, it will expire: {failure}");
                return;
            }
            if !is_outdated(&failure) {
                sleep_until(end.min(Instant::now() + AFTER_FAILURE)).await;
            }
            if let Ok(lease) = self.read().await {
                seen.observe(lease, self.local());
                if seen.holder() != self.config.identity {
                    return;
                }
            }
        }
    }

    /// The Lease as it is; nothing if there is none.
    async fn read(&self) -> Result<Option<Value>, ApiError> {
        match self.within(self.config.renew_deadline).get(&self.config.path()).await {
            Ok(lease) => Ok(Some(lease)),
            Err(failure) if failure.kind == ApiErrorKind::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Writes ourselves into what was `seen`; the answer and the time it was sent.
    async fn write(&self, seen: &Seen) -> Result<(Value, Instant), ApiError> {
        let sent = Instant::now();
        let lease = seen.held(&self.config, self.clock.now());
        let answer = if seen.lease.is_some() {
            self.put(lease, self.config.renew_deadline).await?
        } else {
            self.within(self.config.renew_deadline).create(&self.config.path(), &lease).await?
        };
        Ok((answer, sent))
    }

    async fn put(&self, lease: Value, deadline: Duration) -> Result<Value, ApiError> {
        self.within(deadline).replace(&self.config.path(), &lease).await
    }

    fn within(&self, deadline: Duration) -> Objects {
        Objects::new(self.client.clone()).within(deadline)
    }

    fn announce(&self, seen: &Seen) {
        tracing::info!(lease = %self.config.name, identity = %self.config.identity, "Became leader");
        let Some(recorder) = &self.recorder else { return };
        let lease = Regarding {
            kind: "Lease".to_owned(),
            api_version: "coordination.k8s.io/v1".to_owned(),
            namespace: self.config.namespace.clone(),
            name: self.config.name.clone(),
            uid: seen.metadata("uid").to_owned(),
            resource_version: seen.metadata("resourceVersion").to_owned(),
        };
        recorder.normal(&lease, REASON, &format!("{} became leader", self.config.identity));
    }

    fn local(&self) -> Duration {
        self.began.elapsed()
    }

    fn next_step(&self, seen: &Seen) -> Step {
        seen.step(&self.config, self.local())
    }
}

/// Whether somebody else wrote, made or deleted the record that a write was based on.
fn is_outdated(failure: &ApiError) -> bool {
    matches!(failure.kind, ApiErrorKind::NotFound | ApiErrorKind::Conflict | ApiErrorKind::AlreadyExists)
}
