//! Durations in the syntax of the Go sidecar: `500ms`, `10s`, `1h30m`, `-1.5h`, and `0` alone.
//!
//! Promises the same texts and the same limits (signed 64 bit nanoseconds) as Go, and that a shown duration reads
//! back as itself.

use std::fmt;
use std::time::Duration;

/// A signed duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(i64);

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing, or no digits where a number belongs.
    #[error("it is not a duration")]
    NotADuration,
    /// A number without unit.
    #[error("a number needs a unit (ns, us, ms, s, m or h)")]
    MissingUnit,
    /// A unit that does not exist, such as `d`.
    #[error("there is no unit {0:?} (units are ns, us, ms, s, m and h)")]
    UnknownUnit(String),
    /// More than about 292 years.
    #[error("it is longer than a duration can be (about 292 years)")]
    TooLong,
}

/// The largest magnitude, that of the most negative value.
const LIMIT: u64 = 1 << 63;

impl GoDuration {
    /// So many whole seconds.
    pub const fn from_secs(secs: u32) -> Self {
        Self(secs as i64 * 1_000_000_000)
    }

    /// So many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// The duration if it is above zero.
    pub fn positive(self) -> Option<Duration> {
        u64::try_from(self.0).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos)
    }

    /// The duration, with negative ones as zero.
    pub fn or_zero(self) -> Duration {
        self.positive().unwrap_or_default()
    }

    /// Reads Go's duration syntax.
    ///
    /// # Errors
    /// [`DurationError`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(DurationError::NotADuration);
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (part, after) = one_part(rest)?;
            total = total.checked_add(part).filter(|sum| *sum <= LIMIT).ok_or(DurationError::TooLong)?;
            rest = after;
        }
        let signed = if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
        signed.map(Self).ok_or(DurationError::TooLong)
    }
}

/// Reads one `<number><unit>` and returns its nanoseconds and what follows.
fn one_part(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::NotADuration);
    }
    let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let unit_nanos = unit_nanos(unit)?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| DurationError::TooLong)? };
    let nanos = whole.checked_mul(unit_nanos).filter(|nanos| *nanos <= LIMIT).ok_or(DurationError::TooLong)?;
    nanos.checked_add(fraction_nanos(fraction, unit_nanos)).map(|nanos| (nanos, rest)).ok_or(DurationError::TooLong)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit_nanos(unit: &str) -> Result<u64, DurationError> {
    match unit {
        "" => Err(DurationError::MissingUnit),
        "ns" => Ok(1),
        // Both the micro sign and the Greek letter, as in Go.
        "us" | "\u{b5}s" | "\u{3bc}s" => Ok(1_000),
        "ms" => Ok(1_000_000),
        "s" => Ok(1_000_000_000),
        "m" => Ok(60_000_000_000),
        "h" => Ok(3_600_000_000_000),
        other => Err(DurationError::UnknownUnit(other.to_owned())),
    }
}

/// The nanoseconds of the digits behind the point, rounded down. Digits that a nanosecond of an hour cannot
/// show are left out, so nothing overflows.
fn fraction_nanos(digits: &str, unit_nanos: u64) -> u64 {
    let (mut numerator, mut scale) = (0_u128, 1_u128);
    for digit in digits.bytes().take(18) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    u64::try_from(numerator * u128::from(unit_nanos) / scale).unwrap_or(0)
}

/// As Go shows it: `1h0m0s`, `1m0s`, `10s`, `1.5s`, `500ms`, `0s`.
impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}\u{b5}s", decimal(nanos, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{}ms", decimal(nanos, 1_000_000)),
            _ => {
                let (minutes, rest) = (nanos / 60_000_000_000, nanos % 60_000_000_000);
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write!(f, "{}s", decimal(rest, 1_000_000_000))
            }
        }
    }
}

/// `value / unit` with exactly the digits it needs; `unit` is a power of ten.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0'))
}
