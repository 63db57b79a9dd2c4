//! Runs a queue's keys, at most so many at once, and gives each back to the queue as its turn says.
//!
//! Idle slots cost nothing: a task exists only while its key is worked on, and a waiting key has none (weak point W27).

use super::error::{ApiError, PASSING_REFUSALS};
use super::limiter::in_lane;
use super::queue::Queue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What happens to a key after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is due until something changes.
    Done,
    /// Try again with backoff.
    Retry,
    /// Look again then; the failure count stays.
    After(Duration),
    /// Try again with backoff, but not before this time is over: the API server asked for it.
    Busy(Duration),
    /// A right is missing, or not known to the API server yet: after a few tries only once in this time.
    Refused(Duration),
}

impl Next {
    /// When to repeat what failed because of the API server.
    pub fn after_failure(error: &ApiError) -> Self {
        error.kind.busy().map_or(Self::Retry, Self::Busy)
    }

    fn settle<K: Ord + Clone + Send + 'static>(self, queue: &Queue<K>, key: K) {
        match self {
            Self::Done => queue.forget(&key),
            Self::Retry => {
                queue.retry(key);
            }
            Self::After(wait) => queue.add_after(key, wait),
            Self::Busy(wait) => {
                queue.retry_not_before(key, wait);
            }
            Self::Refused(_) if queue.failures(&key) < PASSING_REFUSALS => {
                queue.retry(key);
            }
            // Without the right nothing ever changes by trying again soon.
            Self::Refused(pause) => queue.add_after(key, pause),
        }
    }
}

/// Takes keys until `stop`, then waits for the running ones. Dropping the future aborts them.
pub async fn run<K, W, F>(queue: &Queue<K>, at_once: usize, stop: &CancellationToken, work: W)
where
    K: Ord + Clone + Send + 'static,
    W: Fn(K) -> F,
    F: Future<Output = Next> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    loop {
        let slot = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            slot = Arc::clone(&slots).acquire_owned() => slot,
        };
        let Ok(slot) = slot else { break };
        let key = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            key = queue.next_of(at_once) => key,
        };
        let Some(key) = key else { break };
        // The lane is also that of the key's API calls.
        let job = in_lane(queue.lane_of(&key), work(key.clone()));
        let queue = queue.clone();
        running.spawn(async move {
            let next = job.await;
            next.settle(&queue, key.clone());
            queue.done(&key);
            drop(slot);
        });
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}
