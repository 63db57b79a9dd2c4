//! A queue in the plainest words, to compare the real one with.

use std::collections::{BTreeMap, BTreeSet};

/// What can happen to a queue; keys are small numbers, times milliseconds.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Add(u8),
    AddAfter(u8, u64),
    Retry(u8),
    Forget(u8),
    Drop(u8),
    Take,
    Done(u8),
    Pass(u64),
    Close,
}

/// The contract again, in the plainest words: lists that are searched from the front.
#[derive(Default)]
pub(super) struct Model {
    now: u64,
    due: Vec<u8>,
    work: BTreeSet<u8>,
    again: BTreeSet<u8>,
    /// Time and key, in the order they were made.
    appointments: Vec<(u64, u8)>,
    pub(super) failures: BTreeMap<u8, u32>,
    closed: bool,
}

impl Model {
    pub(super) fn apply(&mut self, step: &Step) {
        match *step {
            Step::Add(key) => self.add(key),
            Step::AddAfter(key, delay) => self.schedule(key, delay),
            Step::Retry(key) if !self.closed => {
                let failures = self.failures.entry(key).or_default();
                let delay = (10 * 2u64.pow(*failures)).min(500);
                *failures += 1;
                self.schedule(key, delay);
            }
            Step::Forget(key) => drop(self.failures.remove(&key)),
            Step::Drop(key) => {
                self.due.retain(|due| *due != key);
                self.appointments.retain(|(_, with)| *with != key);
                self.again.remove(&key);
                self.failures.remove(&key);
            }
            Step::Done(key) => {
                if self.work.remove(&key) && self.again.remove(&key) {
                    self.due.push(key);
                }
            }
            Step::Pass(time) => {
                let until = self.now + time;
                while let Some(next) = (self.now..=until).find(|at| self.appointments.iter().any(|(due, _)| due == at))
                {
                    self.now = next;
                    let first = self.appointments.iter().position(|(at, _)| *at == next).unwrap();
                    let (_, key) = self.appointments.remove(first);
                    self.add(key);
                }
                self.now = until;
            }
            Step::Close => {
                self.closed = true;
                self.appointments.clear();
            }
            Step::Retry(_) | Step::Take => {}
        }
    }

    pub(super) fn take(&mut self) -> Option<u8> {
        let key = (!self.due.is_empty()).then(|| self.due.remove(0))?;
        self.work.insert(key);
        Some(key)
    }

    fn add(&mut self, key: u8) {
        if self.closed {
            return;
        }
        self.appointments.retain(|(_, with)| *with != key);
        if self.work.contains(&key) {
            self.again.insert(key);
        } else if !self.due.contains(&key) {
            self.due.push(key);
        }
    }

    fn schedule(&mut self, key: u8, delay: u64) {
        if delay == 0 {
            return self.add(key);
        }
        let at = self.now + delay;
        let earlier = self.appointments.iter().any(|(planned, with)| *with == key && *planned <= at);
        if !self.closed && !earlier && !self.due.contains(&key) && !self.again.contains(&key) {
            self.appointments.retain(|(_, with)| *with != key);
            self.appointments.push((at, key));
        }
    }
}
