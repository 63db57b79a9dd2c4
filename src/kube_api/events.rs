//! Events: recorded without waiting, written one after the other by a single task.
//!
//! Promises:
//! - recording never waits and never fails; what finds no room is dropped and counted;
//! - each event is also a log line;
//! - writes go through the client it is given (a rate limit of its own), so nothing important waits behind them
//!   (weak point W16 of the Go sidecar: events and volumes shared 5 requests per second);
//! - after the stop signal the task goes on for at most [`DRAIN`], and may also use a client that nobody else needs any
//!   more ([`EventSink::ending_through`]);
//! - an API server that has just started answers 403 until it has read the roles: such events are tried again, until
//!   the right is known to be missing, which is told once.
//!
//! What is merged, combined, held back and repeated is decided in [`outbox`]; names and fields in [`note`].
//! Core `v1` events, because the usual role grants no others.

pub mod note;
pub mod outbox;
mod recent;
#[cfg(test)]
mod tests;

pub use note::{Regarding, Severity};

use super::error::{ApiError, ApiErrorKind, PASSING_REFUSALS};
use super::objects::{Objects, Patch, Path};
use crate::clock::Clock;
use crate::random::Random;
use futures::stream::{FuturesUnordered, StreamExt};
use kube::Client;
use note::{Letter, Note};
use outbox::{Next, Now, Outbox, Outcome, Recorded};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// For how long undelivered events are still sent after the stop signal.
pub const DRAIN: Duration = Duration::from_secs(15);
/// Longest wait for one write, the wait in the client's rate limit included.
const DEADLINE: Duration = Duration::from_secs(30);
/// Writes under way at once, each about another object: one slow answer does not hold up the others.
const PARALLEL: usize = 4;
/// Spread of the number in an event's name, in nanoseconds: two replicas may speak about one object at once.
const STAMP_SPREAD: u64 = 1 << 20;

/// Learns of lost events.
pub trait EventObserver: Send + Sync {
    /// So many events will never be seen by anybody.
    fn events_dropped(&self, count: u64);
}

/// Nobody wants to know.
impl EventObserver for () {
    fn events_dropped(&self, _count: u64) {}
}

struct Shared {
    outbox: Mutex<Outbox>,
    news: Notify,
    clock: Clock,
    random: Random,
    began: Instant,
    observer: Arc<dyn EventObserver>,
}

/// Takes events from anywhere in the process; cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    component: Arc<str>,
}

/// The task that writes what was recorded.
pub struct EventSink {
    shared: Arc<Shared>,
    client: Client,
    /// For the end, see [`EventSink::ending_through`].
    spare: Option<Client>,
    /// The right is missing, as far as is known: told once, not per event.
    told_missing_right: AtomicBool,
}

/// A recorder that speaks as `component` and the task that has to run for it.
pub fn recorder(
    client: Client,
    component: &str,
    clock: Clock,
    random: Random,
    observer: Arc<dyn EventObserver>,
) -> (Recorder, EventSink) {
    let shared = Arc::new(Shared {
        outbox: Mutex::default(),
        news: Notify::new(),
        clock,
        random,
        began: Instant::now(),
        observer,
    });
    (
        Recorder { shared: Arc::clone(&shared), component: component.into() },
        EventSink { shared, client, spare: None, told_missing_right: AtomicBool::new(false) },
    )
}

// === impl Shared ===

impl Shared {
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Now {
        Now { wall: self.clock.now(), local: self.began.elapsed() }
    }

    fn lost(&self, count: u64) {
        if count > 0 {
            self.observer.events_dropped(count);
        }
    }
}

// === impl Recorder ===

impl Recorder {
    /// The same queue under another name: Lease and populator events do not carry the main component.
    #[must_use]
    pub fn speaking_as(&self, component: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), component: component.into() }
    }

    /// How many events wait or are remembered.
    pub fn entries(&self) -> usize {
        self.shared.outbox().entries()
    }

    /// Records the expected course.
    pub fn normal(&self, regarding: &Regarding, reason: &'static str, message: &str) {
        self.record(regarding, Severity::Normal, reason, message);
    }

    /// Records something people should look at.
    pub fn warning(&self, regarding: &Regarding, reason: &'static str, message: &str) {
        self.record(regarding, Severity::Warning, reason, message);
    }

    fn record(&self, regarding: &Regarding, severity: Severity, reason: &'static str, message: &str) {
        tracing::info!(
            object = %display_name(regarding),
            kind = %regarding.kind,
            apiVersion = %regarding.api_version,
            r#type = severity.as_str(),
            reason,
            note = message,
            "Event occurred"
        );
        let note = Note::new(Arc::clone(&self.component), regarding.clone(), severity, reason, message);
        let now = self.shared.now();
        let nanos = u64::try_from(now.wall.as_nanosecond()).unwrap_or_default();
        let stamp = nanos.wrapping_add(self.shared.random.below(STAMP_SPREAD));
        let fate = self.shared.outbox().record(note, stamp, now);
        match fate {
            Recorded::Waiting => self.shared.news.notify_one(),
            Recorded::Merged => {}
            Recorded::Dropped => self.shared.lost(1),
        }
    }
}

fn display_name(regarding: &Regarding) -> String {
    if regarding.namespace.is_empty() {
        regarding.name.clone()
    } else {
        format!("{}/{}", regarding.namespace, regarding.name)
    }
}

