//! How a single flag value is read and shown: booleans, texts, numbers and levels in the syntax of the Go sidecar.
//!
//! Knows nothing of names or of rules between flags. Values with inner structure are in `lists`.

use super::config::DurableIntent;
use super::duration::GoDuration;

/// A type that a flag can have.
pub(super) trait FlagValue {
    /// `--flag` without a value means `true`.
    const SWITCH: bool = false;
    /// What may be written, for error lines.
    const ALLOWED: &'static str;
    /// Stands for the value in the help.
    const PLACEHOLDER: &'static str;
    /// Takes in one occurrence of the flag: plain values are replaced, lists may grow. The error says what is wrong.
    fn read(&mut self, text: &str) -> Result<(), String>;
    /// The value as one would write it; empty if there is none.
    fn show(&self) -> String;
}

impl FlagValue for bool {
    const SWITCH: bool = true;
    const ALLOWED: &'static str = "true or false (also 1, t, T, TRUE, True, 0, f, F, FALSE, False)";
    const PLACEHOLDER: &'static str = "";

    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = boolean(text).ok_or("it is neither true nor false")?;
        Ok(())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Go's spellings of true and false.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

impl FlagValue for String {
    const ALLOWED: &'static str = "any text";
    const PLACEHOLDER: &'static str = "<text>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        text.clone_into(self);
        Ok(())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl FlagValue for GoDuration {
    const ALLOWED: &'static str = "a duration such as 500ms, 10s, 5m or 1h30m";
    const PLACEHOLDER: &'static str = "<duration>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = Self::parse(text).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl FlagValue for u64 {
    const ALLOWED: &'static str = "a whole number from 0 up, without sign";
    const PLACEHOLDER: &'static str = "<number>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = magnitude(text)?;
        Ok(())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl FlagValue for i64 {
    const ALLOWED: &'static str = "a whole number";
    const PLACEHOLDER: &'static str = "<number>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let size = magnitude(digits)?;
        let signed = if negative { 0_i64.checked_sub_unsigned(size) } else { Self::try_from(size).ok() };
        *self = signed.ok_or(TOO_LARGE)?;
        Ok(())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

const NOT_A_NUMBER: &str = "it is not a whole number";
const TOO_LARGE: &str = "the number is too large";

/// An unsigned number as Go reads it with base 0: `0x`, `0o`, `0b` or `0` in front choose the base, `_` may
/// separate digits.
fn magnitude(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2), ("0", 8)];
    let with_prefix = prefixes.iter().find_map(|(prefix, radix)| {
        lower.strip_prefix(prefix).filter(|rest| !rest.is_empty()).map(|digits| (*radix, digits))
    });
    let (radix, digits) = with_prefix.unwrap_or((10, &lower));
    let misplaced =
        digits.ends_with('_') || digits.contains("__") || (digits.starts_with('_') && with_prefix.is_none());
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if misplaced || plain.is_empty() || !plain.chars().all(|c| c.is_digit(radix)) {
        return Err(NOT_A_NUMBER.to_owned());
    }
    u64::from_str_radix(&plain, radix).map_err(|_| TOO_LARGE.to_owned())
}

/// A rate in requests per second: `f64` that is never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

/// A rate that the Go sidecar holds in 32 bits: its limit is smaller, its precision is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NarrowRate(pub f64);

impl FlagValue for Rate {
    const ALLOWED: &'static str = "a number; 0 means 5 a second, a negative one means no limit";
    const PLACEHOLDER: &'static str = "<number>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        self.0 = decimal(text, f64::MAX)?;
        Ok(())
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl FlagValue for NarrowRate {
    const ALLOWED: &'static str = Rate::ALLOWED;
    const PLACEHOLDER: &'static str = Rate::PLACEHOLDER;

    fn read(&mut self, text: &str) -> Result<(), String> {
        self.0 = decimal(text, f64::from(f32::MAX))?;
        Ok(())
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A decimal number up to `limit`, or an infinity written as such. NaN is refused (Go takes it, but a limit that
/// is no number limits nothing), and so are Go's hexadecimal fractions.
fn decimal(text: &str, limit: f64) -> Result<f64, String> {
    let bytes = text.as_bytes();
    let digit_at = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let separators_fit = bytes
        .iter()
        .enumerate()
        .all(|(index, byte)| *byte != b'_' || (index > 0 && digit_at(index - 1) && digit_at(index + 1)));
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let number: f64 = plain.parse().map_err(|_| "it is not a number".to_owned())?;
    let written_infinite = text.to_ascii_lowercase().contains("inf");
    if !separators_fit || number.is_nan() {
        Err("it is not a number".to_owned())
    } else if number.abs() > limit && !written_infinite {
        Err(TOO_LARGE.to_owned())
    } else {
        Ok(number)
    }
}

/// Verbosity of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level(pub u32);

impl FlagValue for Level {
    const ALLOWED: &'static str = "a level from 0 to 2147483647";
    const PLACEHOLDER: &'static str = "<level>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        self.0 = level(text)?;
        Ok(())
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A verbosity: decimal digits only, 31 bits.
pub(super) fn level(text: &str) -> Result<u32, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NOT_A_NUMBER.to_owned());
    }
    text.parse().ok().filter(|level| *level <= 0x7fff_ffff).ok_or_else(|| TOO_LARGE.to_owned())
}

impl FlagValue for DurableIntent {
    const ALLOWED: &'static str = "off, uncertain or always";
    const PLACEHOLDER: &'static str = "off|uncertain|always";

    fn read(&mut self, text: &str) -> Result<(), String> {
        *self = match text {
            "off" => Self::Off,
            "uncertain" => Self::Uncertain,
            "always" => Self::Always,
            _ => return Err("there is no such mode".to_owned()),
        };
        Ok(())
    }

    fn show(&self) -> String {
        match self {
            Self::Off => "off",
            Self::Uncertain => "uncertain",
            Self::Always => "always",
        }
        .to_owned()
    }
}
