//! Merge patch, RFC 7386: maps merge, null removes, everything else replaces.

use serde_json::{Map, Value};

/// The object after the patch.
pub fn apply(old: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut fields = match old {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            let held = fields.get(key).unwrap_or(&Value::Null);
            let merged = apply(held, change);
            fields.insert(key.clone(), merged);
        }
    }
    Value::Object(fields)
}
