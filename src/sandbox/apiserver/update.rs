//! PUT and what PATCH ends in: a changed object.
//!
//! Promises: a write from an old version is a 409; identity (UID, stamps) cannot be changed; the main path keeps the
//! status and the `status` path keeps the rest; a write that changes nothing gets no new revision; removing the last
//! finalizer of an object being deleted removes the object.

use super::defaults;
use super::patch::{self, PatchKind};
use super::refusal::{Cause, Refusal};
use super::resources::{self, StatusRule};
use super::store::Key;
use super::validate;
use super::world::{Place, World, finalizers, internal, is_terminating, meta, set_field, set_meta, shape};
use serde_json::Value;
use std::sync::Arc;

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but the status.
    Main,
    /// The status.
    Status,
    /// A namespace's own finalizers.
    Finalize,
}

/// Metadata that only the server writes.
const SERVER_OWNED: [&str; 4] = ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
/// Of those, the one that a writer may tell wrongly without being refused.
const IGNORED: &str = "creationTimestamp";
/// Metadata that a status write of a custom resource leaves alone.
const KEPT_BY_STATUS: [&str; 5] = ["labels", "annotations", "finalizers", "ownerReferences", "generateName"];

/// An update's answer: the object, and whether it was created by it.
#[derive(Debug)]
pub struct Updated {
    /// The object as stored.
    pub object: Value,
    /// True for a PUT that created the object.
    pub created: bool,
}

impl World {
    /// Replaces (a part of) an object.
    pub fn update(&mut self, place: &Place, part: Part, object: Value, dry_run: bool) -> Result<Updated, Refusal> {
        let new = shape(place.resource, &place.key.namespace, object)?;
        check_name(place, &new)?;
        let Some(old) = self.store.get(place.resource, &place.key) else {
            return self.create_by_update(place, part, new, dry_run);
        };
        check_uid(place, &old, &new)?;
        check_version(place, &old, &new)?;
        let object = self.replace(place, part, &old, new, dry_run)?;
        Ok(Updated { object, created: false })
    }

    /// Changes (a part of) an object by a patch.
    pub fn patch(
        &mut self,
        place: &Place,
        part: Part,
        kind: PatchKind,
        patch: &Value,
        dry_run: bool,
    ) -> Result<Value, Refusal> {
        if kind == PatchKind::Strategic && place.resource.custom {
            return Err(patch::unsupported());
        }
        let old = self.read(place)?;
        let patched = patch::apply(kind, place.resource, &old, patch)?;
        let new = shape(place.resource, &place.key.namespace, patched)?;
        check_name(place, &new)?;
        check_version(place, &old, &new)?;
        self.replace(place, part, &old, new, dry_run)
    }

    fn create_by_update(&mut self, place: &Place, part: Part, new: Value, dry_run: bool) -> Result<Updated, Refusal> {
        if !place.resource.create_on_update || part != Part::Main {
            return Err(Refusal::not_found(place.resource, &place.key.name));
        }
        if !meta(&new, "uid").is_empty() {
            let why = format!("Precondition failed: UID in precondition: {}, UID in object meta: ", meta(&new, "uid"));
            return Err(Refusal::conflict(place.resource, &place.key.name, &why));
        }
        let object = self.create(place.resource, &place.key.namespace, new, dry_run)?;
        Ok(Updated { object, created: true })
    }

    fn replace(
        &mut self,
        place: &Place,
        part: Part,
        old: &Arc<Value>,
        mut new: Value,
        dry_run: bool,
    ) -> Result<Value, Refusal> {
        keep_identity(place, old, &mut new)?;
        keep_other_part(place, part, old, &mut new);
        count_generation(place, old, &mut new);
        defaults::on_update(place.resource, &mut new);
        if part == Part::Status && place.resource.plural == "persistentvolumes" {
            note_phase_change(&mut new, Some(old), &self.now());
        }
        validate::metadata_update(place.resource, old, &new)?;
        match part {
            Part::Main => {
                self.may_grow(place, old, &new)?;
                validate::object(place.resource, &new, Some(old))?;
            }
            Part::Status => validate::status_update(place.resource, old, &new)?,
            Part::Finalize => {}
        }
        Ok(self.commit(place, old, new, dry_run))
    }

