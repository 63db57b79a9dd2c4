//! The one random source, seeded once: a run can be repeated from its seed.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A seeded random source that can be shared.
#[derive(Clone, Debug)]
pub struct Random(Arc<Mutex<StdRng>>);

impl Random {
    /// Starts from a seed: the same seed gives the same numbers.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// Starts from the operating system's randomness.
    pub fn from_os() -> Self {
        Self(Arc::new(Mutex::new(StdRng::from_os_rng())))
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.with(|rng| rng.random_range(0..bound)) }
    }

    /// A duration in `[0, limit)`.
    pub fn duration_below(&self, limit: Duration) -> Duration {
        Duration::from_nanos(self.below(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// A random version 4 UUID in its usual text form.
    pub fn uuid(&self) -> String {
        let bits: u128 = self.with(Rng::random);
        let bits = (bits & !(0xf << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
