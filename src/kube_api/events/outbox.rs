//! What waits to be told, merged and limited before anything is sent. Pure: the time comes as an argument.
//!
//! Promises, with client-go's numbers (provisioning.md 11):
//! - an equal event that is still waiting only raises its count, so any number of repeats costs one write;
//! - an event that was written before becomes a patch of its count (the last 4096 are remembered);
//! - from the tenth text of one reason about one object within 600 s on, texts are combined into one event;
//! - per object 25 writes at once, then one per 300 s; what is held back still counts in the next write;
//! - at most [`QUEUE`] events wait, later ones are dropped and counted;
//! - a failed write is tried up to 12 times, 10 s apart, without holding up other objects for that long;
//! - writes about one object keep their order.

use super::note::{Letter, Note};
use super::recent::Recent;
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Events that may wait. 1000 is client-go's queue; with bounded messages that is at most about 2 MiB.
pub const QUEUE: usize = 1000;
/// Objects, reasons and events that are remembered.
const REMEMBERED: usize = 4096;
/// Number of texts from which on they are combined.
const SIMILAR: usize = 10;
/// For how long a text counts as similar.
const SIMILAR_WITHIN: Duration = Duration::from_mins(10);
/// Writes about one object at once.
const BURST: u32 = 25;
/// Time for one more write about an object.
const REFILL: Duration = Duration::from_mins(5);
/// Tries per event.
const TRIES: u32 = 12;
/// Time between two tries of one event.
const BETWEEN_TRIES: Duration = Duration::from_secs(10);
/// The same while the process ends: there are only a few seconds left.
const BETWEEN_LAST_TRIES: Duration = Duration::from_secs(1);
/// Pause of everything after a failed write, so that an API server in trouble is not beaten.
const BREATHER: Duration = Duration::from_secs(1);

/// The time, on the two scales that matter.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// For the stamps in events.
    pub wall: Timestamp,
    /// For waiting: time since some fixed moment, never set back.
    pub local: Duration,
}

/// What became of a new event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It waits on its own.
    Waiting,
    /// It raised the count of one that waits.
    Merged,
    /// There was no room.
    Dropped,
}

/// What to do next.
#[derive(Debug)]
pub enum Next {
    /// Write this one and tell [`Outbox::finished`].
    Send(Box<Letter>),
    /// Nothing before this time ([`Now::local`]).
    At(Duration),
    /// Nothing until something is recorded or finished.
    Idle,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The event is there.
    Delivered,
    /// The API server does not want it; repeating is useless.
    Refused,
    /// Nobody knows; worth another try.
    Failed,
    /// Not taken: the API server asked to be left alone for this long.
    Busy(Duration),
}

#[derive(Debug)]
struct Entry {
    note: Note,
    object: u64,
    stamp: u64,
    count: u32,
    first: Timestamp,
    last: Timestamp,
    tries: u32,
    due: Duration,
    sending: Option<Sending>,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    count: u32,
    total: u32,
    stamp: u64,
    first: Timestamp,
}

/// An event that was counted before.
#[derive(Clone, Copy, Debug)]
struct Known {
    stamp: u64,
    first: Timestamp,
    count: u32,
    /// Whether it was written, or only held back by the spam limit.
    written: bool,
}

#[derive(Debug)]
struct Similar {
    texts: VecDeque<u64>,
    last: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u32,
    since: Duration,
}

/// The waiting events and the memory of earlier ones.
#[derive(Debug)]
pub struct Outbox {
    entries: BTreeMap<u64, Entry>,
    order: VecDeque<u64>,
    busy: BTreeSet<u64>,
    known: Recent<Known>,
    similar: Recent<Similar>,
    buckets: Recent<Bucket>,
    hold: Duration,
    draining: bool,
}

// === impl Outbox ===

impl Default for Outbox {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            order: VecDeque::new(),
            busy: BTreeSet::new(),
            known: Recent::new(REMEMBERED),
            similar: Recent::new(REMEMBERED),
            buckets: Recent::new(REMEMBERED),
            hold: Duration::ZERO,
            draining: false,
        }
    }
}

