//! Objects, the one revision counter and the bounded history of changes.
//!
//! Promises:
//! - every change gets the next revision of one counter shared by all kinds, written into `metadata.resourceVersion`;
//! - the state of a kind at an older revision can be rebuilt as long as the history reaches back that far;
//! - a deletion's event carries the last stored object with the revision of the deletion, as the real server does.
//!
//! Knows nothing of rules: what may be written is decided before [`Store::put`].

use super::resources::Resource;
use crate::signal::{Listener, Signal};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Where an object lives inside its kind; cluster-scoped kinds have an empty namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// Builds a key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// The objects of one kind at one revision.
pub type Objects = BTreeMap<Key, Arc<Value>>;

/// One change.
#[derive(Clone, Debug)]
pub struct Change {
    /// Revision of the change.
    pub revision: u64,
    /// The object's place.
    pub key: Key,
    /// The object before, if it existed.
    pub before: Option<Arc<Value>>,
    /// The object after; for a deletion the last state with the deletion's revision.
    pub object: Arc<Value>,
    /// Whether the object is gone now.
    pub deleted: bool,
}

/// The asked-for revision is older than the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    /// Oldest revision that can still be answered.
    pub oldest: u64,
}

/// Everything stored for one kind.
#[derive(Debug)]
struct Collection {
    objects: Objects,
    changes: VecDeque<Change>,
    floor: u64,
    wake: Signal<u64>,
}

/// All objects of all kinds.
#[derive(Debug)]
pub struct Store {
    collections: BTreeMap<&'static str, Collection>,
    revision: u64,
    history: usize,
}

impl Store {
    /// An empty store that keeps the last `history` changes of each kind.
    pub fn new(history: usize) -> Self {
        Self { collections: BTreeMap::new(), revision: 1, history }
    }

    /// The revision of the last change of any kind.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Sets how many changes of each kind are kept from now on.
    pub fn set_history(&mut self, history: usize) {
        self.history = history;
        for collection in self.collections.values_mut() {
            collection.trim(history);
        }
    }

    /// Forgets all history: an older revision can no longer be watched or listed.
    pub fn compact(&mut self) {
        let revision = self.revision;
        for collection in self.collections.values_mut() {
            collection.changes.clear();
            collection.floor = revision;
        }
    }

    /// The current object.
    pub fn get(&self, resource: &Resource, key: &Key) -> Option<Arc<Value>> {
        self.collections.get(resource.plural)?.objects.get(key).cloned()
    }

    /// The current objects of a kind, in order of namespace and name.
    pub fn objects(&self, resource: &Resource) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.collections.get(resource.plural).into_iter().flat_map(|collection| collection.objects.iter())
    }

    /// The objects of a kind as they were at `revision`.
    pub fn objects_at(&self, resource: &Resource, revision: u64) -> Result<Cow<'_, Objects>, TooOld> {
        let Some(collection) = self.collections.get(resource.plural) else { return Ok(Cow::Owned(Objects::new())) };
        if revision < collection.floor {
            return Err(TooOld { oldest: collection.floor });
        }
        if collection.changes.back().is_none_or(|newest| newest.revision <= revision) {
            return Ok(Cow::Borrowed(&collection.objects));
        }
        let mut objects = collection.objects.clone();
        for change in collection.changes.iter().rev().take_while(|change| change.revision > revision) {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), Arc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        Ok(Cow::Owned(objects))
    }

    /// The oldest revision whose state can still be rebuilt.
    pub fn oldest(&self, resource: &Resource) -> u64 {
        self.collections.get(resource.plural).map_or(0, |collection| collection.floor)
    }

    /// The changes of a kind after `revision`, oldest first.
    pub fn changes_after(&self, resource: &Resource, revision: u64) -> Result<Vec<Change>, TooOld> {
        let Some(collection) = self.collections.get(resource.plural) else { return Ok(Vec::new()) };
        if revision < collection.floor {
            return Err(TooOld { oldest: collection.floor });
        }
        let first = collection.changes.partition_point(|change| change.revision <= revision);
        Ok(collection.changes.iter().skip(first).cloned().collect())
    }

    /// Wakes whoever watches the kind; the value is the revision of its last change.
    pub fn subscribe(&mut self, resource: &'static Resource) -> Listener<u64> {
        self.collection(resource).wake.subscribe()
    }

    /// Stores an object under the next revision and returns it as stored.
    pub fn put(&mut self, resource: &'static Resource, key: Key, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        let (revision, history) = (self.revision, self.history);
        set_revision(&mut object, revision);
        let object = Arc::new(object);
        let collection = self.collection(resource);
        let before = collection.objects.insert(key.clone(), Arc::clone(&object));
        let change = Change { revision, key, before, object: Arc::clone(&object), deleted: false };
        collection.record(change, history);
        object
    }

    /// Removes an object; returns its last state with the revision of the removal.
    pub fn remove(&mut self, resource: &'static Resource, key: &Key) -> Option<Arc<Value>> {
        let before = self.collection(resource).objects.remove(key)?;
        self.revision += 1;
        let (revision, history) = (self.revision, self.history);
        let mut last = (*before).clone();
        set_revision(&mut last, revision);
        let object = Arc::new(last);
        let change =
            Change { revision, key: key.clone(), before: Some(before), object: Arc::clone(&object), deleted: true };
        self.collection(resource).record(change, history);
        Some(object)
    }

    fn collection(&mut self, resource: &'static Resource) -> &mut Collection {
        self.collections.entry(resource.plural).or_insert_with(|| Collection {
            objects: Objects::new(),
            changes: VecDeque::new(),
            floor: 0,
            wake: Signal::new(0),
        })
    }
}

