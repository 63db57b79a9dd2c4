//! The list of wrong fields, and the few shapes in which a field is wrong.

use crate::sandbox::apiserver::refusal::Cause;
use serde_json::Value;

/// Wrong fields found so far.
#[derive(Debug, Default)]
pub struct Findings {
    /// In the order found.
    pub causes: Vec<Cause>,
}

impl Findings {
    /// The field must be there.
    pub fn required(&mut self, field: impl Into<String>, why: &str) {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        self.add("FieldValueRequired", field, message);
    }

    /// The field's value is wrong.
    pub fn invalid(&mut self, field: impl Into<String>, value: &Value, why: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"));
    }

    /// The field's value is not one of the allowed ones.
    pub fn unsupported(&mut self, field: impl Into<String>, value: &Value, allowed: &[&str]) {
        let list: Vec<String> = allowed.iter().map(|it| format!("\"{it}\"")).collect();
        self.add(
            "FieldValueNotSupported",
            field,
            format!("Unsupported value: {value}: supported values: {}", list.join(", ")),
        );
    }

    /// The field may not be set or changed here.
    pub fn forbidden(&mut self, field: impl Into<String>, why: &str) {
        self.add("FieldValueForbidden", field, format!("Forbidden: {why}"));
    }

    /// The field is too long.
    pub fn too_long(&mut self, field: impl Into<String>, max: usize) {
        self.add("FieldValueTooLong", field, format!("Too long: may not be more than {max} bytes"));
    }

    /// The value appears twice.
    pub fn duplicate(&mut self, field: impl Into<String>, value: &Value) {
        self.add("FieldValueDuplicate", field, format!("Duplicate value: {value}"));
    }

    /// One of the allowed texts, if set.
    pub fn one_of(&mut self, field: impl Into<String>, value: Option<&Value>, allowed: &[&str]) {
        if let Some(value) = value.filter(|value| value.as_str().is_none_or(|text| !allowed.contains(&text))) {
            self.unsupported(field, value, allowed);
        }
    }

    /// The field has the value it had, when there is an object before.
    pub fn unchanged(&mut self, field: &str, old: Option<&Value>, new: &Value) {
        let Some(old) = old else { return };
        let path = format!("/{}", field.replace('.', "/"));
        if old.pointer(&path) != new.pointer(&path) {
            self.invalid(field, new.pointer(&path).unwrap_or(&Value::Null), "field is immutable");
        }
    }

    /// Each complaint about a text becomes one wrong field.
    pub fn syntax(&mut self, field: &str, text: &str, complaint: Option<&'static str>) {
        if let Some(why) = complaint {
            self.invalid(field, &Value::from(text), why);
        }
    }

    fn add(&mut self, reason: &'static str, field: impl Into<String>, message: String) {
        self.causes.push(Cause { reason, message, field: field.into() });
    }
}
