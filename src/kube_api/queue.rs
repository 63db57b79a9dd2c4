//! Which key is worked on next, and when a failed one comes back.
//!
//! Promises, modelled on client-go's work queue, one test of each in `queue/tests.rs`:
//! - **fair**: keys come out in the order in which they became due, and where keys have lanes ([`Queue::with_lanes`])
//!   the lanes take turns, so that thousands of keys of one hold up no key of another ([`lanes`]);
//! - **stingy**: a key that is added several times before it is taken comes out once;
//! - **exclusive**: a key is never handed to two workers at once;
//! - **attentive**: a key that is added while it is worked on comes out once more after [`Queue::done`];
//! - **patient**: a key that failed comes back after `base * 2^n`, at most `max`, where n counts its own failures since
//!   the last [`Queue::forget`]; no worker waits for it;
//! - **polite**: a key whose failure was a busy server is not due before the time that the server asked for
//!   ([`Queue::retry_not_before`]), whatever is added meanwhile;
//! - **one appointment per key**: of two delays the earlier wins, and a key added at once needs no appointment, so
//!   whoever works on a key says at its end when to look again;
//! - **forgetful**: [`Queue::drop_key`] leaves nothing of a key, a key without work costs no memory;
//! - **closing**: a closed queue takes nothing more in and drops its appointments; what was due still comes out, then
//!   `None`.
//!
//! Time is tokio's. Not here: what a key means, and how many workers there are.

mod lanes;
mod state;

pub use lanes::Lane;
use state::{LaneOf, State};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How long a key waits after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub base: Duration,
    /// At most.
    pub max: Duration,
}

/// Told what happens in a queue, for metrics (provisioning.md 12.2). Called while the queue is locked: must be quick and
/// must not call the queue.
pub trait QueueObserver: Send + Sync {
    /// A key was added that was not waiting already; now `depth` keys wait.
    fn added(&self, depth: usize);
    /// A key was taken by a worker after it had been due for `waited`; now `depth` keys wait.
    fn taken(&self, waited: Duration, depth: usize);
    /// A worker was done with a key after `worked`; now `depth` keys wait.
    fn finished(&self, worked: Duration, depth: usize);
    /// A waiting key was dropped; now `depth` keys wait.
    fn dropped(&self, depth: usize);
    /// A key was added with a delay or after a failure.
    fn retried(&self);
    /// Called once by [`Queue::new`]: `probe` tells at any time what is being worked on. Keep it for the scrape.
    fn attach(&self, probe: Probe);
}

/// Tells what is being worked on now.
pub type Probe = Box<dyn Fn() -> InWork + Send + Sync>;

/// What is being worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InWork {
    /// Sum over all keys in work of the time since they were taken.
    pub unfinished: Duration,
    /// The longest of these times.
    pub longest: Duration,
}

/// A work queue; clones share it.
pub struct Queue<K>(Arc<Shared<K>>);

struct Shared<K> {
    state: Mutex<State<K>>,
    /// One permit per key that became due.
    due: Notify,
    /// Wakes the one waiter that keeps the time, because the next appointment changed.
    sooner: Notify,
    backoff: Backoff,
    observer: Arc<dyn QueueObserver>,
}

/// Held by the one waiter that keeps the time; hands the duty on when it goes, also when cancelled.
struct Timekeeper<'q, K: Ord + Clone>(&'q Shared<K>);

// === impl Backoff ===

impl Backoff {
    /// The wait after a failure that `failures` others came before: `base * 2^failures`, at most `max`.
    pub fn delay(self, failures: u32) -> Duration {
        2u32.checked_pow(failures).map_or(self.max, |factor| self.base.saturating_mul(factor).min(self.max))
    }
}

/// Nobody listens.
impl QueueObserver for () {
    fn added(&self, _: usize) {}
    fn taken(&self, _: Duration, _: usize) {}
    fn finished(&self, _: Duration, _: usize) {}
    fn dropped(&self, _: usize) {}
    fn retried(&self) {}
    fn attach(&self, _: Probe) {}
}

