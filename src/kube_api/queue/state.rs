//! The bookkeeping of a queue: plain data, no waiting, no observers. What the caller passes as `now` never goes back.

use super::InWork;
use super::lanes::{Lane, Lanes};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

/// Keys that are due, at work, waiting for an appointment or remembered for their failures.
pub(super) struct State<K> {
    keys: BTreeMap<K, Key>,
    /// Due keys.
    due: Lanes<K>,
    /// Appointments in order; the number keeps equal ones apart.
    appointments: BTreeMap<(Instant, u64), K>,
    counter: u64,
    closed: bool,
    has_timekeeper: bool,
    /// Which keys stand in line together.
    lane_of: LaneOf<K>,
}

/// Names the lane of a key.
pub(super) type LaneOf<K> = Box<dyn Fn(&K) -> Lane + Send + Sync>;

/// What is known of one key. All empty: the key is not kept.
#[derive(Default)]
struct Key {
    /// Place among the due keys of its lane, and since when.
    due: Option<(Lane, u64, Instant)>,
    /// A worker has it since then; the lane it was taken from.
    in_work: Option<(Lane, Instant)>,
    /// Added while in work, since then.
    again: Option<Instant>,
    appointment: Option<(Instant, u64)>,
    failures: u32,
    /// Not due before, whatever is added: a busy server asked for this time.
    not_before: Option<Instant>,
}

impl Key {
    fn is_empty(&self) -> bool {
        self.due.is_none()
            && self.in_work.is_none()
            && self.again.is_none()
            && self.appointment.is_none()
            && self.failures == 0
            && self.not_before.is_none()
    }

    /// Until when it rests; a time that is over is forgotten.
    fn rests(&mut self, now: Instant) -> Option<Instant> {
        self.not_before = self.not_before.filter(|until| *until > now);
        self.not_before
    }
}

