//! Storage classes by name. All are kept: there are few, and a class of another provisioner must be told apart from a
//! missing one.

use crate::model::Class;
use crate::model::meta::MetaExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The classes as last seen.
#[derive(Debug, Default)]
pub struct Classes(Mutex<BTreeMap<String, Arc<Class>>>);

impl Classes {
    /// The class of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Class>> {
        self.lock(|classes| classes.get(name).cloned())
    }

    /// Takes in a class; true if it is new or changed.
    pub fn put(&self, class: Class) -> bool {
        let name = class.metadata.name().to_owned();
        let version = class.metadata.resource_version.clone();
        let old = self.lock(|classes| classes.insert(name, Arc::new(class)));
        old.is_none_or(|old| old.metadata.resource_version != version)
    }

    /// Forgets a class.
    pub fn remove(&self, name: &str) {
        self.lock(|classes| classes.remove(name));
    }

    /// Names of all classes, for the sweep at the end of a list.
    pub fn names(&self) -> Vec<String> {
        self.lock(|classes| classes.keys().cloned().collect())
    }

    fn lock<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Arc<Class>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
