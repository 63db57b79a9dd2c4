//! The driver calls of all sidecars as they saw them: when sent, how ended. The rules about calls are judged by this.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How a call ended for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The driver answered with this gRPC code.
    Code(i32),
    /// The connection broke.
    Broken,
    /// The caller went away or gave up.
    Abandoned,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Which sidecar.
    pub who: String,
    /// Method without its service.
    pub method: String,
    /// Name (`CreateVolume`) or id (`DeleteVolume`) that it is about; else empty.
    pub subject: String,
    /// Digest of the encoded request: equal requests have equal ones.
    pub digest: u64,
    /// When it was sent, since the world began.
    pub sent: Duration,
    /// When and how it ended; `None` while it runs.
    pub end: Option<(Duration, End)>,
}

/// All calls; clones share them.
#[derive(Clone, Debug)]
pub struct Calls {
    began: Instant,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    all: Vec<Called>,
    /// Method and subject to calls under way.
    running: BTreeMap<(String, String), u32>,
    by_method: BTreeMap<String, (u32, u32)>,
    overlaps: Vec<String>,
}

impl Calls {
    /// No calls; time counts from now.
    pub fn begin() -> Self {
        Self { began: Instant::now(), state: Arc::default() }
    }

    /// All calls so far, as they were sent.
    pub fn all(&self) -> Vec<Called> {
        self.state().all.clone()
    }

    /// The calls of one method.
    pub fn of(&self, method: &str) -> Vec<Called> {
        self.state().all.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// Pairs of calls about the same thing that ran at once, which no sidecar may let happen.
    pub fn overlaps(&self) -> Vec<String> {
        self.state().overlaps.clone()
    }

    /// The most calls of a method that ran at once.
    pub fn most_at_once(&self, method: &str) -> u32 {
        self.state().by_method.get(method).map_or(0, |(_, most)| *most)
    }

    /// A call is sent; the guard ends it as abandoned unless told otherwise.
    pub(super) fn sent(&self, who: &str, method: &str, subject: &str, digest: u64) -> Running {
        let sent = self.began.elapsed();
        let mut state = self.state();
        let key = (method.to_owned(), subject.to_owned());
        let running = state.running.entry(key.clone()).or_default();
        *running += 1;
        if *running > 1 && !subject.is_empty() {
            state.overlaps.push(format!("{method} of {subject} by {who} while another one runs"));
        }
        let (now, most) = state.by_method.entry(method.to_owned()).or_default();
        *now += 1;
        *most = (*most).max(*now);
        let called = Called { who: who.into(), method: key.0, subject: key.1, digest, sent, end: None };
        state.all.push(called);
        Running { calls: self.clone(), number: state.all.len() - 1 }
    }

    /// Whatever this sidecar had under way has no caller any more.
    pub(super) fn abandon_all(&self, who: &str) {
        let open: Vec<usize> = {
            let state = self.state();
            let open = state.all.iter().enumerate().filter(|(_, call)| call.who == who && call.end.is_none());
            open.map(|(number, _)| number).collect()
        };
        for number in open {
            self.ended(number, End::Abandoned);
        }
    }

    fn ended(&self, number: usize, how: End) {
        let at = self.began.elapsed();
        let mut state = self.state();
        let Some(call) = state.all.get_mut(number).filter(|call| call.end.is_none()) else { return };
        call.end = Some((at, how));
        let key = (call.method.clone(), call.subject.clone());
        if let Some((now, _)) = state.by_method.get_mut(&key.0) {
            *now -= 1;
        }
        if let Some(running) = state.running.get_mut(&key) {
            *running -= 1;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way.
pub(super) struct Running {
    calls: Calls,
    number: usize,
}

impl Running {
    /// It ended like this.
    pub(super) fn ended(&self, how: End) {
        self.calls.ended(self.number, how);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ended(End::Abandoned);
    }
}