impl<K> State<K> {
    pub(super) fn new(lane_of: LaneOf<K>) -> Self {
        Self {
            keys: BTreeMap::new(),
            due: Lanes::default(),
            appointments: BTreeMap::new(),
            counter: 0,
            closed: false,
            has_timekeeper: false,
            lane_of,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn lane_of(&self, key: &K) -> Lane {
        (self.lane_of)(key)
    }

    pub(super) fn depth(&self) -> usize {
        self.due.due()
    }

    /// Whether the caller is the timekeeper from now on.
    pub(super) fn become_timekeeper(&mut self) -> bool {
        !std::mem::replace(&mut self.has_timekeeper, true)
    }

    pub(super) fn resign_timekeeper(&mut self) {
        self.has_timekeeper = false;
    }

    pub(super) fn next_appointment(&self) -> Option<Instant> {
        self.appointments.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn in_work(&self, now: Instant) -> InWork {
        let mut in_work = InWork::default();
        for (_, since) in self.keys.values().filter_map(|key| key.in_work.as_ref()) {
            let worked = now.saturating_duration_since(*since);
            in_work.unfinished += worked;
            in_work.longest = in_work.longest.max(worked);
        }
        in_work
    }
}

impl<K: Ord + Clone> State<K> {
    /// Makes a key due; false if it was already, or if the queue is closed.
    pub(super) fn add(&mut self, key: K, now: Instant) -> bool {
        !self.closed && self.make_due(key, now)
    }

    fn make_due(&mut self, key: K, now: Instant) -> bool {
        let entry = self.keys.entry(key.clone()).or_default();
        if entry.in_work.is_none()
            && let Some(until) = entry.rests(now)
        {
            self.schedule(key, until);
            return false;
        }
        if let Some(appointment) = entry.appointment.take() {
            self.appointments.remove(&appointment);
        }
        if entry.due.is_some() || entry.again.is_some() {
            return false;
        }
        if entry.in_work.is_some() {
            entry.again = Some(now);
        } else {
            self.counter += 1;
            let lane = (self.lane_of)(&key);
            entry.due = Some((Arc::clone(&lane), self.counter, now));
            self.due.push(&lane, self.counter, key);
        }
        true
    }

    /// Makes an appointment unless the key comes out earlier anyway.
    pub(super) fn schedule(&mut self, key: K, at: Instant) {
        let entry = self.keys.entry(key.clone()).or_default();
        let at = entry.not_before.map_or(at, |until| until.max(at));
        let earlier = entry.appointment.is_some_and(|(planned, _)| planned <= at);
        if entry.due.is_some() || entry.again.is_some() || earlier {
            return;
        }
        if let Some(appointment) = entry.appointment.take() {
            self.appointments.remove(&appointment);
        }
        self.counter += 1;
        entry.appointment = Some((at, self.counter));
        self.appointments.insert((at, self.counter), key);
    }

    /// Whatever is added, the key is not due before this time.
    pub(super) fn rest_until(&mut self, key: K, until: Instant) {
        if !self.closed {
            self.keys.entry(key).or_default().not_before = Some(until);
        }
    }

    /// Makes due the key with the first appointment, which was at `at`; false if it was due already.
    pub(super) fn keep_appointment(&mut self, at: Instant) -> bool {
        self.appointments.pop_first().is_some_and(|(_, key)| {
            if let Some(entry) = self.keys.get_mut(&key) {
                entry.appointment = None;
            }
            self.make_due(key, at)
        })
    }

    /// Counts a failure; returns how many there were before.
    pub(super) fn count_failure(&mut self, key: K) -> u32 {
        if self.closed {
            return self.failures(&key);
        }
        let entry = self.keys.entry(key).or_default();
        let before = entry.failures;
        entry.failures = before.saturating_add(1);
        before
    }

    pub(super) fn failures(&self, key: &K) -> u32 {
        self.keys.get(key).map_or(0, |entry| entry.failures)
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some(entry) = self.keys.get_mut(key) {
            entry.failures = 0;
            entry.not_before = None;
        }
        self.tidy(key);
    }

    /// Removes a key; true if it was due.
    pub(super) fn drop_key(&mut self, key: &K) -> bool {
        let Some(entry) = self.keys.get_mut(key) else { return false };
        let was = std::mem::take(entry);
        entry.in_work = was.in_work;
        if let Some(appointment) = was.appointment {
            self.appointments.remove(&appointment);
        }
        let was_due = was.due.is_some_and(|(lane, place, _)| self.due.remove(&lane, place));
        self.tidy(key);
        was_due
    }

    /// Hands out the due key whose turn it is, with the time since when it was due. `slots`: see [`Lanes::take`].
    pub(super) fn take(&mut self, slots: usize, now: Instant) -> Option<(K, Instant)> {
        let (lane, key) = self.due.take(slots)?;
        let entry = self.keys.entry(key.clone()).or_default();
        let since = entry.due.take().map_or(now, |(_, _, since)| since);
        entry.in_work = Some((lane, now));
        Some((key, since))
    }

    /// Takes a key back; returns since when it was in work, `None` if it was not.
    pub(super) fn done(&mut self, key: &K, now: Instant) -> Option<Instant> {
        let entry = self.keys.get_mut(key)?;
        let (worked_in, since) = entry.in_work.take()?;
        self.due.done(&worked_in);
        if let Some(added) = entry.again.take() {
            if let Some(until) = entry.rests(now) {
                self.schedule(key.clone(), until);
                return Some(since);
            }
            self.counter += 1;
            let lane = (self.lane_of)(key);
            entry.due = Some((Arc::clone(&lane), self.counter, added));
            self.due.push(&lane, self.counter, key.clone());
        }
        self.tidy(key);
        Some(since)
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.appointments.clear();
        for entry in self.keys.values_mut() {
            entry.appointment = None;
            entry.not_before = None;
        }
        self.keys.retain(|_, entry| !entry.is_empty());
    }

    fn tidy(&mut self, key: &K) {
        if self.keys.get(key).is_some_and(Key::is_empty) {
            self.keys.remove(key);
        }
    }

    /// How many keys are known in any way, and lanes.
    pub(super) fn known(&self) -> usize {
        self.keys.len() + self.due.known()
    }
}
