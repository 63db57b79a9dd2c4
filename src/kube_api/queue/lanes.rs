//! The due keys of a queue, one line per lane; the lanes take turns. Plain data.
//!
//! Promises:
//! - within a lane, first come, first served; lanes with due keys are served in turn, one key each;
//! - of the slots that are worked on at once the last tenth is only for lanes of which nothing is worked on: one lane
//!   whose work hangs cannot hold every slot;
//! - a lane without due keys and without work costs nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Keys that may hold up each other, but no key of another lane: such as those of one storage class.
pub type Lane = Arc<str>;

/// The reserve is one slot of so many.
const RESERVE: usize = 10;

/// Due keys by lane.
pub(super) struct Lanes<K> {
    lines: BTreeMap<Lane, Line<K>>,
    /// Lanes with due keys, the next one first.
    turn: VecDeque<Lane>,
    due: usize,
    in_work: usize,
}

struct Line<K> {
    /// Due keys in order; the number only grows.
    due: BTreeMap<u64, K>,
    in_work: usize,
}

impl<K> Default for Lanes<K> {
    fn default() -> Self {
        Self { lines: BTreeMap::new(), turn: VecDeque::new(), due: 0, in_work: 0 }
    }
}

impl<K> Lanes<K> {
    /// How many keys are due.
    pub(super) fn due(&self) -> usize {
        self.due
    }

    /// A key of this lane becomes due, behind the others of its lane.
    pub(super) fn push(&mut self, lane: &Lane, place: u64, key: K) {
        let line = self.lines.entry(Arc::clone(lane)).or_insert_with(|| Line { due: BTreeMap::new(), in_work: 0 });
        if line.due.is_empty() {
            self.turn.push_back(Arc::clone(lane));
        }
        self.due += usize::from(line.due.insert(place, key).is_none());
    }

    /// Removes a due key; whether it was there.
    pub(super) fn remove(&mut self, lane: &Lane, place: u64) -> bool {
        let Some(line) = self.lines.get_mut(lane) else { return false };
        if line.due.remove(&place).is_none() {
            return false;
        }
        self.due -= 1;
        if line.due.is_empty() {
            self.turn.retain(|other| other != lane);
        }
        self.tidy(lane);
        true
    }

    /// The key whose turn it is; it counts as work of its lane until [`Lanes::done`]. `slots` is how many keys may be
    /// worked on at once.
    pub(super) fn take(&mut self, slots: usize) -> Option<(Lane, K)> {
        let reserve_only = self.in_work >= slots - slots / RESERVE;
        let place = self.turn.iter().position(|lane| !reserve_only || self.is_idle(lane))?;
        let lane = self.turn.remove(place)?;
        let line = self.lines.get_mut(&lane)?;
        let (_, key) = line.due.pop_first()?;
        line.in_work += 1;
        self.in_work += 1;
        self.due -= 1;
        if !line.due.is_empty() {
            self.turn.push_back(Arc::clone(&lane));
        }
        Some((lane, key))
    }

    /// A key of this lane is not worked on any more.
    pub(super) fn done(&mut self, lane: &Lane) {
        let Some(line) = self.lines.get_mut(lane) else { return };
        line.in_work = line.in_work.saturating_sub(1);
        self.in_work = self.in_work.saturating_sub(1);
        self.tidy(lane);
    }

    fn is_idle(&self, lane: &Lane) -> bool {
        self.lines.get(lane).is_none_or(|line| line.in_work == 0)
    }

    fn tidy(&mut self, lane: &Lane) {
        if self.lines.get(lane).is_some_and(|line| line.due.is_empty() && line.in_work == 0) {
            self.lines.remove(lane);
        }
    }

    /// How many lanes are known.
    pub(super) fn known(&self) -> usize {
        self.lines.len()
    }
}
