//! Follows a kind of object for ever.
//!
//! Promises:
//! - an observer hears of every object in stream order from one task: `list_begins`, `seen`…, `list_ends`, then live
//!   changes; two beginnings in a row are normal;
//! - streaming lists where the server has them, small pages where it has not; what the server refused is remembered for
//!   the process;
//! - no failure makes a hot loop: waits double up to half a minute, with jitter from the one random source;
//! - a full relist every 30 to 60 minutes heals whatever was missed;
//! - each distinct failure is one log line, a missing right is named.
//!
//! The stream itself is `kube`'s watcher, which resumes by resource version and notices silent connections.
//! Not here: what an object means (the rooms) and what is kept of it.

use crate::random::Random;
use futures::{Stream, StreamExt};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{error, info, warn};

/// Objects of one page: small, because a whole page is parsed at once and decides the peak of memory.
const PAGE: u32 = 200;
/// Waits after failures: the first, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A relist comes after this time, plus up to as much again.
const RELIST: Duration = Duration::from_secs(30 * 60);
/// A streaming list that is silent this long is taken for a server that does not know it.
const SILENT_LIST: Duration = Duration::from_secs(30);

/// Told what happens to the objects of one kind.
pub trait Observer<K>: Send {
    /// A list begins; another one may have been cut.
    fn list_begins(&mut self);
    /// The object exists like this. `fresh` = a live change; otherwise it is part of a list, which may be old.
    fn seen(&mut self, object: K, fresh: bool);
    /// The object is gone; this is its last state.
    fn gone(&mut self, object: K);
    /// The list is complete: what was held and not seen in it is gone.
    fn list_ends(&mut self);
}

/// Two observers of one stream.
pub struct Both<A, B>(pub A, pub B);

impl<K: Clone, A: Observer<K>, B: Observer<K>> Observer<K> for Both<A, B> {
    fn list_begins(&mut self) {
        self.0.list_begins();
        self.1.list_begins();
    }

    fn seen(&mut self, object: K, fresh: bool) {
        self.0.seen(object.clone(), fresh);
        self.1.seen(object, fresh);
    }

    fn gone(&mut self, object: K) {
        self.0.gone(object.clone());
        self.1.gone(object);
    }

    fn list_ends(&mut self) {
        self.0.list_ends();
        self.1.list_ends();
    }
}

/// Whether several watches have seen their first list. Each watch holds a handle and drops it then; readiness is never
/// taken back.
#[derive(Default)]
pub struct Readiness(TaskTracker);

/// Held by a watch until its first list is complete.
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

    /// Resolves when every handle is dropped.
    pub async fn all_ready(&self) {
        self.0.close();
        self.0.wait().await;
    }
}

/// How a watch behaves.
#[derive(Clone)]
pub struct WatchSettings {
    resource: &'static str,
    random: Random,
    /// Set when the server refused streaming lists; shared by all watches of the process.
    pages_only: Arc<AtomicBool>,
}

impl WatchSettings {
    /// For a resource by its plural. `pages_only` is shared: what one watch learns about the server holds for all.
    pub fn new(resource: &'static str, random: Random, pages_only: Arc<AtomicBool>) -> Self {
        Self { resource, random, pages_only }
    }
}

/// One watch while it runs.
struct Follow<O> {
    observer: O,
    settings: WatchSettings,
    ready: Option<Ready>,
    /// Between the beginning and the end of a list.
    listing: bool,
    failures: u32,
    told: String,
}

type Events<K> = Pin<Box<dyn Stream<Item = watcher::Result<Event<K>>> + Send>>;

/// Watches until `stop`. The observer's calls come from this task alone.
pub async fn watch<K>(
    api: Api<K>,
    observer: impl Observer<K>,
    settings: WatchSettings,
    ready: Ready,
    stop: CancellationToken,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let mut follow = Follow { observer, settings, ready: Some(ready), listing: true, failures: 0, told: String::new() };
    loop {
        let streaming = !follow.settings.pages_only.load(Ordering::Relaxed);
        let events: Events<K> = Box::pin(watcher::watcher(api.clone(), config(streaming)));
        let relist = Instant::now() + RELIST + follow.settings.random.duration_below(RELIST);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = follow.until(events, streaming, relist) => {}
        }
    }
}

