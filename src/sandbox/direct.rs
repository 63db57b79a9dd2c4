//! The way by which the sandbox's own controllers reach the API server in their process: no HTTP, no faults on writes,
//! no waiting, so that a run repeats from its seed.
//!
//! Writes obey every rule of the server (versions, finalizers, field checks). Events are merged as clients do: the same
//! text about the same object counts up. [`Feed`] tells of every change. Kinds are named by their plural.

use super::apiserver::refusal::Refusal;
use super::apiserver::watching::{Event, EventKind, Watch};
use super::apiserver::{ApiServer, DeleteOptions, Deleted};
use crate::clock::Clock;
use crate::random::Random;
use futures::future::select_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The server with what its controllers share: time and randomness.
#[derive(Clone)]
pub struct Ground {
    /// The API server.
    pub server: ApiServer,
    /// Stamps of events.
    pub clock: Clock,
    /// Names of events.
    pub random: Random,
}

/// A write that the server refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(Box<Refusal>);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(Box::new(refusal))
    }
}

/// Access under a name that events carry as their source.
#[derive(Clone)]
pub struct Direct {
    ground: Ground,
    component: &'static str,
    /// Identity of an event to its namespace and name.
    told: Arc<Mutex<BTreeMap<String, (String, String)>>>,
}

impl Direct {
    /// Access for one controller.
    pub fn new(ground: &Ground, component: &'static str) -> Self {
        Self { ground: ground.clone(), component, told: Arc::default() }
    }

    /// All objects of a kind, in order of namespace and name; none for a kind that is not served.
    pub fn list(&self, plural: &str) -> Vec<Value> {
        self.ground.server.list(plural, "").unwrap_or_default()
    }

    /// Replaces an object but for its status; refused if the version in it is not the current one.
    pub fn write(&self, plural: &str, object: Value) -> Result<Value, Refused> {
        let namespace = namespace_of(&object);
        Ok(self.ground.server.update(plural, &namespace, object)?)
    }

    /// Replaces the status of an object; refused if the version in it is not the current one.
    pub fn write_status(&self, plural: &str, object: Value) -> Result<Value, Refused> {
        let namespace = namespace_of(&object);
        Ok(self.ground.server.update_status(plural, &namespace, object)?)
    }

    /// Deletes an object; pods go at once when `grace_secs` is 0.
    pub fn delete(&self, plural: &str, object: &Value, grace_secs: Option<i64>) -> Result<Deleted, Refused> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let options = DeleteOptions { grace_secs, ..DeleteOptions::default() };
        Ok(self.ground.server.delete(plural, &namespace_of(object), name, &options)?)
    }

    /// Sends an event. One that cannot be stored is dropped, as clients do.
    pub fn tell(&self, regarding: &Value, warning: bool, reason: &str, message: &str) {
        let kind = if warning { "Warning" } else { "Normal" };
        let of = |field: &str| regarding.get(field).and_then(Value::as_str).unwrap_or_default();
        let identity = format!("{}/{}/{kind}/{reason}/{message}", of("uid"), of("name"));
        let known = self.told.lock().unwrap_or_else(PoisonError::into_inner).get(&identity).cloned();
        if known.is_some_and(|(namespace, name)| self.count_up(&namespace, &name)) {
            return;
        }
        // Events about objects without a namespace live in the default one.
        let namespace = Some(of("namespace")).filter(|namespace| !namespace.is_empty()).unwrap_or("default");
        let name = format!("{}.{:016x}", of("name"), self.ground.random.below(u64::MAX));
        let now = self.now();
        let event = json!({
            "metadata": {"namespace": namespace, "name": name},
            "involvedObject": regarding, "type": kind, "reason": reason, "message": message, "count": 1,
            "firstTimestamp": now, "lastTimestamp": now,
            "source": {"component": self.component}, "reportingComponent": self.component, "reportingInstance": "",
        });
        if self.ground.server.create("events", namespace, event).is_ok() {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.insert(identity, (namespace.to_owned(), name));
        }
    }

    /// Counts an event up; false if it is gone.
    fn count_up(&self, namespace: &str, name: &str) -> bool {
        let Ok(mut event) = self.ground.server.get("events", namespace, name) else { return false };
        let count = event.get("count").and_then(Value::as_i64).unwrap_or(1);
        if let Some(fields) = event.as_object_mut() {
            fields.insert("count".to_owned(), json!(count.saturating_add(1)));
            fields.insert("lastTimestamp".to_owned(), json!(self.now()));
        }
        self.ground.server.update("events", namespace, event).is_ok()
    }

    fn now(&self) -> String {
        self.ground.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

fn namespace_of(object: &Value) -> String {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn version(object: &Value) -> u64 {
    let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// What a feed reports.
#[derive(Debug)]
pub enum News {
    /// An object of a kind is new or changed.
    Changed(&'static str, Arc<Value>),
    /// An object of a kind is gone; its last state.
    Gone(&'static str, Arc<Value>),
    /// The watch of a kind began anew: what is not reported next does not exist any more.
    Relisted(&'static str),
}

/// The changes of some kinds, beginning with the objects that are there.
pub struct Feed {
    server: ApiServer,
    kinds: Vec<(&'static str, Option<Watch>, Option<Event>)>,
}

impl Feed {
    /// A feed over these kinds.
    pub fn new(server: &ApiServer, plurals: &[&'static str]) -> Self {
        Self { server: server.clone(), kinds: plurals.iter().map(|plural| (*plural, None, None)).collect() }
    }

    /// What is known since the last call, in the order in which it happened; never waits.
    pub fn news(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        for (plural, watch, first) in &mut self.kinds {
            if watch.is_none() {
                news.push(News::Relisted(plural));
                *watch = self.server.watch(plural, "").ok();
            }
            let Some(open) = watch else { continue };
            while let Some(event) = first.take().or_else(|| open.try_next()) {
                match event.kind {
                    EventKind::Added | EventKind::Modified => news.push(News::Changed(plural, event.object)),
                    EventKind::Deleted => news.push(News::Gone(plural, event.object)),
                    EventKind::Bookmark | EventKind::Error => {}
                }
            }
        }
        // Versions count all kinds, so they tell what came first.
        news.sort_by_key(|news| match news {
            News::Relisted(_) => 0,
            News::Changed(_, object) | News::Gone(_, object) => version(object),
        });
        news
    }

    /// Waits until there is news. Can be dropped at any time without losing any.
    pub async fn wait(&mut self) {
        let waits = self.kinds.iter_mut().map(|(_, watch, first)| {
            Box::pin(async move {
                let Some(open) = watch else { return };
                match open.next().await {
                    Ok(event) => *first = Some(event),
                    // Cut or over: the next look opens it anew.
                    Err(_) => *watch = None,
                }
            })
        });
        select_all(waits).await;
    }
}
