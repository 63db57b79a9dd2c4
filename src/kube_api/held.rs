//! What a room keeps of the objects it watches.
//!
//! Promises:
//! - everything that was held when a list began and was not put before the list ended is swept out, also when two
//!   lists begin in a row;
//! - a view never goes back in resource version, whatever order the events arrive in (field-faults.md R11, W38);
//! - keys come out in one order, always.
//!
//! Not here: what is worth keeping (each room's `interest`), and locking.

use std::collections::BTreeMap;

/// Views by key (`namespace/name` or name).
#[derive(Clone, Debug)]
pub struct Held<V> {
    list: u64,
    entries: BTreeMap<String, Entry<V>>,
}

#[derive(Clone, Debug)]
struct Entry<V> {
    version: String,
    /// The list during or after which it was last seen.
    list: u64,
    view: V,
}

/// What became of a view that was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put<V> {
    /// Nothing was held under this key.
    New,
    /// The view that was held until now.
    Replaced(V),
    /// A newer view is held; the given one was thrown away.
    Stale,
}

// === impl Held ===

impl<V> Default for Held<V> {
    fn default() -> Self {
        Self { list: 0, entries: BTreeMap::new() }
    }
}

impl<V> Held<V> {
    /// A list begins: from now on only what is put counts as existing.
    pub fn begin(&mut self) {
        self.list += 1;
    }

    /// Holds `view` unless a newer one is there. Even a stale one proves that the object exists.
    pub fn put(&mut self, key: String, version: &str, view: V) -> Put<V> {
        let list = self.list;
        match self.entries.get_mut(&key) {
            None => {
                self.entries.insert(key, Entry { version: version.to_owned(), list, view });
                Put::New
            }
            Some(entry) => {
                entry.list = list;
                if is_older(version, &entry.version) {
                    return Put::Stale;
                }
                version.clone_into(&mut entry.version);
                Put::Replaced(std::mem::replace(&mut entry.view, view))
            }
        }
    }

    /// Removes and returns the view, unless it is newer than `version`.
    pub fn remove(&mut self, key: &str, version: &str) -> Option<V> {
        let entry = self.entries.get(key)?;
        if is_older(version, &entry.version) {
            return None;
        }
        self.entries.remove(key).map(|entry| entry.view)
    }

    /// A list ended: removes and returns what no longer exists.
    pub fn end(&mut self) -> Vec<(String, V)> {
        let list = self.list;
        self.entries.extract_if(.., |_, entry| entry.list != list).map(|(key, entry)| (key, entry.view)).collect()
    }

    /// The view under this key.
    pub fn get(&self, key: &str) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.view)
    }

    /// All views, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), &entry.view))
    }

    /// How many views are held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Whether resource version `this` is older than `that`. Versions are numbers of any length; what is no number counts
/// as newer, so that an unusual API server makes views fresher, never stuck.
fn is_older(this: &str, that: &str) -> bool {
    match (digits(this), digits(that)) {
        (Some(this), Some(that)) => (this.len(), this) < (that.len(), that),
        (None, _) | (_, None) => false,
    }
}

fn digits(version: &str) -> Option<&str> {
    let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| version.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(entries: &[(&str, &str)]) -> Held<String> {
        let mut held = Held::default();
        for (key, version) in entries {
            held.put((*key).to_owned(), version, (*version).to_owned());
        }
        held
    }

    #[test]
    fn what_a_list_did_not_show_is_gone() {
        let mut held = held(&[("a", "1"), ("b", "2"), ("c", "3")]);
        held.begin();
        held.put("b".to_owned(), "2", "2".to_owned());
        let gone = held.end();
        assert_eq!(gone, [("a".to_owned(), "1".to_owned()), ("c".to_owned(), "3".to_owned())]);
        assert_eq!(held.iter().collect::<Vec<_>>(), [("b", &"2".to_owned())]);
    }

    #[test]
    fn second_list_start_forgets_what_the_first_showed() {
        let mut held = held(&[("a", "1")]);
        held.begin();
        held.put("a".to_owned(), "1", "1".to_owned());
        held.begin();
        assert_eq!(held.end().len(), 1);
    }

    #[test]
    fn live_event_after_a_list_survives_its_end() {
        let mut held = held(&[]);
        held.begin();
        held.put("new".to_owned(), "9", "9".to_owned());
        assert_eq!((held.end().len(), held.len()), (0, 1));
    }

    #[test]
    fn view_never_goes_back() {
        let mut held = held(&[("a", "10")]);
        assert_eq!(held.put("a".to_owned(), "9", "9".to_owned()), Put::Stale);
        assert_eq!(held.get("a"), Some(&"10".to_owned()));
    }

    #[test]
    fn stale_view_in_a_list_keeps_the_newer_one() {
        let mut held = held(&[("a", "10")]);
        held.begin();
        held.put("a".to_owned(), "9", "9".to_owned());
        assert_eq!((held.end().len(), held.get("a")), (0, Some(&"10".to_owned())));
    }

    #[test]
    fn old_deletion_does_not_remove_a_newer_object() {
        let mut held = held(&[("a", "10")]);
        assert_eq!(held.remove("a", "9"), None);
        assert_eq!(held.remove("a", "11"), Some("10".to_owned()));
    }

    #[test]
    fn versions_compare_as_numbers_of_any_length() {
        let twenty_one_digits = "100000000000000000000";
        assert!(is_older("99999999999999999999", twenty_one_digits) && is_older("9", "10") && is_older("09", "10"));
        assert!(!is_older("10", "10") && !is_older("10", "9"));
    }

    #[test]
    fn version_that_is_no_number_counts_as_newer() {
        assert!(!is_older("abc", "10") && !is_older("10", "abc") && !is_older("", "10"));
    }
}