    /// A bound claim may ask for more only if its class allows it, as the admission plug-in of the real server says.
    fn may_grow(&self, place: &Place, old: &Value, new: &Value) -> Result<(), Refusal> {
        if place.resource.plural != "persistentvolumeclaims" || !validate::claim_grows(old, new) {
            return Ok(());
        }
        let text = |path: &str| old.pointer(path).and_then(Value::as_str).unwrap_or_default();
        if text("/status/phase") != "Bound" {
            let why = "Only bound persistent volume claims can be expanded";
            return Err(Refusal::forbidden(place.resource, &place.key.name, why));
        }
        let class = resources::by_plural("storageclasses")
            .and_then(|classes| self.store.get(classes, &Key::new("", text("/spec/storageClassName"))));
        if class.is_some_and(|class| class.get("allowVolumeExpansion") == Some(&Value::Bool(true))) {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                   support resize";
        Err(Refusal::forbidden(place.resource, &place.key.name, why))
    }

    fn commit(&mut self, place: &Place, old: &Arc<Value>, mut new: Value, dry_run: bool) -> Value {
        set_meta(&mut new, "resourceVersion", old.pointer("/metadata/resourceVersion").cloned());
        if dry_run || new == **old {
            return new;
        }
        if is_terminating(&new) && grace(&new) == 0 && finalizers(&new).is_empty() && !held_by_spec(&new) {
            // The last state with finalizers is what the deletion event shows; the removal itself is never stored.
            if let Some(gone) = self.store.remove(place.resource, &place.key) {
                set_meta(&mut new, "resourceVersion", gone.pointer("/metadata/resourceVersion").cloned());
            }
            self.sweep_namespace(&place.key.namespace);
            return new;
        }
        (*self.store.put(place.resource, place.key.clone(), new)).clone()
    }
}

/// A volume's status tells since when it is in its phase, unless the writer says so itself.
pub fn note_phase_change(new: &mut Value, old: Option<&Value>, now: &str) {
    let told = |object: &Value, key: &str| object.get("status").and_then(|status| status.get(key)).cloned();
    let held = old.and_then(|old| told(old, "lastPhaseTransitionTime"));
    let same_phase = old.is_some_and(|old| told(old, "phase") == told(new, "phase"));
    let stamp = match told(new, "lastPhaseTransitionTime") {
        Some(own) if same_phase || Some(&own) != held.as_ref() => Some(own),
        _ if same_phase => held,
        _ => Some(Value::from(now)),
    };
    if let (Some(stamp), Some(status)) = (stamp, new.get_mut("status").and_then(Value::as_object_mut)) {
        status.insert("lastPhaseTransitionTime".into(), stamp);
    }
}

fn check_name(place: &Place, new: &Value) -> Result<(), Refusal> {
    match meta(new, "name") {
        name if name == place.key.name => Ok(()),
        // Without a name the real server says that it cannot match object and path.
        name => Err(Refusal::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            place.key.name
        ))),
    }
}

/// A PUT of an object with another UID is about another object.
fn check_uid(place: &Place, old: &Value, new: &Value) -> Result<(), Refusal> {
    let uid = meta(new, "uid");
    if !uid.is_empty() && uid != meta(old, "uid") {
        let held = meta(old, "uid");
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {held}");
        return Err(Refusal::conflict(place.resource, &place.key.name, &why));
    }
    Ok(())
}

fn check_version(place: &Place, old: &Value, new: &Value) -> Result<(), Refusal> {
    let asked = meta(new, "resourceVersion");
    if asked.is_empty() || asked == "0" {
        if place.resource.unconditional_update {
            return Ok(());
        }
        let cause = Cause {
            reason: "FieldValueInvalid",
            message: "Invalid value: 0: must be specified for an update".into(),
            field: "metadata.resourceVersion".into(),
        };
        return Err(Refusal::invalid(place.resource.group, place.resource.plural, &place.key.name, vec![cause]));
    }
    if asked.parse::<u64>().is_err() {
        return Err(internal(format!("strconv.ParseUint: parsing \"{asked}\": invalid syntax")));
    }
    if asked == meta(old, "resourceVersion") { Ok(()) } else { Err(Refusal::modified(place.resource, &place.key.name)) }
}

fn keep_identity(place: &Place, old: &Value, new: &mut Value) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    for field in SERVER_OWNED {
        let held = old.get("metadata").and_then(|metadata| metadata.get(field));
        let told = new.get("metadata").and_then(|metadata| metadata.get(field));
        if let Some(told) = told.filter(|told| field != IGNORED && Some(*told) != held) {
            let message = format!("Invalid value: {told}: field is immutable");
            causes.push(Cause { reason: "FieldValueInvalid", message, field: format!("metadata.{field}") });
        }
        set_meta(new, field, held.cloned());
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(place.resource.group, place.resource.kind, &place.key.name, causes))
}

fn keep_other_part(place: &Place, part: Part, old: &Value, new: &mut Value) {
    let rule = place.resource.status;
    let keep = |new: &mut Value, key: &str| set_field(new, key, old.get(key).cloned());
    match part {
        Part::Main => {
            if rule != StatusRule::None {
                keep(new, "status");
            }
            if place.resource.plural == "namespaces" {
                keep(new, "spec");
            }
        }
        Part::Status => {
            let told = new.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
            let held = old.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
            for key in told.iter().chain(&held).filter(|key| !matches!(key.as_str(), "metadata" | "status")) {
                keep(new, key);
            }
            if rule == StatusRule::Alone {
                for key in KEPT_BY_STATUS {
                    set_meta(new, key, old.get("metadata").and_then(|metadata| metadata.get(key)).cloned());
                }
            }
        }
        Part::Finalize => keep(new, "status"),
    }
}

fn count_generation(place: &Place, old: &Value, new: &mut Value) {
    if !place.resource.generation {
        return;
    }
    let without = |object: &Value| {
        let mut rest = object.clone();
        set_field(&mut rest, "metadata", None);
        if place.resource.has_status() {
            set_field(&mut rest, "status", None);
        }
        rest
    };
    let held = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(1);
    let counted = if without(old) == without(new) { held } else { held + 1 };
    set_meta(new, "generation", Some(Value::from(counted)));
}

fn grace(object: &Value) -> i64 {
    object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0)
}

/// A namespace also has finalizers in its spec.
pub fn held_by_spec(object: &Value) -> bool {
    let of_namespace = object.get("kind").and_then(Value::as_str) == Some("Namespace");
    let list = object.pointer("/spec/finalizers").and_then(Value::as_array);
    of_namespace && list.is_some_and(|list| !list.is_empty())
}
