//! Runs a queue's keys, at most so many at once.
//!
//! Idle slots cost nothing: a task exists only while its key is worked on, and a waiting key has none (weak point W27).

use super::limiter::in_lane;
use super::queue::Queue;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Takes keys until `stop`, then waits for the running ones. Dropping the future aborts them.
///
/// `work` must call [`Queue::done`] through its own logic exactly once per key; here that is guaranteed by calling it
/// after the future ends.
pub async fn run<K, W, F>(queue: &Queue<K>, at_once: usize, stop: &CancellationToken, work: W)
where
    K: Ord + Clone + Send + 'static,
    W: Fn(K) -> F,
    F: Future<Output = ()> + Send + 'static,
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
            job.await;
            queue.done(&key);
            drop(slot);
        });
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}
