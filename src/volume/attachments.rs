//! Which volumes are attached where, in a few bytes per attachment.
//!
//! Tens of thousands of attachments may exist, and only "is this volume attached, and to which node" is ever asked.
//! Names are therefore kept as 64-bit hashes (of a keyless, stable hash: the answer does not depend on the process);
//! node names, of which there are few, are kept once each.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Attachments by name, and how many of them each volume has.
#[derive(Debug, Default)]
pub struct Attachments {
    by_name: BTreeMap<u64, Place>,
    nodes: BTreeMap<u32, String>,
    node_numbers: BTreeMap<String, u32>,
    next_node: u32,
    count: BTreeMap<u64, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    volume: u64,
    node: u32,
}

impl Attachments {
    /// Takes in an attachment of a volume to a node. An attachment never changes either.
    pub fn add(&mut self, attachment: &str, volume: &str, node: &str) {
        let place = Place { volume: hash(volume), node: self.node_number(node) };
        if self.by_name.insert(hash(attachment), place).is_none() {
            *self.count.entry(place.volume).or_default() += 1;
        }
    }

    /// Forgets an attachment. True if it was known and its volume has none left.
    pub fn remove(&mut self, attachment: u64) -> Option<u64> {
        let place = self.by_name.remove(&attachment)?;
        let left = self.count.get_mut(&place.volume)?;
        *left = left.saturating_sub(1);
        if *left > 0 {
            return None;
        }
        self.count.remove(&place.volume);
        Some(place.volume)
    }

    /// A node that the volume is attached to.
    pub fn node_of(&self, volume: &str) -> Option<&str> {
        let volume = hash(volume);
        self.count.get(&volume)?;
        let place = self.by_name.values().find(|place| place.volume == volume)?;
        self.nodes.get(&place.node).map(String::as_str)
    }

    /// Keys of all attachments, for the sweep at the end of a list.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        self.by_name.keys().copied()
    }

    fn node_number(&mut self, node: &str) -> u32 {
        if let Some(number) = self.node_numbers.get(node) {
            return *number;
        }
        let number = self.next_node;
        self.next_node = self.next_node.wrapping_add(1);
        self.nodes.insert(number, node.to_owned());
        self.node_numbers.insert(node.to_owned(), number);
        number
    }
}

/// The key under which a name is kept.
pub fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{Attachments, hash};

    #[test]
    fn volume_is_attached_until_its_last_attachment_goes() {
        let mut index = Attachments::default();
        index.add("a1", "pv", "n1");
        index.add("a1", "pv", "n1");
        index.add("a2", "pv", "n2");
        assert_eq!(index.remove(hash("a1")), None);
        assert_eq!(index.node_of("pv"), Some("n2"));
        assert_eq!(index.remove(hash("a2")), Some(hash("pv")));
        assert_eq!(index.node_of("pv"), None);
    }

    #[test]
    fn unknown_attachment_changes_nothing() {
        let mut index = Attachments::default();
        index.add("a1", "pv", "n1");
        assert_eq!(index.remove(hash("other")), None);
        assert_eq!(index.node_of("pv"), Some("n1"));
    }
}