impl Outbox {
    /// Takes in one event. `stamp` becomes the number in its name if it is written as a new object.
    pub fn record(&mut self, note: Note, stamp: u64, now: Now) -> Recorded {
        let (key, note) = self.combine(note, now.local);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.count = entry.count.saturating_add(1);
            entry.last = now.wall;
            entry.note = note;
            return Recorded::Merged;
        }
        if self.entries.len() >= QUEUE {
            return Recorded::Dropped;
        }
        let object = note.object_key();
        let (first, last, due) = (now.wall, now.wall, Duration::ZERO);
        self.entries.insert(key, Entry { note, object, stamp, count: 1, first, last, tries: 0, due, sending: None });
        self.order.push_back(key);
        Recorded::Waiting
    }

    /// The next write. Call again after each answer: several writes (about different objects) may be under way.
    pub fn next(&mut self, now: Now) -> Next {
        if self.order.is_empty() {
            return Next::Idle;
        }
        if now.local < self.hold {
            return Next::At(self.hold);
        }
        let mut earliest: Option<Duration> = None;
        let mut place = 0;
        while let Some(&key) = self.order.get(place) {
            let Some(entry) = self.entries.get(&key) else {
                self.order.remove(place);
                continue;
            };
            if entry.due > now.local {
                earliest = Some(earliest.map_or(entry.due, |other| other.min(entry.due)));
                place += 1;
            } else if self.busy.contains(&entry.object) {
                place += 1;
            } else {
                self.order.remove(place);
                if let Some(letter) = self.letter(key, now) {
                    return Next::Send(Box::new(letter));
                }
            }
        }
        earliest.map_or(Next::Idle, Next::At)
    }

    /// Takes in how a write ended. Returns how many events are lost by it.
    pub fn finished(&mut self, key: u64, outcome: Outcome, now: Now) -> u32 {
        let Some(entry) = self.entries.get_mut(&key) else { return 0 };
        let Some(sent) = entry.sending.take() else { return 0 };
        self.busy.remove(&entry.object);
        match outcome {
            Outcome::Delivered => {
                self.known.put(key, Known { stamp: sent.stamp, first: sent.first, count: sent.total, written: true });
                self.settle(key, sent.count, now);
                0
            }
            Outcome::Refused => {
                self.settle(key, sent.count, now);
                sent.count
            }
            Outcome::Failed => self.put_off(key, Duration::ZERO, now),
            Outcome::Busy(wait) => self.put_off(key, wait.min(BETWEEN_TRIES * TRIES), now),
        }
    }

    /// From now on failed writes are repeated sooner: the process is about to end.
    pub fn drain(&mut self) {
        self.draining = true;
        for entry in self.entries.values_mut() {
            entry.due = Duration::ZERO;
        }
    }

    /// Number of events not yet delivered, repeats included.
    pub fn waiting(&self) -> u64 {
        self.entries.values().map(|entry| u64::from(entry.count)).sum()
    }

    /// Number of all entries of any kind: at most [`QUEUE`] and three times what is remembered.
    pub fn entries(&self) -> usize {
        self.entries.len() + self.known.entries() + self.similar.entries() + self.buckets.entries()
    }

    /// The key an event waits under, and its text: its own, or those of the combined event.
    fn combine(&mut self, note: Note, now: Duration) -> (u64, Note) {
        let similar_key = note.similar_key();
        let text = note.message_key();
        let mut texts = match self.similar.get(similar_key) {
            Some(similar) if now.saturating_sub(similar.last) <= SIMILAR_WITHIN => std::mem::take(&mut similar.texts),
            Some(_) | None => VecDeque::new(),
        };
        if !texts.contains(&text) {
            texts.push_back(text);
        }
        let combined = texts.len() >= SIMILAR;
        if combined {
            texts.pop_front();
        }
        self.similar.put(similar_key, Similar { texts, last: now });
        if combined { (similar_key, note.combined()) } else { (note.equal_key(), note) }
    }

    /// The letter for a waiting event, or nothing if its object has used up its writes.
    fn letter(&mut self, key: u64, now: Now) -> Option<Letter> {
        let entry = self.entries.get_mut(&key)?;
        let known = self.known.get(key).copied();
        let (stamp, first, before) = known.map_or((entry.stamp, entry.first, 0), |k| (k.stamp, k.first, k.count));
        let total = entry.count.saturating_add(before);
        if entry.tries == 0 && !take_token(&mut self.buckets, entry.object, now.local) {
            let written = known.is_some_and(|known| known.written);
            self.known.put(key, Known { stamp, first, count: total, written });
            self.entries.remove(&key);
            return None;
        }
        entry.sending = Some(Sending { count: entry.count, total, stamp, first });
        self.busy.insert(entry.object);
        Some(Letter {
            key,
            name: entry.note.event_name(stamp),
            note: entry.note.clone(),
            count: total,
            first,
            last: entry.last,
            exists: known.is_some_and(|known| known.written),
            tries: entry.tries,
        })
    }

    /// What came in while the write was under way waits for a write of its own.
    fn settle(&mut self, key: u64, sent: u32, now: Now) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        entry.count = entry.count.saturating_sub(sent);
        if entry.count == 0 {
            self.entries.remove(&key);
            return;
        }
        entry.tries = 0;
        entry.due = now.local;
        entry.first = entry.last;
        self.order.push_back(key);
    }

    /// Another try later: all wait for at least `wait`.
    fn put_off(&mut self, key: u64, wait: Duration, now: Now) -> u32 {
        self.hold = self.hold.max(now.local + wait.max(BREATHER));
        let Some(entry) = self.entries.get_mut(&key) else { return 0 };
        entry.tries += 1;
        if entry.tries >= TRIES {
            let lost = entry.count;
            self.entries.remove(&key);
            return lost;
        }
        entry.due = now.local + wait.max(if self.draining { BETWEEN_LAST_TRIES } else { BETWEEN_TRIES });
        self.order.push_back(key);
        0
    }
}

/// Takes one write of an object's allowance.
fn take_token(buckets: &mut Recent<Bucket>, object: u64, now: Duration) -> bool {
    let mut bucket = buckets.get(object).copied().unwrap_or(Bucket { tokens: BURST, since: now });
    let earned = now.saturating_sub(bucket.since).as_nanos() / REFILL.as_nanos();
    let earned = u32::try_from(earned).unwrap_or(u32::MAX);
    if earned > 0 {
        bucket.tokens = bucket.tokens.saturating_add(earned).min(BURST);
        bucket.since = if bucket.tokens == BURST { now } else { bucket.since + REFILL * earned };
    }
    if bucket.tokens == BURST {
        bucket.since = now;
    }
    let allowed = bucket.tokens > 0;
    bucket.tokens -= u32::from(allowed);
    buckets.put(object, bucket);
    allowed
}
