//! Tells when all caches are filled for the first time.
//!
//! A [`Ready`] is given up by dropping it and cannot be taken back. It is also dropped when its owner is cancelled, so
//! whoever waits looks at the cancellation token as well.

use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Hands out [`Ready`] handles and waits for all of them.
#[derive(Debug, Default)]
pub struct Readiness(TaskTracker);

/// Held until the holder is ready.
#[derive(Debug)]
pub struct Ready(#[allow(dead_code, reason = "dropping it is its use")] TaskTrackerToken);

impl Readiness {
    /// Nothing to wait for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more to wait for.
    pub fn handle(&self) -> Ready {
        Ready(self.0.token())
    }

    /// Waits until every handle is dropped; at once if there is none.
    pub async fn all_ready(&self) {
        self.0.close();
        self.0.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test(flavor = "current_thread")]
    async fn all_are_ready_when_the_last_handle_is_dropped() {
        let readiness = Readiness::new();
        let (first, second) = (readiness.handle(), readiness.handle());
        drop(first);
        assert!(readiness.all_ready().now_or_never().is_none());
        drop(second);
        assert!(readiness.all_ready().now_or_never().is_some());
    }
}
