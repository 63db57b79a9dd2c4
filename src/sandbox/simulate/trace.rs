//! What happened, one line each, stamped with virtual time: two runs of one seed give the same text, byte for byte.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// The lines so far; clones share them.
#[derive(Clone, Debug)]
pub struct Trace {
    began: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Trace {
    /// No lines; time counts from now.
    pub fn begin() -> Self {
        Self { began: Instant::now(), lines: Arc::default() }
    }

    /// Adds a line about `who`.
    pub fn note(&self, who: &str, what: impl Display) {
        let line = format!("{:>14.6} {who} {what}", self.began.elapsed().as_secs_f64());
        self.lines().push(line);
    }

    /// All lines, joined by line ends.
    pub fn text(&self) -> String {
        self.lines().join("\n")
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines().len()
    }

    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.lines().is_empty()
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 64-bit FNV-1a of some bytes: tells two bodies apart without printing them, secrets least of all.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
