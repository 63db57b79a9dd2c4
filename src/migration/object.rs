//! A working copy of a volume object: checked once when read, then changed in place.
//!
//! Promises that labels, annotations and affinity have the shape of the API after [`VolumeObject::read`], and that
//! everything which is not changed comes out as it went in. Knows nothing about plug-ins.

use super::error::TranslateError;
use super::fields::Fields;
use serde_json::{Map, Value};

const TERMS: [&str; 4] = ["spec", "nodeAffinity", "required", "nodeSelectorTerms"];

/// A working copy of a volume object.
#[derive(Clone, Debug)]
pub struct VolumeObject {
    title: String,
    root: Map<String, Value>,
}

impl VolumeObject {
    /// Copies the object and checks the parts that translations touch.
    pub fn read(value: &Value) -> Result<Self, TranslateError> {
        let Value::Object(root) = value else {
            return Err(TranslateError::NotAnObject { kind: "PersistentVolume" });
        };
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let title = format!("PersistentVolume \"{name}\"");
        check_shape(&Fields::of_object(&title, root))?;
        Ok(Self { title, root: root.clone() })
    }

    /// Kind and name, for error texts.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The object as JSON.
    pub fn into_value(self) -> Value {
        Value::Object(self.root)
    }

    /// `metadata.name`; empty when absent.
    pub fn name(&self) -> &str {
        self.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default()
    }

    /// Value of a label; `None` when the key is absent.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "labels", key]).and_then(Value::as_str)
    }

    /// Sets a label unless the key is there.
    pub fn add_label(&mut self, key: &str, value: &str) {
        if self.label(key).is_none() {
            set_at(&mut self.root, &["metadata", "labels", key], value.into());
        }
    }

    /// Value of an annotation; `None` when the key is absent.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "annotations", key]).and_then(Value::as_str)
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        set_at(&mut self.root, &["metadata", "annotations", key], value.into());
    }

    /// `spec`, for typed reading; `None` when absent.
    pub(super) fn spec(&self) -> Result<Option<Fields<'_>>, TranslateError> {
        Fields::of_object(&self.title, &self.root).inner("spec")
    }

    /// A source within `spec`; `None` when absent.
    pub(super) fn source(&self, field: &str) -> Result<Option<Fields<'_>>, TranslateError> {
        match self.spec()? {
            Some(spec) => spec.inner(field),
            None => Ok(None),
        }
    }

    /// Sets a field of `spec`.
    pub(super) fn set_spec(&mut self, field: &str, value: Value) {
        set_at(&mut self.root, &["spec", field], value);
    }

    /// Replaces one source by another.
    pub(super) fn replace_source(&mut self, old: &str, new: &str, source: Map<String, Value>) {
        if let Some(Value::Object(spec)) = self.root.get_mut("spec") {
            spec.remove(old);
        }
        self.set_spec(new, Value::Object(source));
    }

    /// The terms of the required node affinity; empty when there are none.
    pub fn terms(&self) -> &[Value] {
        self.at(&TERMS).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The terms, to be changed in place; `None` when the list is absent.
    pub(super) fn terms_mut(&mut self) -> Option<&mut Vec<Value>> {
        let [first, rest @ ..] = TERMS;
        rest.iter().try_fold(self.root.get_mut(first)?, |value, key| value.get_mut(key))?.as_array_mut()
    }

    /// Sets the terms, creating the affinity around them.
    pub(super) fn set_terms(&mut self, terms: Vec<Value>) {
        set_at(&mut self.root, &TERMS, Value::Array(terms));
    }

    fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.root.get(*first)?, |value, key| value.get(key))
    }
}

/// Fails when a part that translations touch has a wrong type.
fn check_shape(root: &Fields<'_>) -> Result<(), TranslateError> {
    if let Some(metadata) = root.inner("metadata")? {
        metadata.text("name")?;
        metadata.text_map("labels")?;
        metadata.text_map("annotations")?;
    }
    let Some(spec) = root.inner("spec")? else { return Ok(()) };
    let Some(affinity) = spec.inner("nodeAffinity")? else { return Ok(()) };
    let Some(required) = affinity.inner("required")? else { return Ok(()) };
    for term in required.objects("nodeSelectorTerms")? {
        for expression in term.objects("matchExpressions")? {
            expression.text("key")?;
            expression.set_texts("values")?;
        }
    }
    Ok(())
}

/// Sets the value at a path; what is no object on the way becomes one.
fn set_at(map: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => {
            map.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let mut inner = match map.remove(*first) {
                Some(Value::Object(inner)) => inner,
                _ => Map::new(),
            };
            set_at(&mut inner, rest, value);
            map.insert((*first).to_owned(), Value::Object(inner));
        }
    }
}