fn config(streaming: bool) -> watcher::Config {
    let config = watcher::Config::default().page_size(PAGE);
    if streaming { config.streaming_lists() } else { config }
}

impl<O> Follow<O> {
    /// Follows one stream until it has to be begun anew.
    async fn until<K>(&mut self, mut events: Events<K>, streaming: bool, relist: Instant)
    where
        O: Observer<K>,
    {
        self.listing = true;
        loop {
            // Only the first list: later ones are proved to work.
            let may_be_silent = streaming && self.listing && self.ready.is_some() && self.failures == 0;
            let event = tokio::select! {
                biased;
                event = next(&mut events, may_be_silent) => event,
                () = sleep_until(relist) => return,
            };
            match event {
                Some(Ok(event)) => self.take(event),
                Some(Err(failure)) => {
                    if streaming && refuses_streaming(&failure) {
                        return self.pages_from_now_on("the API server refuses them");
                    }
                    self.failed(&failure).await;
                }
                None => return self.pages_from_now_on("the list did not end"),
            }
        }
    }

    fn take<K>(&mut self, event: Event<K>)
    where
        O: Observer<K>,
    {
        match event {
            Event::Init => {
                self.listing = true;
                self.observer.list_begins();
                return;
            }
            Event::InitApply(object) => self.observer.seen(object, false),
            Event::InitDone => {
                self.listing = false;
                self.observer.list_ends();
                self.ready = None;
            }
            Event::Apply(object) => self.observer.seen(object, true),
            Event::Delete(object) => self.observer.gone(object),
        }
        if self.failures > 0 {
            info!(target: "watch", resource = self.settings.resource, "watching again");
            self.failures = 0;
            self.told.clear();
        }
    }

    fn pages_from_now_on(&self, why: &str) {
        if !self.settings.pages_only.swap(true, Ordering::Relaxed) {
            info!(target: "watch", v = 2, resource = self.settings.resource, "reading lists in pages instead of streaming them: {why}");
        }
    }

    async fn failed(&mut self, failure: &watcher::Error) {
        let text = with_causes(failure);
        let resource = self.settings.resource;
        if text != self.told {
            match status_code(failure) {
                Some(403) => {
                    error!(target: "watch", resource, error = %text, "cannot watch {resource}: grant get, list and watch on it")
                }
                Some(410) => {
                    info!(target: "watch", v = 2, resource, error = %text, "the watch fell behind; listing again")
                }
                _ => warn!(target: "watch", resource, error = %text, "cannot watch {resource}; trying again"),
            }
            self.told = text;
        }
        let (first, longest) = BACKOFF;
        let wait = first.saturating_mul(1 << self.failures.min(16)).min(longest);
        self.failures = self.failures.saturating_add(1);
        // Between half and the whole, so that many instances do not come back together.
        let wait = wait / 2 + self.settings.random.duration_below(wait / 2);
        tokio::time::sleep(wait).await;
    }
}

/// The next event; `None` = a streaming list has gone silent before its end.
async fn next<K>(events: &mut Events<K>, may_be_silent: bool) -> Option<watcher::Result<Event<K>>> {
    if may_be_silent { timeout(SILENT_LIST, events.next()).await.ok().flatten() } else { events.next().await }
}

/// Servers without streaming lists answer the first watch with 400 or 422 (Kubernetes 1.30 to 1.33 by default).
fn refuses_streaming(failure: &watcher::Error) -> bool {
    matches!(failure, watcher::Error::WatchStartFailed(_)) && matches!(status_code(failure), Some(400 | 422))
}

fn status_code(failure: &watcher::Error) -> Option<u16> {
    match failure {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status.code),
        watcher::Error::WatchError(status) => Some(status.code),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

fn with_causes(failure: &watcher::Error) -> String {
    use std::error::Error;
    let mut text = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
