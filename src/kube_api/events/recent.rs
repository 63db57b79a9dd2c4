//! A map that forgets what was not used for longest. Pure.
//!
//! Promises: never more than `limit` entries; reading counts as using; the same calls forget the same entries.

use std::collections::BTreeMap;

/// Bounded map by the hash of a key.
#[derive(Debug)]
pub struct Recent<V> {
    limit: usize,
    uses: u64,
    values: BTreeMap<u64, (u64, V)>,
    by_use: BTreeMap<u64, u64>,
}

impl<V> Recent<V> {
    /// An empty map for at most `limit` entries.
    pub fn new(limit: usize) -> Self {
        Self { limit, uses: 0, values: BTreeMap::new(), by_use: BTreeMap::new() }
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// The value of `key`.
    pub fn get(&mut self, key: u64) -> Option<&mut V> {
        self.uses += 1;
        let (used, value) = self.values.get_mut(&key)?;
        self.by_use.remove(used);
        self.by_use.insert(self.uses, key);
        *used = self.uses;
        Some(value)
    }

    /// Sets the value of `key`; the entry unused for longest goes when there are too many.
    pub fn put(&mut self, key: u64, value: V) {
        self.uses += 1;
        if let Some((used, _)) = self.values.insert(key, (self.uses, value)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.uses, key);
        if self.values.len() > self.limit
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.values.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn entry_unused_for_longest_goes_first() {
        let mut map = Recent::new(2);
        map.put(1, 'a');
        map.put(2, 'b');
        map.get(1);
        map.put(3, 'c');
        assert_eq!((map.get(1).copied(), map.get(2).copied(), map.get(3).copied()), (Some('a'), None, Some('c')));
    }

    #[test]
    fn value_that_is_set_again_takes_no_second_place() {
        let mut map = Recent::new(2);
        map.put(1, 'a');
        map.put(1, 'b');
        map.put(2, 'c');
        assert_eq!((map.get(1).copied(), map.get(2).copied()), (Some('b'), Some('c')));
    }
}
