//! Which place comes first: spreading claims by their names (topology-and-capacity.md 1.6).
//!
//! Promise: claims of one `StatefulSet` replica get the same place for each template, consecutive replicas consecutive
//! places, whatever process decides (field fault T06).

/// Start index for a claim of this name among `count` places; 0 when there are none.
pub fn start(claim_name: &str, count: usize) -> usize {
    let (text, ordinal) = split(claim_name);
    let Ok(count) = u32::try_from(count) else { return 0 };
    if count == 0 { 0 } else { (fnv1(text).wrapping_add(ordinal) % count) as usize }
}

/// The hashed part of a claim name and its ordinal: `data-web-3` is (`web`, 3), a name without ordinal is itself and 0.
pub fn split(claim_name: &str) -> (&str, u32) {
    let Some((before, digits)) = claim_name.rsplit_once('-') else { return (claim_name, 0) };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return (claim_name, 0);
    }
    match digits.parse::<u32>() {
        Ok(ordinal) => (before.rsplit_once('-').map_or(before, |(_, last)| last), ordinal),
        Err(_) => (claim_name, 0),
    }
}

/// 32-bit FNV-1: multiply, then xor.
pub fn fnv1(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::{fnv1, split, start};

    #[test]
    fn names_split_at_a_trailing_ordinal() {
        assert_eq!(split("data-web-3"), ("web", 3));
        assert_eq!(split("web-3"), ("web", 3));
        assert_eq!(split("claim"), ("claim", 0));
        assert_eq!(split("a-"), ("a-", 0));
        assert_eq!(split("a-4294967296"), ("a-4294967296", 0));
        assert_eq!(split("a-007"), ("a", 7));
    }

    #[test]
    fn hash_and_start_have_the_reference_values() {
        assert_eq!(fnv1("testset"), 1_633_848_515);
        assert_eq!(fnv1("testpvc"), 1_684_622_678);
        assert_eq!(start("testpvc-testset-1", 4), 0);
        assert_eq!(start("testpvc", 3), 2);
        assert_eq!(start("testpvc", 0), 0);
    }
}
