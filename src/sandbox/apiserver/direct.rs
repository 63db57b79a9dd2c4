//! Direct access for controllers and tests: the same operations without HTTP, past faults and the request log.
//!
//! Kinds are named by their plural, which is unique. A namespace is empty for cluster-scoped kinds, and for lists
//! and watches over all namespaces.

use super::ApiServer;
use super::delete::{DeleteOptions, Deleted};
use super::faults::Call;
use super::patch::PatchKind;
use super::refusal::{Reason, Refusal};
use super::resources::{Resource, by_plural};
use super::selectors::Selection;
use super::update::Part;
use super::watching::{Watch, WatchOptions};
use super::world::Place;
use serde_json::Value;

impl ApiServer {
    /// The object.
    pub fn get(&self, plural: &str, namespace: &str, name: &str) -> Result<Value, Refusal> {
        let place = place(plural, namespace, name)?;
        self.world().read(&place).map(|object| (*object).clone())
    }

    /// All objects of a kind, in order of namespace and name.
    pub fn list(&self, plural: &str, namespace: &str) -> Result<Vec<Value>, Refusal> {
        let resource = kind(plural)?;
        let world = self.world();
        let inside =
            world.store.objects(resource).filter(|(key, _)| namespace.is_empty() || key.namespace == namespace);
        Ok(inside.map(|(_, object)| (**object).clone()).collect())
    }

    /// Creates an object and returns it as stored.
    pub fn create(&self, plural: &str, namespace: &str, object: Value) -> Result<Value, Refusal> {
        let resource = kind(plural)?;
        self.world().create(resource, namespace, object, false)
    }

    /// Creates a namespace unless it exists.
    pub fn ensure_namespace(&self, name: &str) {
        self.world().ensure_namespace(name);
    }

    /// Replaces an object, but for its status; a `resourceVersion` in it must be the current one.
    pub fn update(&self, plural: &str, namespace: &str, object: Value) -> Result<Value, Refusal> {
        self.write(plural, namespace, Part::Main, object)
    }

    /// Replaces the status of an object.
    pub fn update_status(&self, plural: &str, namespace: &str, object: Value) -> Result<Value, Refusal> {
        self.write(plural, namespace, Part::Status, object)
    }

    /// Changes an object, but for its status, by a patch.
    pub fn patch(
        &self,
        plural: &str,
        (namespace, name): (&str, &str),
        kind: PatchKind,
        patch: &Value,
    ) -> Result<Value, Refusal> {
        let place = place(plural, namespace, name)?;
        self.world().patch(&place, Part::Main, kind, patch, false)
    }

    /// Changes the status of an object by a patch.
    pub fn patch_status(
        &self,
        plural: &str,
        (namespace, name): (&str, &str),
        kind: PatchKind,
        patch: &Value,
    ) -> Result<Value, Refusal> {
        let place = place(plural, namespace, name)?;
        self.world().patch(&place, Part::Status, kind, patch, false)
    }

    /// Deletes an object, or marks it when finalizers hold it.
    pub fn delete(
        &self,
        plural: &str,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Refusal> {
        let place = place(plural, namespace, name)?;
        self.world().delete(&place, options)
    }

    /// Watches a kind: first all objects as ADDED, then every change, until dropped or for half an hour at least.
    pub fn watch(&self, plural: &str, namespace: &str) -> Result<Watch, Refusal> {
        let resource = kind(plural)?;
        let call =
            Call { verb: "watch".into(), resource: plural.to_owned(), user_agent: "direct".into(), ..Call::default() };
        Watch::open(self, resource, Selection::default().within(namespace), &WatchOptions::default(), call)
    }

    fn write(&self, plural: &str, namespace: &str, part: Part, object: Value) -> Result<Value, Refusal> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let place = place(plural, namespace, name)?;
        self.world().update(&place, part, object, false).map(|updated| updated.object)
    }
}

fn kind(plural: &str) -> Result<&'static Resource, Refusal> {
    by_plural(plural).ok_or_else(|| Refusal::plain(Reason::NotFound, format!("the server does not serve \"{plural}\"")))
}

fn place(plural: &str, namespace: &str, name: &str) -> Result<Place, Refusal> {
    Ok(Place::new(kind(plural)?, namespace, name))
}
