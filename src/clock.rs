//! Time, handed in: wall-clock stamps come from one [`Clock`], waiting uses tokio's time.
//!
//! In the simulated world both are the same paused clock, so a day passes in seconds and twice alike.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Source of wall-clock stamps.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Simulated { start: Timestamp, began: Instant },
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that starts at `start` and moves with tokio's (paused) time.
    pub fn simulated(start: Timestamp) -> Self {
        Self(Source::Simulated { start, began: Instant::now() })
    }

    /// The wall-clock time now.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Simulated { start, began } => {
                let passed = SignedDuration::try_from(began.elapsed()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }
}
