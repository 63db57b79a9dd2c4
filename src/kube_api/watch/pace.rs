//! How long a watch waits after a failure, and what the log says about it.

use crate::kube_api::error::{ApiError, ApiErrorKind};
use crate::kube_api::queue::Backoff;
use crate::random::Random;
use std::time::Duration;
use tracing::{info, warn};

/// A stream that lasted so long was a working one: waits start from the beginning.
pub(super) const STEADY: Duration = Duration::from_secs(10);
const WAIT: Backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(30) };
/// Failures that are counted at most, for a right that was there before: waits up to 4 s.
const FORBIDDEN_AGAIN: u32 = 2;
/// Longest `Retry-After` that is taken seriously.
const LONGEST_REQUEST: Duration = Duration::from_mins(2);

/// Failures of one watch since it last worked.
pub(super) struct Pace {
    name: &'static str,
    random: Random,
    failures: u32,
    /// The failure that the log told last.
    told: Option<String>,
    /// A list was complete at some time: the rights were there.
    has_listed: bool,
}

impl Pace {
    pub(super) fn new(name: &'static str, random: Random) -> Self {
        Self { name, random, failures: 0, told: None, has_listed: false }
    }

    /// A list was complete.
    pub(super) fn listed(&mut self) {
        self.has_listed = true;
        if self.told.take().is_some() {
            info!(target: "watch", resource = self.name, "watching again");
        }
    }

    /// Counts and tells a failure of a stream that `lasted`; returns how long to wait: between half the back-off and
    /// all of it, or as long as the server asks.
    pub(super) fn failed(&mut self, error: &ApiError, lasted: Duration) -> Duration {
        let was_steady = lasted >= STEADY;
        if was_steady {
            self.failures = 0;
            self.told = None;
        }
        let half = WAIT.delay(self.counted(error)) / 2;
        self.failures = self.failures.saturating_add(1);
        self.tell(error, was_steady);
        let own = half + self.random.duration_below(half);
        own.max(error.kind.retry_after().unwrap_or_default().min(LONGEST_REQUEST))
    }

    /// The failures that decide the wait. After a restart of the API server two kinds heal within seconds, and what
    /// failed before them says nothing about them.
    fn counted(&self, error: &ApiError) -> u32 {
        if error.kind == ApiErrorKind::Gone {
            // Only the place to go on from is gone; the server answers.
            0
        } else if error.kind == ApiErrorKind::Forbidden && self.has_listed {
            // A server that has just started refuses everybody until it has read the roles.
            self.failures.min(FORBIDDEN_AGAIN)
        } else {
            self.failures
        }
    }

    fn tell(&mut self, error: &ApiError, was_steady: bool) {
        let name = self.name;
        let text = failure(name, error);
        // Streams are cut and grow too old in every cluster; only what does not heal at once is worth a line.
        let is_usual = was_steady && matches!(error.kind, ApiErrorKind::Transport | ApiErrorKind::Gone);
        if is_usual {
            info!(target: "watch", v = 4, "{text}");
        } else if self.told.as_ref() != Some(&text) {
            warn!(target: "watch", "{text}");
            self.told = Some(text);
        }
    }
}

/// The line for the log, with the next step where there is one.
fn failure(name: &str, error: &ApiError) -> String {
    match error.kind {
        ApiErrorKind::Forbidden => format!("cannot watch {name}: grant get, list, watch ({error})"),
        ApiErrorKind::NotFound => format!("cannot watch {name}: the API server does not know them ({error})"),
        ApiErrorKind::Unauthorized => {
            format!("cannot watch {name}: the API server does not accept the credentials ({error})")
        }
        ApiErrorKind::AlreadyExists
        | ApiErrorKind::Conflict
        | ApiErrorKind::Gone
        | ApiErrorKind::Invalid
        | ApiErrorKind::BadRequest
        | ApiErrorKind::TooManyRequests { .. }
        | ApiErrorKind::Server(_)
        | ApiErrorKind::Deadline
        | ApiErrorKind::Transport
        | ApiErrorKind::Unreadable
        | ApiErrorKind::Other(_) => format!("cannot watch {name}, trying again: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace::new("persistentvolumes", Random::seeded(1))
    }

    fn error(kind: ApiErrorKind) -> ApiError {
        ApiError::new(kind, "why")
    }

    #[test]
    fn waits_double_up_to_half_a_minute() {
        let (mut pace, error) = (pace(), error(ApiErrorKind::Server(500)));
        let waits = (0..50).map(|_| pace.failed(&error, Duration::ZERO)).collect::<Vec<_>>();
        for (wait, limit) in waits.iter().zip([1, 2, 4, 8, 16, 30, 30, 30]) {
            let limit = Duration::from_secs(limit);
            assert!((limit / 2..limit).contains(wait), "{wait:?} of {limit:?}");
        }
        assert!(waits.iter().all(|wait| *wait <= WAIT.max));
    }

    #[test]
    fn new_list_after_a_lost_place_does_not_wait_for_earlier_failures() {
        let mut pace = pace();
        for _ in 0..10 {
            pace.failed(&error(ApiErrorKind::Transport), Duration::ZERO);
        }
        assert!(pace.failed(&error(ApiErrorKind::Gone), Duration::ZERO) <= WAIT.base);
    }

    #[test]
    fn right_that_was_there_is_soon_asked_for_again() {
        let mut pace = pace();
        let longest = |pace: &mut Pace| {
            (0..10).map(|_| pace.failed(&error(ApiErrorKind::Forbidden), Duration::ZERO)).max().unwrap_or_default()
        };
        assert!(longest(&mut pace) > Duration::from_secs(15), "never there");
        pace.listed();
        assert!(longest(&mut pace) <= Duration::from_secs(4), "there before");
    }

    #[test]
    fn stream_that_lasted_starts_the_waits_anew() {
        let (mut pace, error) = (pace(), error(ApiErrorKind::Transport));
        for _ in 0..9 {
            pace.failed(&error, Duration::from_secs(1));
        }
        assert!(pace.failed(&error, STEADY) < WAIT.base);
    }

    #[test]
    fn server_that_asks_for_time_gets_it() {
        let busy = |secs| error(ApiErrorKind::TooManyRequests { retry_after: Some(Duration::from_secs(secs)) });
        assert_eq!(pace().failed(&busy(45), Duration::ZERO), Duration::from_secs(45));
        assert_eq!(pace().failed(&busy(86_400), Duration::ZERO), LONGEST_REQUEST);
    }

    #[test]
    fn missing_right_is_named() {
        let line = failure("persistentvolumes", &error(ApiErrorKind::Forbidden));
        assert_eq!(line, "cannot watch persistentvolumes: grant get, list, watch (why)");
    }

    #[test]
    fn same_failure_is_told_once_until_the_watch_works_again() {
        let (mut pace, error) = (pace(), error(ApiErrorKind::Forbidden));
        pace.failed(&error, Duration::ZERO);
        let told = pace.told.clone();
        pace.failed(&error, Duration::ZERO);
        assert!(told.is_some() && pace.told == told);
        pace.listed();
        assert_eq!(pace.told, None);
    }

    #[test]
    fn cut_of_a_working_stream_is_no_warning() {
        let mut pace = pace();
        pace.failed(&error(ApiErrorKind::Transport), STEADY);
        assert_eq!(pace.told, None);
    }
}
