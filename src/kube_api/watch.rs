//! Follows all objects of a kind, for ever.
//!
//! Promises:
//! - an [`Observer`] hears everything in the order of the stream, from one task; it must not block;
//! - lists come through the watch itself (streaming lists); from a server that refuses them page by page, which is
//!   remembered for the process. Both read the newest state, never a cache of unknown age;
//! - a full list is repeated after a random time between 30 and 60 minutes, after "too old" (410, as an event or as an
//!   answer), and on demand; deletions missed meanwhile show at its end (field-faults.md R13);
//! - no failure makes a hot loop: waits grow to 30 s from our own seeded source, also for streams that end at once, and
//!   start again only after a stream that lasted; `Retry-After` is honoured;
//! - each distinct failure is one log line; a missing right is named;
//! - a peer that died silently is noticed: by TCP keep-alive ([`super::client`]) and, on any transport, because a stream
//!   that says nothing for longer than two bookmarks is opened again where it was;
//! - one object that cannot be read is told and passed over; it does not stop the rest.
//!
//! Memory: one event, or one page, at a time.
//!
//! `kube_runtime::watcher` is not used: a 410 as the answer to a resumed watch makes it ask for the same version for
//! ever, one unreadable object fails each paged list as a whole, streaming lists are read at any age (version 0), and it
//! neither falls back to pages nor relists on demand.

mod feed;
mod observer;
mod pace;
mod pages;
mod ready;

use super::error::{ApiError, ApiErrorKind};
use crate::model::meta::MetaExt;
use crate::random::Random;
use feed::{Event, Feed};
use kube::{Api, Client, Resource};
pub use observer::{Both, Observer};
use pace::Pace;
pub use ready::{Readiness, Ready};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// How long one stream lasts at most; a random minute is added, so that the watches of a process do not end together.
const STREAM_TIME: Duration = Duration::from_secs(290);
/// The server ends a stream itself; if it does not, we do after this.
const END_GRACE: Duration = Duration::from_secs(15);
/// Bookmarks come about once a minute, at most every 75 s: this is two missed ones.
const SILENCE: Duration = Duration::from_secs(160);
/// A streamed list that says nothing for so long will not end; pages will.
const LIST_SILENCE: Duration = Duration::from_mins(1);
/// Earliest and latest time of the next full list.
const RELIST: (Duration, Duration) = (Duration::from_mins(30), Duration::from_hours(1));
/// Objects per page, at most: about half a megabyte of usual volumes with managed fields.
const PAGE_SIZE: u32 = 200;

/// How to watch a kind.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    /// Plural of the kind, for the log: `persistentvolumes`.
    pub resource: &'static str,
    /// Source of all jitter.
    pub random: Random,
    /// Set when the server refused to stream a list; shared by all watches of the process.
    pub pages_only: Arc<AtomicBool>,
    /// Keep a clone to ask for a full list.
    pub resync: Resync,
    /// Earliest and latest time from the end of one full list to the next.
    pub relist: (Duration, Duration),
    /// Objects per page where lists are read in pages.
    pub page_size: u32,
    /// Label selector; empty for all.
    pub labels: String,
}

/// Asks a watch for a full list.
#[derive(Clone, Debug, Default)]
pub struct Resync(Arc<Notify>);

/// State of one watch.
struct Watch<O> {
    client: Client,
    url: String,
    observer: O,
    settings: WatchSettings,
    ready: Option<Ready>,
    pace: Pace,
    /// Where to go on; `None` before a complete list.
    version: Option<String>,
    relist_at: Instant,
    /// The last streamed list did not end; the next one is read in pages.
    page_next: bool,
    /// When the current stream was opened.
    opened: Option<Instant>,
}

/// What a stream's turn brought.
enum Turn {
    /// Go on with the stream.
    Stay,
    /// The stream is of no use any more; open another.
    Leave,
}

// === impl WatchSettings ===

impl WatchSettings {
    /// The usual settings: everything of the kind. `pages_only` is shared: what one watch learns about the server holds
    /// for all.
    pub fn new(resource: &'static str, random: Random, pages_only: Arc<AtomicBool>) -> Self {
        let (resync, labels) = (Resync::default(), String::new());
        Self { resource, random, pages_only, resync, relist: RELIST, page_size: PAGE_SIZE, labels }
    }
}

impl Resync {
    /// Asks for a full list now; asking twice before it begins counts once.
    pub fn request(&self) {
        self.0.notify_one();
    }
}

/// Watches until `stop`. `ready` is dropped when the first list has ended, or with the watch.
pub async fn watch<K, O>(api: Api<K>, observer: O, settings: WatchSettings, ready: Ready, stop: CancellationToken)
where
    K: Resource + DeserializeOwned,
    O: Observer<K>,
{
    let mut watch = Watch {
        url: api.resource_url().to_owned(),
        client: api.into_client(),
        observer,
        pace: Pace::new(settings.resource, settings.random.clone()),
        settings,
        ready: Some(ready),
        version: None,
        relist_at: Instant::now(),
        page_next: false,
        opened: None,
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = watch.run() => {}
    }
}

// === impl Watch ===

