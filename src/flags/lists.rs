//! Flag values with inner structure: feature gates, lease labels, per-file log levels, buffer sizes.

use super::values::{FlagValue, boolean, level};
use crate::report::log::Vmodule;
use std::collections::BTreeMap;

/// Gate switches as written: name to value. Repeated use merges, the last value of a name wins.
pub type GateSwitches = BTreeMap<String, bool>;

/// Labels of the Lease: key to value. Repeated use merges.
pub type Labels = BTreeMap<String, String>;

/// `BTreeMap<String, bool>` is the feature gates.
impl FlagValue for GateSwitches {
    const ALLOWED: &'static str = "Name=true or Name=false, several separated by commas";
    const PLACEHOLDER: &'static str = "<Name=bool,...>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) = item.split_once('=').ok_or_else(|| format!("item {item:?} has no =true or =false"))?;
            let (name, value) = (name.trim(), value.trim());
            let on = boolean(value).ok_or_else(|| format!("gate {name:?} can be true or false, not {value:?}"))?;
            self.insert(name.to_owned(), on);
        }
        Ok(())
    }

    fn show(&self) -> String {
        self.iter().map(|(name, on)| format!("{name}={on}")).collect::<Vec<_>>().join(",")
    }
}

impl FlagValue for Labels {
    const ALLOWED: &'static str = "key:value, several separated by commas";
    const PLACEHOLDER: &'static str = "<key:value,...>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        for item in text.split(',') {
            let pair = item.split_once(':').filter(|(_, value)| !value.contains(':'));
            let (key, value) = pair.ok_or_else(|| format!("item {item:?} is not one key and one value"))?;
            self.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        Ok(())
    }

    fn show(&self) -> String {
        self.iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>().join(",")
    }
}

impl FlagValue for Vec<Vmodule> {
    const ALLOWED: &'static str = "pattern=level, several separated by commas";
    const PLACEHOLDER: &'static str = "<pattern=level,...>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let pair = item.split_once('=').filter(|(pattern, at)| !pattern.is_empty() && !at.is_empty());
            let (pattern, at) = pair.ok_or_else(|| format!("item {item:?} is not pattern=level"))?;
            let at = level(at).map_err(|why| format!("the level in {item:?} is wrong: {why}"))?;
            self.push(Vmodule { pattern: pattern.to_owned(), level: at });
        }
        Ok(())
    }

    fn show(&self) -> String {
        self.iter().map(|item| format!("{}={}", item.pattern, item.level)).collect::<Vec<_>>().join(",")
    }
}

/// Size of a log buffer: only whether it is zero matters, because only zero is permitted (provisioning.md 1.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferSize {
    text: String,
    /// No buffering.
    pub is_zero: bool,
}

impl Default for BufferSize {
    fn default() -> Self {
        Self { text: "0".to_owned(), is_zero: true }
    }
}

/// Suffixes of a Kubernetes quantity, apart from exponents.
const SUFFIXES: [&str; 16] = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl FlagValue for BufferSize {
    const ALLOWED: &'static str = "a quantity such as 0, 512 or 2Ki";
    const PLACEHOLDER: &'static str = "<quantity>";

    fn read(&mut self, text: &str) -> Result<(), String> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = unsigned.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let number_fits = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
        let exponent = suffix.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
        let suffix_fits = SUFFIXES.contains(&suffix)
            || exponent.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        if !number_fits || !suffix_fits {
            return Err("it is not a quantity".to_owned());
        }
        text.clone_into(&mut self.text);
        self.is_zero = number.bytes().all(|byte| matches!(byte, b'0' | b'.'));
        Ok(())
    }

    fn show(&self) -> String {
        self.text.clone()
    }
}
