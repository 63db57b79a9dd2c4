//! What the cluster offers: labels of nodes and the topology keys that our driver registered on them.
//!
//! Promise: aggregates are computed once per change of the cluster and shared by all claims (weak point W20).

use super::term;
use crate::model::Segments;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sorted, distinct topology keys.
pub type Keys = Vec<String>;

/// Nodes and registrations by node name.
#[derive(Debug, Default)]
pub struct Nodes {
    labels: BTreeMap<String, Segments>,
    /// `None` = there is a `CSINode` without our driver.
    registered: BTreeMap<String, Option<Keys>>,
    aggregates: BTreeMap<Keys, Arc<Vec<Segments>>>,
    everywhere: Option<Arc<Vec<Segments>>>,
}

impl Nodes {
    /// Takes in a node's labels; true if they changed.
    pub fn put_node(&mut self, name: &str, labels: Segments) -> bool {
        let changed = self.labels.get(name) != Some(&labels);
        if changed {
            self.labels.insert(name.to_owned(), labels);
            self.changed();
        }
        changed
    }

    /// Takes in a `CSINode`: the keys of our driver, `None` if it is not registered there. True if it changed.
    pub fn put_registration(&mut self, node: &str, keys: Option<Vec<String>>) -> bool {
        let keys = keys.map(|keys| keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Keys>());
        let changed = self.registered.get(node) != Some(&keys);
        if changed {
            self.registered.insert(node.to_owned(), keys);
            self.changed();
        }
        changed
    }

    /// The node is gone.
    pub fn remove_node(&mut self, name: &str) {
        self.labels.remove(name);
        self.changed();
    }

    /// The `CSINode` is gone.
    pub fn remove_registration(&mut self, node: &str) {
        self.registered.remove(node);
        self.changed();
    }

    /// Names of all nodes, for the sweep at the end of a list.
    pub fn node_names(&self) -> Vec<String> {
        self.labels.keys().cloned().collect()
    }

    /// Names of all `CSINode`s, for the sweep at the end of a list.
    pub fn registration_names(&self) -> Vec<String> {
        self.registered.keys().cloned().collect()
    }

    /// Labels of a node.
    pub fn labels(&self, name: &str) -> Option<&Segments> {
        self.labels.get(name)
    }

    /// The `CSINode` of a node: the keys of our driver, or nothing in it if the driver is not registered there.
    pub fn registration(&self, node: &str) -> Option<&Option<Keys>> {
        self.registered.get(node)
    }

    /// The distinct key sets of all registrations, in order (1.4 points 2 and 3).
    pub fn key_sets(&self) -> Vec<Keys> {
        let sets: BTreeSet<&Keys> = self.registered.values().flatten().filter(|keys| !keys.is_empty()).collect();
        sets.into_iter().cloned().collect()
    }

    /// The places of all key sets together, sorted.
    pub fn everywhere(&mut self) -> Arc<Vec<Segments>> {
        if let Some(known) = &self.everywhere {
            return Arc::clone(known);
        }
        let sets = self.key_sets();
        let places = match sets.as_slice() {
            [only] => self.aggregate(only),
            many => {
                let all = many.iter().flat_map(|keys| self.aggregate(keys).as_ref().clone()).collect();
                Arc::new(term::sorted(all))
            }
        };
        self.everywhere = Some(Arc::clone(&places));
        places
    }

    fn changed(&mut self) {
        self.aggregates.clear();
        self.everywhere = None;
    }

    /// One term for each place that nodes with at least these registered keys are in (1.4 point 4), sorted.
    pub fn aggregate(&mut self, keys: &Keys) -> Arc<Vec<Segments>> {
        if let Some(known) = self.aggregates.get(keys) {
            return Arc::clone(known);
        }
        let places = self
            .registered
            .iter()
            .filter(|(_, registered)| {
                registered.as_ref().is_some_and(|have| keys.iter().all(|key| have.binary_search(key).is_ok()))
            })
            .filter_map(|(node, _)| place(self.labels.get(node)?, keys))
            .collect();
        let places = Arc::new(term::sorted(places));
        self.aggregates.insert(keys.clone(), Arc::clone(&places));
        places
    }
}

/// The node's term: each key with its label, or `None` if one is missing.
pub fn place(labels: &Segments, keys: &Keys) -> Option<Segments> {
    keys.iter().map(|key| labels.get(key).map(|value| (key.clone(), value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weak point W20: claims share what was computed, until a node changes.
    #[test]
    fn places_are_computed_once_per_change_of_the_cluster() {
        let mut nodes = Nodes::default();
        let labels = |zone: &str| Segments::from([("zone".to_owned(), zone.to_owned())]);
        nodes.put_registration("n1", Some(vec!["zone".to_owned()]));
        nodes.put_node("n1", labels("a"));
        let keys: Keys = ["zone".to_owned()].into_iter().collect();
        let first = nodes.aggregate(&keys);
        nodes.put_node("n1", labels("a"));
        assert!(Arc::ptr_eq(&first, &nodes.aggregate(&keys)));
        nodes.put_node("n1", labels("b"));
        assert_eq!(*nodes.aggregate(&keys), [labels("b")]);
    }
}
