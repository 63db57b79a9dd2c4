//! The label that tells which instance manages a capacity object (topology-and-capacity.md 4).
//!
//! The value is the same as the Go sidecar's, byte for byte: an instance finds its objects again by it.

use std::fmt::Write as _;

/// Longest label value, in bytes.
const LONGEST: usize = 63;
/// What every value begins with.
const BASE: &str = "external-provisioner";

/// The value for this instance; `node` is given in a node deployment.
pub fn managed_by(node: Option<&str>) -> String {
    match node {
        None => BASE.to_owned(),
        Some(node) => joined(BASE, node, LONGEST),
    }
}

/// `base-suffix` in at most `max` bytes: if it is too long, the base is cut and marked by its hash; if nothing of it would
/// be left, the whole is a hash behind as much of the base as fits.
pub fn joined(base: &str, suffix: &str, max: usize) -> String {
    let whole = if base.is_empty() { suffix.to_owned() } else { format!("{base}-{suffix}") };
    if whole.len() <= max {
        return whole;
    }
    // The hash has eight digits; a dash before and one behind.
    let room = max.saturating_sub(suffix.len()).saturating_sub(10);
    let mut name = String::new();
    if room > 0 && !base.is_empty() {
        let _ = write!(name, "{}-{}-{suffix}", start(base, room), hash(base));
    } else if base.is_empty() {
        name = hash(&whole);
    } else {
        let _ = write!(name, "{}-{}", start(base, max.saturating_sub(9)), hash(&whole));
    }
    start(&name, max).to_owned()
}

/// At most that many bytes from the start, whole characters.
fn start(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// 32-bit FNV-1a in eight digits.
fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::{joined, managed_by};

    #[test]
    fn central_instance_has_no_node_in_its_mark() {
        assert_eq!(managed_by(None), "external-provisioner");
    }

    #[test]
    fn mark_of_any_node_fits_into_a_label() {
        for length in 1..=253 {
            let mark = managed_by(Some(&"n".repeat(length)));
            assert!(mark.len() <= 63 && mark.starts_with('e'), "{length}: {mark}");
        }
    }

    #[test]
    fn limit_too_small_for_anything_gives_no_panic() {
        assert_eq!(joined("base", "suffix", 3).len(), 3);
        assert_eq!(joined("bäse", "süffix", 2).len(), 2);
    }
}
