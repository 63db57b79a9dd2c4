//! How far the race for each unassigned claim is: since when this instance holds back, and how often it tried.
//!
//! Promises: waiting costs an entry here and a timer in the queue, never a worker (weak point 28 of the reference); the
//! memory of claims that are not looked at any more is given back (weak point 23).

use super::turn::Pace;
use crate::model::Turn;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long an entry outlives its time to act. A claim that is still there has been looked at long before.
const KEEP: Duration = Duration::from_mins(5);

/// The races of this instance, by claim UID.
#[derive(Debug, Default)]
pub struct Races(BTreeMap<String, Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Tries in vain so far.
    tries: u32,
    /// When this instance may take the claim.
    due: Instant,
}

impl Races {
    /// Enters the race at the first look, then tells how long to hold back still.
    pub fn turn(&mut self, uid: &str, pace: Pace, jitter: impl FnOnce() -> Duration, now: Instant) -> Turn {
        let due = match self.0.get(uid) {
            Some(entry) => entry.due,
            None => self.enter(uid, 0, now, pace.delay(0, jitter())),
        };
        match due.saturating_duration_since(now) {
            Duration::ZERO => Turn::Take,
            wait => Turn::Later(wait),
        }
    }

    /// This try was in vain: the next one comes later. Returns how much.
    pub fn again(&mut self, uid: &str, pace: Pace, jitter: Duration, now: Instant) -> Duration {
        let tries = self.0.get(uid).map_or(0, |entry| entry.tries).saturating_add(1);
        let delay = pace.delay(tries, jitter);
        self.enter(uid, tries, now, delay);
        delay
    }

    /// The race is over, whoever won.
    pub fn over(&mut self, uid: &str) {
        self.0.remove(uid);
    }

    fn enter(&mut self, uid: &str, tries: u32, now: Instant, delay: Duration) -> Instant {
        self.0.retain(|_, entry| entry.due + KEEP > now);
        let due = now + delay;
        self.0.insert(uid.to_owned(), Entry { tries, due });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::{KEEP, Pace, Races};
    use crate::model::Turn;
    use std::time::Duration;
    use tokio::time::Instant;

    const PACE: Pace = Pace { base: Duration::from_secs(20), max: Duration::from_mins(1) };

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn delay_is_drawn_once_and_then_only_runs_down() {
        let (mut races, start) = (Races::default(), Instant::now());
        assert_eq!(races.turn("a", PACE, || secs(5), start), Turn::Later(secs(15)));
        assert_eq!(races.turn("a", PACE, || secs(20), start + secs(10)), Turn::Later(secs(5)));
        assert_eq!(races.turn("a", PACE, || secs(0), start + secs(15)), Turn::Take);
    }

    #[test]
    fn try_in_vain_makes_the_next_one_later() {
        let (mut races, start) = (Races::default(), Instant::now());
        assert_eq!(races.turn("a", PACE, || secs(20), start), Turn::Take);
        assert_eq!(races.again("a", PACE, secs(0), start), secs(40));
        assert_eq!(races.turn("a", PACE, || secs(0), start + secs(1)), Turn::Later(secs(39)));
    }

    #[test]
    fn race_that_is_over_begins_anew() {
        let (mut races, start) = (Races::default(), Instant::now());
        races.again("a", PACE, secs(0), start);
        races.over("a");
        assert_eq!(races.turn("a", PACE, || secs(0), start), Turn::Later(secs(20)));
    }

    #[test]
    fn claims_that_nobody_looks_at_any_more_are_forgotten() {
        let (mut races, start) = (Races::default(), Instant::now());
        races.turn("a", PACE, || secs(0), start);
        races.turn("b", PACE, || secs(0), start + secs(20) + KEEP);
        assert_eq!(races.0.keys().collect::<Vec<_>>(), ["b"]);
    }
}
