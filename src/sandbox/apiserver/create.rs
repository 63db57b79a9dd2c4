//! POST: a new object.
//!
//! Order as on the real server: namespace must exist and not be going away, then names and stamps, admission
//! (default class, protection finalizers), defaults, field rules, and last the name must be free.

use super::defaults;
use super::refusal::{Cause, Refusal};
use super::resources::{self, Resource};
use super::store::Key;
use super::update::note_phase_change;
use super::validate;
use super::world::{World, internal, is_terminating, meta, set_meta, shape};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// Letters of generated names: no vowels, so that no words arise, and no look-alike digits.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How often a taken generated name is drawn again before the request is refused.
const NAME_TRIES: usize = 8;
/// Longest prefix taken from `generateName`: 63 less five letters.
const PREFIX_MAX: usize = 58;

const DEFAULT_CLASS: [&str; 2] = [
    "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
    "/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class",
];

impl World {
    /// Creates an object and returns it as stored (or as it would be, for a dry run).
    pub fn create(
        &mut self,
        resource: &'static Resource,
        namespace: &str,
        object: Value,
        dry_run: bool,
    ) -> Result<Value, Refusal> {
        let mut object = shape(resource, namespace, object)?;
        self.namespace_accepts(resource, namespace, meta(&object, "name"))?;
        self.stamp(resource, &mut object)?;
        self.admit(resource, &mut object);
        defaults::on_create(resource, &mut object);
        if resource.plural == "persistentvolumes" {
            note_phase_change(&mut object, None, &self.now());
        }
        validate::object(resource, &object, None)?;
        let key = Key::new(if resource.namespaced { namespace } else { "" }, meta(&object, "name"));
        if self.store.get(resource, &key).is_some() {
            return Err(Refusal::already_exists(resource, &key.name));
        }
        Ok(if dry_run { object } else { (*self.store.put(resource, key, object)).clone() })
    }

    fn namespace_accepts(&self, resource: &Resource, namespace: &str, name: &str) -> Result<(), Refusal> {
        let Some(namespaces) = resources::by_plural("namespaces").filter(|_| resource.namespaced) else {
            return Ok(());
        };
        match self.store.get(namespaces, &Key::new("", namespace)) {
            None => Err(Refusal::not_found(namespaces, namespace)),
            Some(found) if is_terminating(&found) => {
                let why =
                    format!("unable to create new content in namespace {namespace} because it is being terminated");
                let mut refusal = Refusal::forbidden(resource, name, &why);
                let message = format!("namespace {namespace} is being terminated");
                refusal.details.causes =
                    vec![Cause { reason: "NamespaceTerminating", message, field: "metadata.namespace".into() }];
                Err(refusal)
            }
            Some(_) => Ok(()),
        }
    }

    fn stamp(&mut self, resource: &'static Resource, object: &mut Value) -> Result<(), Refusal> {
        if !meta(object, "resourceVersion").is_empty() {
            return Err(internal("resourceVersion should not be set on objects to be created"));
        }
        if meta(object, "name").is_empty() && !meta(object, "generateName").is_empty() {
            let name = self.free_name(resource, meta(object, "namespace"), meta(object, "generateName"))?;
            set_meta(object, "name", Some(json!(name)));
        }
        for ignored in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
            set_meta(object, ignored, None);
        }
        set_meta(object, "uid", Some(json!(self.random.uuid())));
        set_meta(object, "creationTimestamp", Some(json!(self.now())));
        if resource.generation {
            set_meta(object, "generation", Some(json!(1)));
        }
        Ok(())
    }

    fn free_name(&mut self, resource: &'static Resource, namespace: &str, prefix: &str) -> Result<String, Refusal> {
        let prefix: String = prefix.chars().take(PREFIX_MAX).collect();
        let mut name = String::new();
        for _ in 0..NAME_TRIES {
            name = format!("{prefix}{}", self.letters(5));
            if self.store.get(resource, &Key::new(namespace, &name)).is_none() {
                return Ok(name);
            }
        }
        Err(Refusal::already_exists(resource, &name))
    }

    fn letters(&self, count: usize) -> String {
        let letter = |_| {
            let at = usize::try_from(self.random.below(LETTERS.len() as u64)).unwrap_or_default();
            LETTERS.get(at).copied().map_or('x', char::from)
        };
        (0..count).map(letter).collect()
    }

    /// What the default admission plug-ins of the real server add.
    fn admit(&self, resource: &Resource, object: &mut Value) {
        let finalizer = match resource.plural {
            "persistentvolumeclaims" => "kubernetes.io/pvc-protection",
            "persistentvolumes" => "kubernetes.io/pv-protection",
            "volumeattributesclasses" => "kubernetes.io/vac-protection",
            _ => return,
        };
        if self.settings.in_use_protection {
            add_finalizer(object, finalizer);
        }
        let beta = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
        let has_class = object.pointer("/spec/storageClassName").is_some() || object.pointer(beta).is_some();
        if resource.plural == "persistentvolumeclaims" && !has_class {
            let class = self.default_class();
            if let (Some(class), Some(spec)) = (class, object.get_mut("spec").and_then(Value::as_object_mut)) {
                spec.insert("storageClassName".into(), json!(class));
            }
        }
    }

    /// The newest default class, the first by name among equally new ones.
    fn default_class(&self) -> Option<String> {
        let is_default = |class: &Value| {
            DEFAULT_CLASS.iter().any(|path| class.pointer(path).and_then(Value::as_str) == Some("true"))
        };
        self.store
            .objects(resources::by_plural("storageclasses")?)
            .filter(|(_, class)| is_default(class))
            .map(|(key, class)| (Reverse(meta(class, "creationTimestamp").to_owned()), key.name.clone()))
            .min()
            .map(|(_, name)| name)
    }
}

/// Adds a finalizer unless it is there.
pub fn add_finalizer(object: &mut Value, finalizer: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut().filter(|list| !list.iter().any(|it| it == finalizer)) {
        list.push(json!(finalizer));
    }
}
