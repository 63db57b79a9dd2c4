//! Waiting for what processes do in their own time.

use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks.
const TICK: Duration = Duration::from_millis(60);
/// Enough for anything that is not meant to take long, even on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// Looks until there is something to see, and fails the test if that takes too long.
#[track_caller]
pub fn eventually<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        thread::sleep(TICK);
    }
}

/// Like [`eventually`], for a condition.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    eventually(what, limit, || holds().then_some(()));
}

/// Fails the test if the condition stops to hold within that time.
#[track_caller]
pub fn holds_for(what: &str, time: Duration, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while start.elapsed() < time {
        assert!(holds(), "not for {time:?}: {what}");
        thread::sleep(TICK);
    }
}