impl Collection {
    fn record(&mut self, change: Change, history: usize) {
        let revision = change.revision;
        self.changes.push_back(change);
        self.trim(history);
        self.wake.set(revision);
    }

    fn trim(&mut self, history: usize) {
        while self.changes.len() > history {
            if let Some(dropped) = self.changes.pop_front() {
                self.floor = dropped.revision;
            }
        }
    }
}

fn set_revision(object: &mut Value, revision: u64) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".into(), json!(revision.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::apiserver::resources::by_plural;

    fn secrets() -> &'static Resource {
        by_plural("secrets").expect("served")
    }

    fn secret(mark: u32) -> Value {
        json!({"metadata": {"name": "a"}, "mark": mark})
    }

    #[test]
    fn older_state_is_rebuilt_from_the_history() {
        let (mut store, key) = (Store::new(10), Key::new("n", "a"));
        store.put(secrets(), key.clone(), secret(1));
        let then = store.revision();
        store.put(secrets(), key.clone(), secret(2));
        store.remove(secrets(), &key);
        let objects = store.objects_at(secrets(), then).expect("in history");
        assert_eq!(objects.get(&key).map(|object| object["mark"].clone()), Some(json!(1)));
        assert!(store.objects_at(secrets(), then - 1).expect("in history").is_empty());
    }

    #[test]
    fn history_is_bounded_and_says_from_where_it_can_answer() {
        let mut store = Store::new(2);
        for mark in 0..4 {
            store.put(secrets(), Key::new("n", "a"), secret(mark));
        }
        let oldest = store.revision() - 2;
        assert_eq!(store.changes_after(secrets(), oldest - 1).map(|found| found.len()), Err(TooOld { oldest }));
        assert_eq!(store.changes_after(secrets(), oldest).map(|found| found.len()), Ok(2));
    }

    #[test]
    fn compaction_leaves_only_the_current_revision() {
        let mut store = Store::new(10);
        store.put(secrets(), Key::new("n", "a"), secret(1));
        store.put(secrets(), Key::new("n", "b"), secret(1));
        store.compact();
        let now = store.revision();
        assert!(store.changes_after(secrets(), now).is_ok());
        assert!(store.changes_after(secrets(), now - 1).is_err());
    }

    #[test]
    fn deletion_carries_the_last_state_with_a_revision_of_its_own() {
        let (mut store, key) = (Store::new(10), Key::new("n", "a"));
        let stored = store.put(secrets(), key.clone(), secret(7));
        let gone = store.remove(secrets(), &key).expect("existed");
        assert_eq!(gone["mark"], 7);
        assert_ne!(gone["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"]);
    }
}
