//! The cable between one sidecar and the world: everything that it does to the world goes through here.
//!
//! A *point* is a moment at which the sidecar waits with something under way: before a request leaves, and at each poll
//! that left it unanswered. Between two points nothing that it does can be seen from outside, so ending it at every
//! point in turn is ending it everywhere.
//!
//! Promises: a dead cable carries nothing any more, from the very poll in which it died; requests that had left are
//! carried out by the other side all the same.

use super::calls::Calls;
use super::trace::Trace;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio_util::sync::CancellationToken;

/// On which side of being carried out a request is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The world never hears of it.
    Before,
    /// It is carried out and its answer is lost.
    After,
}

/// What happens to a sidecar at a counted moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// SIGKILL at this point, counted from 1.
    KillAt(u64),
    /// SIGTERM at this point, counted from 1.
    StopAt(u64),
    /// The connection of this request, counted from 1, breaks.
    Cut(u64, Side),
}

/// The cable; clones are the same one.
#[derive(Clone)]
pub(super) struct Cable(Arc<Inner>);

struct Inner {
    who: String,
    trace: Trace,
    calls: Calls,
    incidents: Vec<Incident>,
    counts: Mutex<Counts>,
    dead: CancellationToken,
    stop: CancellationToken,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    points: u64,
    requests: u64,
}

impl Cable {
    pub(super) fn new(who: &str, trace: &Trace, calls: &Calls, incidents: Vec<Incident>) -> Self {
        Self(Arc::new(Inner {
            who: who.to_owned(),
            trace: trace.clone(),
            calls: calls.clone(),
            incidents,
            counts: Mutex::default(),
            dead: CancellationToken::new(),
            stop: CancellationToken::new(),
        }))
    }

    pub(super) fn who(&self) -> &str {
        &self.0.who
    }

    pub(super) fn trace(&self) -> &Trace {
        &self.0.trace
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.0.calls
    }

    /// Cancelled by SIGTERM.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Cancelled by SIGKILL.
    pub(super) fn dead(&self) -> &CancellationToken {
        &self.0.dead
    }

    /// SIGKILL.
    pub(super) fn die(&self) {
        if !self.0.dead.is_cancelled() {
            self.0.trace.note(&self.0.who, "is killed");
            self.0.dead.cancel();
            self.0.calls.abandon_all(&self.0.who);
        }
    }

    /// SIGTERM.
    pub(super) fn terminate(&self) {
        if !self.0.stop.is_cancelled() {
            self.0.trace.note(&self.0.who, "is asked to stop");
            self.0.stop.cancel();
        }
    }

    /// How many points and requests there were.
    pub(super) fn counted(&self) -> (u64, u64) {
        let counts = *self.counts();
        (counts.points, counts.requests)
    }

    /// A request wants to leave; tells how it is cut, if it is. A dead cable never answers.
    pub(super) async fn leaves(&self) -> Option<Side> {
        self.point();
        if self.0.dead.is_cancelled() {
            std::future::pending::<()>().await;
        }
        let number = {
            let mut counts = self.counts();
            counts.requests += 1;
            counts.requests
        };
        self.0.incidents.iter().find_map(|incident| match incident {
            Incident::Cut(at, side) if *at == number => Some(*side),
            Incident::Cut(..) | Incident::KillAt(_) | Incident::StopAt(_) => None,
        })
    }

    /// Waits for an answer, each fruitless poll being a point.
    pub(super) fn counting<F: Future>(&self, inner: F) -> Counting<F> {
        Counting { cable: self.clone(), inner: Box::pin(inner) }
    }

    fn point(&self) {
        let now = {
            let mut counts = self.counts();
            counts.points += 1;
            counts.points
        };
        for incident in &self.0.incidents {
            match incident {
                Incident::KillAt(at) if *at == now => self.die(),
                Incident::StopAt(at) if *at == now => self.terminate(),
                Incident::KillAt(_) | Incident::StopAt(_) | Incident::Cut(..) => {}
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Cable::counting`].
pub(super) struct Counting<F> {
    cable: Cable,
    inner: Pin<Box<F>>,
}

impl<F: Future> Future for Counting<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.cable.0.dead.is_cancelled() {
            return Poll::Pending;
        }
        match self.inner.as_mut().poll(context) {
            Poll::Pending => {
                self.cable.point();
                Poll::Pending
            }
            Poll::Ready(_) if self.cable.0.dead.is_cancelled() => Poll::Pending,
            ready @ Poll::Ready(_) => ready,
        }
    }
}
