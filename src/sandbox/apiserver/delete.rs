//! DELETE: an object goes, at once or when its last finalizer is gone.
//!
//! Promises: preconditions are checked before anything changes; an object with finalizers only gets its
//! `deletionTimestamp`, once; a running pod waits out its grace period until a kubelet deletes it for good.
//!
//! A namespace takes its objects along by itself when the switch `namespace_sweep` is on; without it, that is the
//! work of a namespace controller.

use super::create::add_finalizer;
use super::refusal::{Reason, Refusal};
use super::resources::{self, RESOURCES, Resource};
use super::selectors::Selection;
use super::store::Key;
use super::update::held_by_spec;
use super::world::{Place, World, finalizers, is_terminating, meta, set_field, set_meta, timestamp};
use serde_json::{Value, json};

/// How to delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Only an object with this UID.
    pub uid: Option<String>,
    /// Only this version of the object.
    pub version: Option<String>,
    /// Grace period of pods, in seconds.
    pub grace_secs: Option<i64>,
    /// `Foreground` and `Orphan` add the finalizer that a garbage collector works on.
    pub propagation: Option<String>,
    /// Check only.
    pub dry_run: bool,
}

/// What became of the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted {
    /// It is gone; its last state.
    Gone(Value),
    /// It waits for finalizers or its grace period; its state now.
    Waiting(Value),
}

impl World {
    /// Deletes one object; a namespace that was waiting for it, or is it, may go too.
    pub fn delete(&mut self, place: &Place, options: &DeleteOptions) -> Result<Deleted, Refusal> {
        let deleted = self.delete_one(place, options)?;
        let is_namespace = place.resource.plural == "namespaces";
        if !options.dry_run {
            self.sweep_namespace(if is_namespace { &place.key.name } else { &place.key.namespace });
        }
        Ok(deleted)
    }

    fn delete_one(&mut self, place: &Place, options: &DeleteOptions) -> Result<Deleted, Refusal> {
        let old = self.read(place)?;
        check_preconditions(place, &old, options)?;
        let mut new = (*old).clone();
        mark_namespace(&mut new);
        match options.propagation.as_deref() {
            Some("Foreground") => add_finalizer(&mut new, "foregroundDeletion"),
            Some("Orphan") => add_finalizer(&mut new, "orphan"),
            _ => {}
        }
        let grace = grace_secs(place.resource, &old, options);
        let waits = grace > 0 || !finalizers(&new).is_empty() || held_by_spec(&new);
        if options.dry_run {
            return Ok(if waits { Deleted::Waiting(new) } else { Deleted::Gone(new) });
        }
        if !waits {
            let gone = self.store.remove(place.resource, &place.key).map_or(new, |gone| (*gone).clone());
            return Ok(Deleted::Gone(gone));
        }
        let held_grace = new.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        if !is_terminating(&old) || held_grace.is_some_and(|held| grace < held) {
            set_meta(&mut new, "deletionTimestamp", Some(json!(timestamp(&self.clock, grace))));
            if place.resource.plural != "namespaces" {
                set_meta(&mut new, "deletionGracePeriodSeconds", Some(json!(grace)));
            }
            count_generation(place.resource, &mut new);
        }
        if new != *old {
            new = (*self.store.put(place.resource, place.key.clone(), new)).clone();
        }
        Ok(Deleted::Waiting(new))
    }

    /// Deletes every object of a selection; returns those that were selected.
    pub fn delete_collection(
        &mut self,
        resource: &'static Resource,
        selection: &Selection,
        options: &DeleteOptions,
    ) -> Result<Vec<Value>, Refusal> {
        let keys: Vec<Key> = self
            .store
            .objects(resource)
            .filter(|(_, object)| selection.takes(object))
            .map(|(key, _)| key.clone())
            .collect();
        let mut touched = Vec::new();
        for key in keys {
            match self.delete(&Place { resource, key }, options) {
                Ok(Deleted::Gone(object) | Deleted::Waiting(object)) => touched.push(object),
                Err(refusal) if refusal.reason == Reason::NotFound => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(touched)
    }

    /// Carries a namespace's deletion on: asks its objects to go, and lets it go when none is left.
    pub fn sweep_namespace(&mut self, name: &str) {
        let Some(namespaces) = resources::by_plural("namespaces") else { return };
        let key = Key::new("", name);
        let going = self.store.get(namespaces, &key).filter(|namespace| is_terminating(namespace));
        let Some(going) = going.filter(|_| self.settings.namespace_sweep && !name.is_empty()) else { return };
        let force = DeleteOptions { grace_secs: Some(0), ..DeleteOptions::default() };
        for place in self.objects_to_ask(name) {
            // Nothing can refuse: the object is there and nothing is demanded of it.
            let _outcome = self.delete_one(&place, &force);
        }
        let empty = RESOURCES
            .iter()
            .filter(|resource| resource.namespaced)
            .all(|resource| self.store.objects(resource).all(|(key, _)| key.namespace != name));
        if empty && finalizers(&going).is_empty() {
            self.store.remove(namespaces, &key);
        }
    }

    fn objects_to_ask(&self, namespace: &str) -> Vec<Place> {
        let of_kind = |resource: &'static Resource| {
            let inside = self.store.objects(resource).filter(|(key, _)| key.namespace == namespace);
            inside
                .filter(|(_, object)| !is_terminating(object))
                .map(move |(key, _)| Place { resource, key: key.clone() })
        };
        RESOURCES.iter().filter(|resource| resource.namespaced).flat_map(of_kind).collect()
    }
}

fn check_preconditions(place: &Place, old: &Value, options: &DeleteOptions) -> Result<(), Refusal> {
    let tests = [
        ("UID", options.uid.as_deref(), meta(old, "uid"), "deleted and then recreated"),
        ("ResourceVersion", options.version.as_deref(), meta(old, "resourceVersion"), "modified"),
    ];
    for (word, asked, held, what) in tests {
        if let Some(asked) = asked.filter(|asked| *asked != held) {
            let why = format!(
                "the {word} in the precondition ({asked}) does not match the {word} in record ({held}). The object \
                 might have been {what}"
            );
            let mut refusal = Refusal::conflict(place.resource, &place.key.name, &why);
            // Here the real server names the kind, not the plural.
            refusal.message = refusal.message.replacen(&place.resource.qualified(), place.resource.kind, 1);
            place.resource.kind.clone_into(&mut refusal.details.kind);
            return Err(refusal);
        }
    }
    Ok(())
}

/// Only pods have a grace period; one that never ran or has ended goes at once.
fn grace_secs(resource: &Resource, object: &Value, options: &DeleteOptions) -> i64 {
    let on_a_node = object.pointer("/spec/nodeName").and_then(Value::as_str).is_some_and(|node| !node.is_empty());
    let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    if resource.plural != "pods" || !on_a_node || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    options.grace_secs.or(own).unwrap_or(30).max(0)
}

fn mark_namespace(object: &mut Value) {
    if object.get("kind").and_then(Value::as_str) == Some("Namespace") {
        set_field(object, "status", Some(json!({"phase": "Terminating"})));
    }
}

fn count_generation(resource: &Resource, object: &mut Value) {
    if let Some(held) = object.pointer("/metadata/generation").and_then(Value::as_i64).filter(|_| resource.generation) {
        set_meta(object, "generation", Some(json!(held + 1)));
    }
}
