//! Typed reading of one JSON object and building of another.
//!
//! Promises that an absent field and `null` read alike (as in the API) and that a field of a wrong type is an error
//! which names it. Knows nothing about plug-ins.

use super::error::TranslateError;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A JSON object that is read field by field.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    /// Kind and name of the API object, for errors.
    object: &'a str,
    /// Path of this object within the API object; empty for the API object itself.
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The API object itself.
    pub(super) fn of_object(object: &'a str, map: &'a Map<String, Value>) -> Self {
        Self { object, path: String::new(), map }
    }

    /// Kind and name of the API object.
    pub(super) fn object(&self) -> &'a str {
        self.object
    }

    /// Path of a field within the API object.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn set(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &'static str) -> TranslateError {
        TranslateError::WrongType { object: self.object.to_owned(), field: self.path_of(key), expected }
    }

    /// A text that may be absent.
    pub(super) fn set_text(&self, key: &str) -> Result<Option<&'a str>, TranslateError> {
        match self.set(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    /// A text; empty when absent.
    pub(super) fn text(&self, key: &str) -> Result<&'a str, TranslateError> {
        Ok(self.set_text(key)?.unwrap_or_default())
    }

    /// A flag; false when absent.
    pub(super) fn flag(&self, key: &str) -> Result<bool, TranslateError> {
        match self.set(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    /// A 32-bit number; 0 when absent.
    pub(super) fn number(&self, key: &str) -> Result<i32, TranslateError> {
        let expected = "a whole number of 32 bits";
        match self.set(key) {
            None => Ok(0),
            Some(value) => {
                value.as_i64().and_then(|number| i32::try_from(number).ok()).ok_or_else(|| self.wrong(key, expected))
            }
        }
    }

    /// An object that may be absent.
    pub(super) fn inner(&self, key: &str) -> Result<Option<Self>, TranslateError> {
        match self.set(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { object: self.object, path: self.path_of(key), map })),
            Some(_) => Err(self.wrong(key, "an object")),
        }
    }

    /// A list of objects; empty when absent.
    pub(super) fn objects(&self, key: &str) -> Result<Vec<Self>, TranslateError> {
        let read = |(index, item): (usize, &'a Value)| match item {
            Value::Object(map) => {
                Ok(Self { object: self.object, path: format!("{}[{index}]", self.path_of(key)), map })
            }
            _ => Err(self.wrong(key, "a list of objects")),
        };
        match self.set(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().enumerate().map(read).collect(),
            Some(_) => Err(self.wrong(key, "a list of objects")),
        }
    }

    /// A list of texts that may be absent.
    pub(super) fn set_texts(&self, key: &str) -> Result<Option<Vec<&'a str>>, TranslateError> {
        let read = |item: &'a Value| item.as_str().ok_or_else(|| self.wrong(key, "a list of texts"));
        match self.set(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items.iter().map(read).collect::<Result<_, _>>()?)),
            Some(_) => Err(self.wrong(key, "a list of texts")),
        }
    }

    /// A map of texts; empty when absent. A value of `null` reads as empty, as in the API.
    pub(super) fn text_map(&self, key: &str) -> Result<BTreeMap<&'a str, &'a str>, TranslateError> {
        match self.inner(key)? {
            None => Ok(BTreeMap::new()),
            Some(inner) => inner.map.keys().map(|name| Ok((name.as_str(), inner.text(name)?))).collect(),
        }
    }
}

/// A JSON object that is built field by field.
#[derive(Default)]
pub(super) struct Built(Map<String, Value>);

impl Built {
    /// Sets the field in any case.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Sets a text that the API leaves out when it is empty.
    pub(super) fn with_text(self, key: &str, text: &str) -> Self {
        if text.is_empty() { self } else { self.with(key, text) }
    }

    /// Sets a flag that the API leaves out when it is false.
    pub(super) fn with_flag(self, key: &str, flag: bool) -> Self {
        if flag { self.with(key, true) } else { self }
    }

    /// The object.
    pub(super) fn done(self) -> Map<String, Value> {
        self.0
    }
}

/// A reference to a secret within a CSI source.
pub(super) fn secret_reference(name: &str, namespace: &str) -> Map<String, Value> {
    Built::default().with("name", name).with("namespace", namespace).done()
}