impl<O> Watch<O> {
    async fn run<K>(&mut self)
    where
        K: Resource + DeserializeOwned,
        O: Observer<K>,
    {
        loop {
            let outcome = self.round().await;
            let lasted = self.opened.take().map_or(Duration::ZERO, |opened| opened.elapsed());
            match outcome {
                Ok(()) => {}
                Err(error) => {
                    if error.kind == ApiErrorKind::Gone {
                        self.version = None;
                    }
                    self.observer.unavailable(&error);
                    sleep(self.pace.failed(&error, lasted)).await;
                }
            }
        }
    }

    /// One list in pages, or one stream to its end.
    async fn round<K>(&mut self) -> Result<(), ApiError>
    where
        K: Resource + DeserializeOwned,
        O: Observer<K>,
    {
        if self.version.is_some() {
            return self.follow(false).await;
        }
        if self.page_next || self.settings.pages_only.load(Ordering::Relaxed) {
            self.page_next = false;
            return self.list_pages().await;
        }
        match self.follow(true).await {
            // How servers without streaming lists answer (gate WatchList off: 422); pages tell whether it was that.
            Err(error) if matches!(error.kind, ApiErrorKind::BadRequest | ApiErrorKind::Invalid) => {
                if !self.settings.pages_only.swap(true, Ordering::Relaxed) {
                    info!(target: "watch", v = 2, reason = %error, "the API server streams no lists; reading pages");
                }
                Ok(())
            }
            Err(error) => {
                // A list that began and broke off: pages are smaller pieces.
                self.page_next = self.opened.is_some() && self.version.is_none();
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    async fn list_pages<K>(&mut self) -> Result<(), ApiError>
    where
        O: Observer<K>,
        K: DeserializeOwned,
    {
        let mut token = String::new();
        self.observer.list_begins();
        loop {
            let page = pages::read(&self.client, &self.url, &self.settings, &token).await?;
            for object in page.items {
                self.observer.seen(object, false);
            }
            token = page.next;
            if token.is_empty() {
                self.end_list(page.version);
                return Ok(());
            }
        }
    }

    fn end_list<K>(&mut self, version: String)
    where
        O: Observer<K>,
    {
        let (earliest, latest) = self.settings.relist;
        let jitter = self.settings.random.duration_below(latest.saturating_sub(earliest));
        self.relist_at = Instant::now() + earliest + jitter;
        self.version = Some(version);
        self.observer.list_ends();
        self.ready = None;
        self.pace.listed();
    }

    /// Opens a stream and follows it to its end; `listing`: it begins with a list.
    async fn follow<K>(&mut self, mut listing: bool) -> Result<(), ApiError>
    where
        K: Resource + DeserializeOwned,
        O: Observer<K>,
    {
        let time = STREAM_TIME + self.settings.random.duration_below(Duration::from_mins(1));
        let mut feed = Feed::open(&self.client, &self.url, &self.settings, self.version.as_deref(), time).await?;
        let opened = Instant::now();
        self.opened = Some(opened);
        if listing {
            self.observer.list_begins();
        }
        let end = opened + time + END_GRACE;
        loop {
            let now = Instant::now();
            if listing && now >= end {
                return Err(ApiError::new(ApiErrorKind::Deadline, "the streamed list does not end"));
            }
            if !listing && now >= self.relist_at {
                self.version = None;
                return Ok(());
            }
            if now >= end {
                return Ok(());
            }
            let deadline = if listing { now + LIST_SILENCE } else { (now + SILENCE).min(self.relist_at) };
            let resync = self.settings.resync.0.clone();
            let event = tokio::select! {
                biased;
                () = resync.notified(), if !listing => {
                    self.version = None;
                    return Ok(());
                }
                event = feed.next(self.settings.resource) => event?,
                () = sleep_until(deadline.min(end)) => {
                    if listing {
                        return Err(ApiError::new(ApiErrorKind::Deadline, "the streamed list does not go on"));
                    }
                    if Instant::now() < self.relist_at {
                        return Ok(());
                    }
                    continue;
                }
            };
            match self.take(event, &mut listing)? {
                Turn::Stay => {}
                Turn::Leave if listing => {
                    return Err(ApiError::new(ApiErrorKind::Transport, "the stream ended within the list"));
                }
                Turn::Leave if opened.elapsed() < pace::STEADY => {
                    return Err(ApiError::new(ApiErrorKind::Transport, "the server ends the stream at once"));
                }
                Turn::Leave => return Ok(()),
            }
        }
    }

    /// Passes one event on.
    fn take<K>(&mut self, event: Option<Event<K>>, listing: &mut bool) -> Result<Turn, ApiError>
    where
        K: Resource,
        O: Observer<K>,
    {
        let version = match event {
            Some(Event::Added(object) | Event::Modified(object)) => {
                let version = object.meta().version().to_owned();
                self.observer.seen(object, !*listing);
                version
            }
            Some(Event::Deleted(object)) => {
                let version = object.meta().version().to_owned();
                self.observer.gone(object);
                version
            }
            Some(Event::Bookmark(mark)) => {
                let version = mark.version().to_owned();
                if *listing && mark.ends_list() {
                    *listing = false;
                    self.end_list(version.clone());
                }
                version
            }
            Some(Event::PassedOver(version)) => version,
            Some(Event::Error(status)) => return Err(status.into_error()),
            None => return Ok(Turn::Leave),
        };
        // Within a list there is no place to go on from.
        if !*listing && !version.is_empty() {
            self.version = Some(version);
        }
        Ok(Turn::Stay)
    }
}

#[cfg(test)]
mod tests;
