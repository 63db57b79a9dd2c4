//! The driver's socket: it can be away for a while, and break under calls, while the storage behind goes on.

use super::cable::Side;
use crate::signal::Signal;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Breaks the connection of the next calls that match.
#[derive(Clone, Debug)]
pub struct Break {
    /// Method without its service.
    pub method: &'static str,
    /// Only calls whose subject contains this; empty = all.
    pub subject: String,
    /// How many calls it hits.
    pub times: u32,
    /// Whether the driver hears of them.
    pub side: Side,
}

/// What is changed in an OK answer of `CreateVolume`: the driver's own mistakes and peculiarities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    /// It tells this size.
    Size(i64),
    /// It does not confirm the content source.
    NoSource,
    /// It names no volume.
    NoVolume,
}

/// The driver's end, shared by all sidecars.
#[derive(Clone, Default)]
pub struct DriverEnd(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    deaths: Deaths,
}

/// How often the driver died.
struct Deaths(Signal<u64>);

impl Default for Deaths {
    fn default() -> Self {
        Self(Signal::new(0))
    }
}

#[derive(Default)]
struct State {
    away_until: Option<Instant>,
    breaks: Vec<Break>,
    twists: VecDeque<Twist>,
}

impl DriverEnd {
    /// The driver dies: calls under way break, and for `away` nobody answers. What was begun goes on behind it.
    pub fn restart(&self, away: Duration) {
        self.state().away_until = Some(Instant::now() + away);
        self.0.deaths.0.change(|deaths| *deaths += 1);
    }

    /// Breaks connections.
    pub fn break_next(&self, what: Break) {
        self.state().breaks.push(what);
    }

    /// Changes the next OK answer of `CreateVolume` that has no change yet.
    pub fn twist_next(&self, twist: Twist) {
        self.state().twists.push_back(twist);
    }

    /// Takes back every break that has not happened yet; a driver that is away comes back when it was to.
    pub fn clear(&self) {
        self.state().breaks.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One sidecar's connection.
#[derive(Clone)]
pub(super) struct Socket {
    end: DriverEnd,
    own: Arc<Own>,
}

struct Own {
    broken: Mutex<bool>,
    losses: watch::Sender<u64>,
}

impl Socket {
    pub(super) fn to(end: &DriverEnd) -> Self {
        Self { end: end.clone(), own: Arc::new(Own { broken: Mutex::new(false), losses: watch::Sender::new(0) }) }
    }

    /// Counts connections that were lost and made again.
    pub(super) fn losses(&self) -> watch::Receiver<u64> {
        self.own.losses.subscribe()
    }

    /// How this call is cut, if it is; uses up a matching break.
    pub(super) fn cuts(&self, method: &str, subject: &str) -> Option<Side> {
        let mut state = self.end.state();
        let hit = state
            .breaks
            .iter_mut()
            .find(|one| one.times > 0 && one.method == method && subject.contains(&one.subject))?;
        hit.times -= 1;
        Some(hit.side)
    }

    /// Whether somebody answers. The first success after a loss is counted.
    pub(super) fn dial(&self) -> bool {
        if self.end.state().away_until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        let was_broken = std::mem::take(&mut *self.own.broken.lock().unwrap_or_else(PoisonError::into_inner));
        if was_broken {
            self.own.losses.send_modify(|losses| *losses += 1);
        }
        true
    }

    /// What to change in this answer; uses it up.
    pub(super) fn twist(&self, method: &str, code: i32) -> Option<Twist> {
        if method == "CreateVolume" && code == 0 { self.end.state().twists.pop_front() } else { None }
    }

    /// The connection is gone.
    pub(super) fn broke(&self) {
        *self.own.broken.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// The outcome, unless the driver dies first.
    pub(super) async fn connected<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut deaths = self.end.0.deaths.0.subscribe();
        tokio::select! {
            biased;
            outcome = work => Some(outcome),
            () = deaths.changed() => None,
        }
    }
}