// === impl Queue ===

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Ord + Clone + Send + 'static> Queue<K> {
    /// An empty queue with one lane.
    pub fn new(backoff: Backoff, observer: Arc<dyn QueueObserver>) -> Self {
        let only = Lane::from("");
        Self::build(backoff, observer, Box::new(move |_| Arc::clone(&only)))
    }

    /// An empty queue whose keys stand in line by lane. `lane_of` is called when a key becomes due, while the queue is
    /// locked: it must be quick and must not call the queue.
    pub fn with_lanes(
        backoff: Backoff,
        observer: Arc<dyn QueueObserver>,
        lane_of: impl Fn(&K) -> Lane + Send + Sync + 'static,
    ) -> Self {
        Self::build(backoff, observer, Box::new(lane_of))
    }

    fn build(backoff: Backoff, observer: Arc<dyn QueueObserver>, lane_of: LaneOf<K>) -> Self {
        let state = Mutex::new(State::new(lane_of));
        let queue = Self(Arc::new(Shared { state, due: Notify::new(), sooner: Notify::new(), backoff, observer }));
        let shared = Arc::downgrade(&queue.0);
        queue.0.observer.attach(Box::new(move || {
            shared.upgrade().map(|shared| shared.lock().in_work(Instant::now())).unwrap_or_default()
        }));
        queue
    }

    /// Makes the key due now.
    pub fn add(&self, key: K) {
        self.0.change(|state, shared, now| {
            if state.add(key, now) {
                shared.observer.added(state.depth());
            }
        });
    }

    /// Makes the key due after `delay`, unless it is due earlier anyway.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.0.change(|state, shared, now| {
            if !state.is_closed() {
                shared.observer.retried();
                shared.schedule(state, key, delay, now);
            }
        });
    }

    /// Counts a failure of the key and makes it due after the wait that belongs to it, which is returned.
    pub fn retry(&self, key: K) -> Duration {
        self.retry_not_before(key, Duration::ZERO)
    }

    /// The same, but not before `wait` is over, whatever is added meanwhile: a busy server asked for it.
    pub fn retry_not_before(&self, key: K, wait: Duration) -> Duration {
        let failures = {
            let mut state = self.0.lock();
            if let Some(until) = Instant::now().checked_add(wait).filter(|_| !wait.is_zero()) {
                state.rest_until(key.clone(), until);
            }
            state.count_failure(key.clone())
        };
        let delay = self.0.backoff.delay(failures).max(wait);
        self.add_after(key, delay);
        delay
    }

    /// Forgets the failures of the key.
    pub fn forget(&self, key: &K) {
        self.0.lock().forget(key);
    }

    /// Failures of the key since it was last forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        self.0.lock().failures(key)
    }

    /// Removes the key with its appointment and failures. A worker that has it is not disturbed, but it will not come
    /// out again for what was added before.
    pub fn drop_key(&self, key: &K) {
        self.0.change(|state, shared, _| {
            if state.drop_key(key) {
                shared.observer.dropped(state.depth());
            }
        });
    }

    /// Takes the key whose turn it is; waits for one. `None` when the queue is closed and empty.
    ///
    /// Dropping the future loses nothing. The key stays with the caller until [`Queue::done`].
    pub async fn next(&self) -> Option<K> {
        self.next_of(usize::MAX).await
    }

    /// The same for callers that work on at most `slots` keys at once: the last tenth of them is left to lanes of which
    /// nothing is worked on.
    pub async fn next_of(&self, slots: usize) -> Option<K> {
        let shared = &*self.0;
        let mut timekeeper = None;
        loop {
            let appointment = {
                let mut state = shared.lock();
                let now = Instant::now();
                shared.wake_due(&mut state, now);
                if let Some((key, since)) = state.take(slots, now) {
                    shared.observer.taken(now - since, state.depth());
                    // `Notify` keeps one permit only: whoever takes a key passes it on while there are more.
                    if state.depth() > 0 {
                        shared.due.notify_one();
                    }
                    return Some(key);
                }
                if state.is_closed() && state.depth() == 0 {
                    return None;
                }
                if timekeeper.is_none() && state.become_timekeeper() {
                    timekeeper = Some(Timekeeper(shared));
                }
                state.next_appointment()
            };
            // A permit that came between the check above and here is kept by `Notify`.
            match (&timekeeper, appointment) {
                (Some(_), Some(at)) => tokio::select! {
                    biased;
                    () = shared.due.notified() => {}
                    () = shared.sooner.notified() => {}
                    () = sleep_until(at) => {}
                },
                (Some(_), None) => tokio::select! {
                    biased;
                    () = shared.due.notified() => {}
                    () = shared.sooner.notified() => {}
                },
                (None, _) => shared.due.notified().await,
            }
        }
    }

    /// Gives back a key taken with [`Queue::next`]; if it was added meanwhile it is due again.
    pub fn done(&self, key: &K) {
        self.0.change(|state, shared, now| {
            if let Some(since) = state.done(key, now) {
                shared.observer.finished(now - since, state.depth());
            }
            // Its lane or its slot may be what a due key waits for.
            if state.depth() > 0 {
                shared.due.notify_one();
            }
        });
    }

    /// Closes the queue, see the promises above.
    pub fn close(&self) {
        self.0.change(|state, _, _| state.close());
        self.0.due.notify_waiters();
        self.0.due.notify_one();
    }

    /// The lane the key would stand in now.
    pub fn lane_of(&self, key: &K) -> Lane {
        self.0.lock().lane_of(key)
    }

    /// Number of all entries of any kind: what this queue costs.
    pub fn entries(&self) -> usize {
        self.0.lock().known()
    }

    /// How many keys are due and wait for a worker.
    pub fn depth(&self) -> usize {
        self.0.lock().depth()
    }
}

// === impl Shared ===

impl<K> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> Shared<K> {
    /// Changes the state. Appointments that have passed come first, so that keys come out in the order they became due
    /// even while all workers are busy.
    fn change(&self, change: impl FnOnce(&mut State<K>, &Self, Instant)) {
        let mut state = self.lock();
        let now = Instant::now();
        self.wake_due(&mut state, now);
        let (before, appointment) = (state.depth(), state.next_appointment());
        change(&mut state, self, now);
        if state.depth() > before {
            self.due.notify_one();
        }
        // Also an add makes appointments: with a key that rests.
        let next = state.next_appointment();
        if next.is_some_and(|next| appointment.is_none_or(|before| next < before)) {
            self.sooner.notify_one();
        }
    }

    fn schedule(&self, state: &mut State<K>, key: K, delay: Duration, now: Instant) {
        // A wait beyond the end of the clock is as good as none.
        let Some(at) = now.checked_add(delay) else { return };
        if delay.is_zero() {
            if state.add(key, now) {
                self.observer.added(state.depth());
            }
        } else {
            state.schedule(key, at);
        }
    }

    /// Makes due what has reached its appointment.
    fn wake_due(&self, state: &mut State<K>, now: Instant) {
        while let Some(at) = state.next_appointment().filter(|at| *at <= now) {
            let before = state.depth();
            if state.keep_appointment(at) {
                self.observer.added(state.depth());
            }
            if state.depth() > before {
                self.due.notify_one();
            }
        }
    }
}

impl<K: Ord + Clone> Drop for Timekeeper<'_, K> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.resign_timekeeper();
        // Somebody else has to keep the time, if somebody waits at all.
        if state.next_appointment().is_some() {
            self.0.due.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