// === impl EventSink ===

impl EventSink {
    /// After the stop signal events go through this client as well: the calls that it was for have ended, so its rate
    /// limit is free.
    #[must_use]
    pub fn ending_through(mut self, spare: Client) -> Self {
        self.spare = Some(spare);
        self
    }

    /// Writes until `cancel`, then what is left, for at most [`DRAIN`]. Cancel it after everybody who records.
    pub async fn run(self, cancel: CancellationToken) {
        let shared = &*self.shared;
        let mut under_way = FuturesUnordered::new();
        let mut end: Option<Instant> = None;
        // Writes under way through our own client and through the spare one.
        let mut through = [0u32; 2];
        loop {
            let mut wake = None;
            while under_way.len() < PARALLEL {
                let next = shared.outbox().next(shared.now());
                match next {
                    Next::Send(letter) => {
                        let spare = self.spare.as_ref().filter(|_| end.is_some() && through[1] < through[0]);
                        through[usize::from(spare.is_some())] += 1;
                        under_way.push(self.write(letter, spare));
                    }
                    Next::At(at) => {
                        wake = Some(shared.began + at);
                        break;
                    }
                    Next::Idle => break,
                }
            }
            if end.is_some() && under_way.is_empty() && wake.is_none() {
                return;
            }
            let far = Instant::now() + DEADLINE;
            tokio::select! {
                biased;
                () = cancel.cancelled(), if end.is_none() => {
                    end = Some(Instant::now() + DRAIN);
                    shared.outbox().drain();
                }
                () = sleep_until(end.unwrap_or(far)), if end.is_some() => break,
                Some((key, outcome, spare)) = under_way.next(), if !under_way.is_empty() => {
                    through[usize::from(spare)] -= 1;
                    let lost = shared.outbox().finished(key, outcome, shared.now());
                    shared.lost(u64::from(lost));
                }
                () = shared.news.notified() => {}
                () = sleep_until(wake.unwrap_or(far)), if wake.is_some() => {}
            }
        }
        let left = shared.outbox().waiting();
        shared.lost(left);
        tracing::warn!(left, "The process ends before all events could be written");
    }

    /// Writes through the spare client, if there is one; says so at the end.
    async fn write(&self, letter: Box<Letter>, spare: Option<&Client>) -> (u64, Outcome, bool) {
        let objects = Objects::new(spare.unwrap_or(&self.client).clone()).within(DEADLINE);
        let events = Path::core("events").namespace(letter.note.regarding.event_namespace());
        if letter.exists {
            let answer =
                objects.patch(&events.clone().name(&letter.name), Patch::Strategic, &letter.patch_body()).await;
            // It has expired since, which is usual after an hour.
            if !matches!(&answer, Err(failure) if failure.kind == ApiErrorKind::NotFound) {
                return (letter.key, self.outcome(&letter, answer), spare.is_some());
            }
        }
        let answer = objects.create(&events, &letter.create_body()).await;
        (letter.key, self.outcome(&letter, answer), spare.is_some())
    }

    /// What an answer means for the event. Refusals are final as in client-go, except those that say "later".
    fn outcome(&self, letter: &Letter, answer: Result<Value, ApiError>) -> Outcome {
        let Err(failure) = answer else { return self.delivered() };
        let object = display_name(&letter.note.regarding);
        let reason = letter.note.reason;
        match failure.kind {
            // The write itself went through when only the answer's text was broken.
            ApiErrorKind::Unreadable => self.delivered(),
            // Ours: the answer to an earlier try was lost.
            ApiErrorKind::AlreadyExists | ApiErrorKind::Conflict => Outcome::Delivered,
            ApiErrorKind::TooManyRequests { .. }
            | ApiErrorKind::Server(_)
            | ApiErrorKind::Deadline
            | ApiErrorKind::Transport => {
                tracing::debug!(%object, reason, "An event is written again later: {failure}");
                failure.kind.busy().map_or(Outcome::Failed, Outcome::Busy)
            }
            // A namespace that is going away takes nothing new.
            ApiErrorKind::Forbidden if failure.message.contains("is being terminated") => {
                tracing::debug!(%object, reason, "An event is lost with its namespace");
                Outcome::Refused
            }
            ApiErrorKind::Forbidden if self.may_pass(letter) => {
                tracing::debug!(%object, reason, "An event is written again later: {failure}");
                Outcome::Failed
            }
            ApiErrorKind::Forbidden if self.told_missing_right.swap(true, Ordering::Relaxed) => Outcome::Refused,
            ApiErrorKind::Forbidden
            | ApiErrorKind::NotFound
            | ApiErrorKind::Gone
            | ApiErrorKind::Invalid
            | ApiErrorKind::Unauthorized
            | ApiErrorKind::BadRequest
            | ApiErrorKind::Other(_) => {
                tracing::warn!(%object, reason, "The API server does not take an event: {failure}");
                Outcome::Refused
            }
        }
    }

    fn delivered(&self) -> Outcome {
        self.told_missing_right.store(false, Ordering::Relaxed);
        Outcome::Delivered
    }

    fn may_pass(&self, letter: &Letter) -> bool {
        letter.tries < PASSING_REFUSALS && !self.told_missing_right.load(Ordering::Relaxed)
    }
}
