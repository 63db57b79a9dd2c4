//! A value that wakes whoever waits for its change, in the order in which they began to wait.
//!
//! `tokio::sync::watch` wakes several waiters in an order that it draws from a random source of its own, which no seed
//! of ours reaches: two runs of one seed would differ. Where more than one task waits, this is used instead.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The value; clones share it.
#[derive(Clone, Debug)]
pub struct Signal<T>(Arc<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    /// How often it was set, and what it is.
    state: Mutex<(u64, T)>,
    changed: Notify,
}

/// Waits for changes that it has not seen.
#[derive(Clone, Debug)]
pub struct Listener<T> {
    signal: Signal<T>,
    seen: u64,
}

// === impl Signal ===

impl<T: Clone> Signal<T> {
    /// Starts with a value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(Inner { state: Mutex::new((0, value)), changed: Notify::new() }))
    }

    /// The value now.
    pub fn get(&self) -> T {
        self.state().1.clone()
    }

    /// Replaces it and wakes all who wait, even if it is the same.
    pub fn set(&self, value: T) {
        self.change(|held| *held = value);
    }

    /// Changes it and wakes all who wait.
    pub fn change(&self, change: impl FnOnce(&mut T)) {
        let mut state = self.state();
        state.0 += 1;
        change(&mut state.1);
        drop(state);
        self.0.changed.notify_waiters();
    }

    /// Hears of every change from now on.
    pub fn subscribe(&self) -> Listener<T> {
        Listener { signal: self.clone(), seen: self.state().0 }
    }

    fn state(&self) -> MutexGuard<'_, (u64, T)> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Listener ===

impl<T: Clone> Listener<T> {
    /// Resolves when there is a change that was not seen, which then counts as seen. Can be dropped at any time.
    pub async fn changed(&mut self) {
        let signal = self.signal.clone();
        loop {
            let notified = signal.0.changed.notified();
            tokio::pin!(notified);
            // From here on no change is missed.
            notified.as_mut().enable();
            let now = signal.state().0;
            if now != self.seen {
                self.seen = now;
                return;
            }
            notified.await;
        }
    }

    /// Resolves when the value is as wanted, at once if it is already.
    pub async fn wait_for(&mut self, wanted: impl Fn(&T) -> bool) {
        while !wanted(&self.signal.get()) {
            self.changed().await;
        }
    }

    /// All changes so far count as seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.signal.state().0;
    }

    /// The next [`Self::changed`] resolves at once.
    pub fn mark_changed(&mut self) {
        self.seen = self.signal.state().0.wrapping_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn all_who_wait_are_woken_in_the_order_in_which_they_began() {
        let signal = Signal::new(0);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        for number in 0..20 {
            let (mut listener, order) = (signal.subscribe(), Arc::clone(&order));
            waiting.spawn(async move {
                listener.changed().await;
                order.lock().expect("not poisoned").push(number);
            });
        }
        tokio::task::yield_now().await;
        signal.set(1);
        waiting.join_all().await;
        assert_eq!(*order.lock().expect("not poisoned"), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn change_between_two_waits_is_not_missed_and_is_told_once() {
        let signal = Signal::new(0);
        let mut listener = signal.subscribe();
        signal.set(1);
        signal.set(2);
        listener.changed().await;
        assert!(timeout(Duration::from_secs(1), listener.changed()).await.is_err());
        listener.mark_changed();
        assert!(timeout(Duration::from_secs(1), listener.changed()).await.is_ok());
        listener.wait_for(|value| *value == 2).await;
    }
}
