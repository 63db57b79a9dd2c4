//! Watches.
//!
//! Promises:
//! - after the state it started from, a watch shows every change once and in order, turned by the selection into
//!   ADDED, MODIFIED or DELETED;
//! - a watch from a forgotten revision gets one ERROR event with a 410 status and ends;
//! - a streaming list sends the state as ADDED events and closes it with a bookmark that carries
//!   `k8s.io/initial-events-end`;
//! - with bookmarks, one comes each minute and one shortly before the end.
//!
//! Faults reach it here: frozen watches hold back, cut watches break, some events get lost.

use super::ApiServer;
use super::faults::Call;
use super::listing::{list_options_error, parse_version, too_large};
use super::refusal::Refusal;
use super::resources::Resource;
use super::selectors::Selection;
use super::store::{Change, Store};
use super::world::set_meta;
use crate::signal::Listener;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// The last bookmark comes so long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// A watch without a limit of its own ends after this time and up to as much again.
const SHORTEST_DEFAULT: Duration = Duration::from_mins(30);

/// The query of a watch.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// `resourceVersion`; empty or `0` starts from the current state.
    pub version: String,
    /// `resourceVersionMatch`.
    pub version_match: String,
    /// `sendInitialEvents`.
    pub initial_events: Option<bool>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `timeoutSeconds`.
    pub timeout: Option<Duration>,
    /// Show the initial state of so many revisions ago (a fault).
    pub stale_by: u64,
}

/// What kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// New to the selection.
    Added,
    /// Changed inside the selection.
    Modified,
    /// Gone from the selection.
    Deleted,
    /// Nothing but a revision.
    Bookmark,
    /// The watch ends with this status.
    Error,
}

impl EventKind {
    /// The text on the wire.
    pub fn text(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its kind.
    pub kind: EventKind,
    /// The object, bookmark or status.
    pub object: Arc<Value>,
}

/// How a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As planned: time-out, or after an error event.
    Orderly,
    /// Cut by a fault.
    Cut,
}

/// An open watch.
#[derive(Debug)]
pub struct Watch {
    server: ApiServer,
    resource: &'static Resource,
    selection: Selection,
    call: Call,
    bookmarks: bool,
    ready: VecDeque<Event>,
    cursor: u64,
    bookmark_at: Instant,
    end_at: Instant,
    cut_mark: u64,
    ended: Option<End>,
    changes: Listener<u64>,
    faults: Listener<u64>,
}

impl Watch {
    /// Opens a watch.
    pub fn open(
        server: &ApiServer,
        resource: &'static Resource,
        selection: Selection,
        options: &WatchOptions,
        call: Call,
    ) -> Result<Self, Refusal> {
        let mut world = server.world();
        check_options(options, world.settings.watch_list)?;
        let asked = parse_version(&options.version)?;
        let with_state = options.initial_events.unwrap_or(asked == 0);
        if with_state && asked > world.store.revision() {
            return Err(too_large(asked, world.store.revision()));
        }
        let changes = world.store.subscribe(resource);
        let timeout =
            options.timeout.unwrap_or_else(|| SHORTEST_DEFAULT + world.random.duration_below(SHORTEST_DEFAULT));
        let now = Instant::now();
        let mut opened = Self {
            server: server.clone(),
            resource,
            selection,
            call,
            bookmarks: options.bookmarks,
            ready: VecDeque::new(),
            cursor: asked,
            bookmark_at: first_bookmark(now, timeout),
            end_at: now + timeout,
            cut_mark: server.faults().cut_mark(),
            ended: None,
            changes,
            faults: server.faults().subscribe(),
        };
        if with_state {
            opened.show_state(&world.store, asked, options);
        } else if asked == 0 {
            opened.cursor = world.store.revision();
        }
        Ok(opened)
    }

    /// The next event, or how the watch ended.
    pub async fn next(&mut self) -> Result<Event, End> {
        loop {
            if self.ended != Some(End::Cut) && self.server.faults().is_cut(&self.call, self.cut_mark) {
                self.ended = Some(End::Cut);
            }
            if self.ended == Some(End::Cut) {
                return Err(End::Cut);
            }
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if let Some(end) = self.ended {
                return Err(end);
            }
            let frozen = self.server.faults().is_frozen(&self.call);
            if !frozen && self.collect() {
                continue;
            }
            self.wait(frozen).await;
        }
    }

    /// The event that is there already, if any; never waits.
    pub fn try_next(&mut self) -> Option<Event> {
        if self.ready.is_empty() && self.ended.is_none() && !self.server.faults().is_frozen(&self.call) {
            self.collect();
        }
        self.ready.pop_front()
    }

