//! The state behind the server's lock, and what every operation shares.
//!
//! Operations (`create`, `update`, `delete`) are methods of [`World`] in files of their own; each runs to its end
//! under the lock, so that two requests never interleave.

use super::refusal::{Reason, Refusal};
use super::resources::{self, Resource};
use super::store::{Key, Store};
use crate::clock::Clock;
use crate::random::Random;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Changes of each kind kept for watches and older lists; some minutes of a busy cluster.
const HISTORY: usize = 20_000;

/// What can be switched on a running server.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether watches may ask for initial events (streaming lists).
    pub watch_list: bool,
    /// Whether new claims, volumes and attributes classes get their protection finalizer, as the admission plug-in
    /// of the real server gives it.
    pub in_use_protection: bool,
    /// Whether a namespace being deleted takes its objects along without a namespace controller.
    pub namespace_sweep: bool,
}

/// One object's place in the API.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its kind.
    pub resource: &'static Resource,
    /// Its key.
    pub key: Key,
}

impl Place {
    /// Builds a place.
    pub fn new(resource: &'static Resource, namespace: &str, name: &str) -> Self {
        Self { resource, key: Key::new(namespace, name) }
    }
}

/// Store, time, randomness and switches.
#[derive(Debug)]
pub struct World {
    /// The objects.
    pub store: Store,
    /// Stamps of `creationTimestamp` and the like.
    pub clock: Clock,
    /// Source of UIDs and generated names.
    pub random: Random,
    /// Switches.
    pub settings: Settings,
}

impl World {
    /// A world with the four namespaces of every cluster.
    pub fn new(clock: Clock, random: Random) -> Self {
        let settings = Settings { watch_list: true, in_use_protection: true, namespace_sweep: true };
        let mut world = Self { store: Store::new(HISTORY), clock, random, settings };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            world.ensure_namespace(name);
        }
        world
    }

    /// Creates a namespace unless it exists.
    pub fn ensure_namespace(&mut self, name: &str) {
        if let Some(namespaces) = resources::by_plural("namespaces") {
            // The only refusal possible for a new name is "already exists", which is what is wanted.
            let _existing = self.create(namespaces, "", json!({"metadata": {"name": name}}), false);
        }
    }

    /// The wall-clock time in the form of `metav1.Time`.
    pub fn now(&self) -> String {
        timestamp(&self.clock, 0)
    }

    /// The object, or 404.
    pub fn read(&self, place: &Place) -> Result<Arc<Value>, Refusal> {
        self.store.get(place.resource, &place.key).ok_or_else(|| Refusal::not_found(place.resource, &place.key.name))
    }
}

/// The clock's time plus some seconds, in the form of `metav1.Time`.
pub fn timestamp(clock: &Clock, plus_secs: i64) -> String {
    let later = k8s_openapi::jiff::SignedDuration::from_secs(plus_secs);
    let time = clock.now().saturating_add(later).unwrap_or_else(|_| clock.now());
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Checks that a body is an object of the kind and fills in what may be left out.
pub fn shape(resource: &Resource, namespace: &str, mut object: Value) -> Result<Value, Refusal> {
    drop_nulls(&mut object);
    let Some(fields) = object.as_object_mut() else {
        let message = format!("the object provided is unrecognized (must be of type {})", resource.kind);
        return Err(Refusal::bad_request(message));
    };
    let told = |fields: &Map<String, Value>, key: &str, wanted: &str| {
        fields.get(key).is_none_or(|found| found.as_str().is_some_and(|text| text.is_empty() || text == wanted))
    };
    if !told(fields, "kind", resource.kind) || !told(fields, "apiVersion", &resource.api_version()) {
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        let version = fields.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let message = format!("{kind} in version \"{version}\" cannot be handled as a {}", resource.kind);
        return Err(Refusal::bad_request(message));
    }
    fields.insert("kind".into(), json!(resource.kind));
    fields.insert("apiVersion".into(), json!(resource.api_version()));
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(Refusal::bad_request("metadata of the object is not a map"));
    };
    settle_namespace(resource, namespace, metadata)?;
    for emptied in ["labels", "annotations", "finalizers", "ownerReferences", "generateName", "managedFields", "uid"] {
        if metadata.get(emptied).is_some_and(is_empty) {
            metadata.remove(emptied);
        }
    }
    metadata.remove("selfLink");
    Ok(object)
}

fn settle_namespace(resource: &Resource, namespace: &str, metadata: &mut Map<String, Value>) -> Result<(), Refusal> {
    let told = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !resource.namespaced {
        metadata.remove("namespace");
    } else if told.is_empty() {
        metadata.insert("namespace".into(), json!(namespace));
    } else if told != namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Removes null fields, which a typed server does not store; lists keep their length.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A string of the metadata, empty when absent.
pub fn meta<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// Whether deletion has begun.
pub fn is_terminating(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// The finalizers; entries that are not text are left out.
pub fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Sets or, with `None`, removes a field of the metadata.
pub fn set_meta(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        match value {
            Some(value) => metadata.insert(key.to_owned(), value),
            None => metadata.remove(key),
        };
    }
}

/// Sets or, with `None`, removes a top-level field.
pub fn set_field(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(fields) = object.as_object_mut() {
        match value {
            Some(value) => fields.insert(key.to_owned(), value),
            None => fields.remove(key),
        };
    }
}

/// Refuses what the server's shape makes impossible, with code 500 and no reason as the real one does.
pub fn internal(message: impl Into<String>) -> Refusal {
    Refusal::plain(Reason::Other(500), message)
}
