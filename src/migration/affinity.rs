//! Reading and changing the required node affinity of a volume object, key by key.
//!
//! Promises that operators, values, order, other keys and unknown fields stay, and that equal keys are never merged.
//! Does not know which keys mean what ([`super::topology`] does).

use super::object::VolumeObject;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The expressions of one term.
pub(super) fn expressions(term: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    term.get("matchExpressions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Whether an expression is about `key`.
pub(super) fn is_about(expression: &Map<String, Value>, key: &str) -> bool {
    expression.get("key").and_then(Value::as_str) == Some(key)
}

/// The values of one expression.
pub(super) fn values(expression: &Map<String, Value>) -> impl Iterator<Item = &str> {
    expression.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether any term has an expression about `key`.
pub fn has_key(pv: &VolumeObject, key: &str) -> bool {
    pv.terms().iter().flat_map(expressions).any(|expression| is_about(expression, key))
}

/// All values under `key` in all terms, sorted and distinct.
pub fn values_of(pv: &VolumeObject, key: &str) -> BTreeSet<String> {
    let about = pv.terms().iter().flat_map(expressions).filter(|expression| is_about(expression, key));
    about.flat_map(values).map(str::to_owned).collect()
}

/// Gives every expression about `old` the key `new`.
pub fn rename(pv: &mut VolumeObject, old: &str, new: &str) {
    for term in pv.terms_mut().into_iter().flatten() {
        let list = term.get_mut("matchExpressions").and_then(Value::as_array_mut);
        for expression in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            if is_about(expression, old) {
                expression.insert("key".to_owned(), new.into());
            }
        }
    }
}

/// Appends `key In values` to one term.
pub(super) fn append_to_term(term: &mut Value, key: &str, values: &[String]) {
    let expression = json!({ "key": key, "operator": "In", "values": values });
    let Some(term) = term.as_object_mut() else { return };
    match term.get_mut("matchExpressions") {
        Some(Value::Array(list)) => list.push(expression),
        _ => {
            term.insert("matchExpressions".to_owned(), Value::Array(vec![expression]));
        }
    }
}

/// Appends `key In values` to every term; creates the affinity with one term when there is none.
pub(super) fn append(pv: &mut VolumeObject, key: &str, values: &[String]) {
    match pv.terms_mut() {
        Some(terms) if !terms.is_empty() => terms.iter_mut().for_each(|term| append_to_term(term, key, values)),
        _ => {
            let mut term = Value::Object(Map::new());
            append_to_term(&mut term, key, values);
            pv.set_terms(vec![term]);
        }
    }
}