    fn show_state(&mut self, store: &Store, asked: u64, options: &WatchOptions) {
        let now = store.revision();
        let oldest = store.oldest(self.resource).max(1);
        // "Not older than" holds for the initial state even when it lags.
        let shown = now.saturating_sub(options.stale_by).max(oldest).max(asked.min(now));
        let objects = store.objects_at(self.resource, shown).unwrap_or_default();
        let taken = objects.values().filter(|object| self.selection.takes(object));
        self.ready.extend(taken.map(|object| Event { kind: EventKind::Added, object: Arc::clone(object) }));
        self.cursor = shown;
        if options.initial_events == Some(true) && options.bookmarks {
            let mut bookmark = self.bookmark(shown);
            if let Some(metadata) = bookmark.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("annotations".into(), json!({"k8s.io/initial-events-end": "true"}));
            }
            self.ready.push_back(Event { kind: EventKind::Bookmark, object: Arc::new(bookmark) });
        }
    }

    /// Moves new changes into the queue; true if any event or an end came of it.
    fn collect(&mut self) -> bool {
        self.changes.mark_unchanged();
        let found = self.server.world().store.changes_after(self.resource, self.cursor);
        let changes = match found {
            Ok(changes) => changes,
            Err(gone) => {
                let status = Refusal::too_old(self.cursor, gone.oldest).to_status();
                self.ready.push_back(Event { kind: EventKind::Error, object: Arc::new(status) });
                self.ended = Some(End::Orderly);
                return true;
            }
        };
        for change in changes {
            self.cursor = change.revision;
            if let Some(event) = self.turn(&change)
                && !self.server.faults().loses_event(&self.call)
            {
                self.ready.push_back(event);
            }
        }
        !self.ready.is_empty()
    }

    fn turn(&self, change: &Change) -> Option<Event> {
        let before = change.before.as_ref().is_some_and(|object| self.selection.takes(object));
        let after = !change.deleted && self.selection.takes(&change.object);
        let kind = match (before, after) {
            (false, true) => EventKind::Added,
            (true, true) => EventKind::Modified,
            (true, false) => EventKind::Deleted,
            (false, false) => return None,
        };
        let object = match (&change.before, kind) {
            // What leaves the selection is shown as it was, with the revision of the change.
            (Some(before), EventKind::Deleted) if !change.deleted => Arc::new(at_revision(before, change.revision)),
            _ => Arc::clone(&change.object),
        };
        Some(Event { kind, object })
    }

    async fn wait(&mut self, frozen: bool) {
        let bookmark_at = if self.bookmarks && !frozen { self.bookmark_at } else { self.end_at };
        tokio::select! {
            biased;
            () = self.faults.changed() => {}
            () = self.changes.changed(), if !frozen => {}
            () = tokio::time::sleep_until(self.end_at) => self.ended = Some(End::Orderly),
            () = tokio::time::sleep_until(bookmark_at) => self.send_bookmark(),
        }
    }

    fn send_bookmark(&mut self) {
        let world = self.server.world();
        if world.store.changes_after(self.resource, self.cursor).map_or(true, |changes| !changes.is_empty()) {
            // Events that came in the meantime go first; the bookmark stays due.
            drop(world);
            self.changes.mark_changed();
            return;
        }
        let revision = world.store.revision();
        drop(world);
        let object = Arc::new(self.bookmark(revision));
        self.ready.push_back(Event { kind: EventKind::Bookmark, object });
        self.cursor = self.cursor.max(revision);
        let next = Instant::now() + BOOKMARK_EVERY;
        let last = self.end_at.checked_sub(BOOKMARK_BEFORE_END).unwrap_or(self.end_at);
        self.bookmark_at = match (self.bookmark_at < last, next < last) {
            (true, true) => next,
            (true, false) => last,
            (false, _) => self.end_at + BOOKMARK_EVERY,
        };
    }

    fn bookmark(&self, revision: u64) -> Value {
        json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version(),
            "metadata": {"resourceVersion": revision.to_string()},
        })
    }
}

/// A watch too short for the last bookmark gets none.
fn first_bookmark(now: Instant, timeout: Duration) -> Instant {
    match timeout.checked_sub(BOOKMARK_BEFORE_END).filter(|rest| !rest.is_zero()) {
        Some(rest) => now + BOOKMARK_EVERY.min(rest),
        None => now + timeout + BOOKMARK_EVERY,
    }
}

fn at_revision(object: &Value, revision: u64) -> Value {
    let mut object = object.clone();
    set_meta(&mut object, "resourceVersion", Some(json!(revision.to_string())));
    object
}

fn check_options(options: &WatchOptions, watch_list: bool) -> Result<(), Refusal> {
    let forbidden =
        |field: &str, why: &str| Err(list_options_error("FieldValueForbidden", format!("Forbidden: {why}"), field));
    match (options.initial_events, options.version_match.as_str()) {
        (Some(_), "NotOlderThan") if !watch_list => forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
        ),
        (Some(_), "NotOlderThan") | (None, "") => Ok(()),
        (Some(_), _) => {
            forbidden("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        }
        (None, _) => forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    }
}
