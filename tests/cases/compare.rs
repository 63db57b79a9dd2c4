//! Comparison in the table's sense: only what is expected is asserted; absent, null, false and empty are equal.

use serde_json::{Value, json};

/// Fields that are asserted as whole maps.
const WHOLE: [&str; 5] = ["annotations", "parameters", "mutable_parameters", "secrets", "finalizers_after"];

/// The first difference, or none.
pub fn difference(expected: &Value, observed: &Value) -> Option<String> {
    at("", expected, observed)
}

fn at(path: &str, expected: &Value, observed: &Value) -> Option<String> {
    if is_empty(expected) && is_empty(observed) {
        return None;
    }
    let differs = || Some(format!("{path}: expected {expected}, got {observed}"));
    match (expected, observed) {
        (Value::Object(wanted), Value::Object(got)) => {
            let whole = WHOLE.iter().any(|name| path.ends_with(&format!("/{name}")));
            if whole
                && let Some((key, value)) =
                    got.iter().find(|(key, value)| !is_empty(value) && !wanted.contains_key(*key))
            {
                return Some(format!("{path}/{key}: unexpected {value}"));
            }
            if wanted.is_empty() && !whole {
                return None;
            }
            wanted
                .iter()
                .find_map(|(key, value)| at(&format!("{path}/{key}"), value, got.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
            let (mut wanted, mut got) = (wanted.clone(), got.clone());
            if path.ends_with("/matchExpressions") {
                // Their order means nothing.
                wanted.sort_by_key(|expression| expression["key"].to_string());
                got.sort_by_key(|expression| expression["key"].to_string());
            }
            let mut pairs = wanted.iter().zip(&got).enumerate();
            pairs.find_map(|(index, (wanted, got))| at(&format!("{path}/{index}"), wanted, got))
        }
        (Value::Object(wanted), _) if !wanted.is_empty() => {
            // Every expected field has to be empty then.
            wanted
                .iter()
                .find_map(|(key, value)| at(&format!("{path}/{key}"), value, &Value::Null))
                .and_then(|_| differs())
        }
        (Value::Array(_) | Value::Object(_), _) => differs(),
        _ => {
            if expected == observed {
                None
            } else {
                differs()
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// The expectation with one value falsified, for each of its values.
pub fn falsified(expected: &Value) -> Vec<(String, Value)> {
    let mut paths = Vec::new();
    leaves(expected, String::new(), &mut paths);
    paths
        .into_iter()
        .map(|path| {
            let mut other = expected.clone();
            let leaf = other.pointer_mut(&path).expect("the path was just found");
            *leaf = falsify(leaf);
            (path, other)
        })
        .collect()
}

fn leaves(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(value, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, value) in list.iter().enumerate() {
                leaves(value, format!("{path}/{index}"), found);
            }
        }
        _ => found.push(path),
    }
}

fn falsify(value: &Value) -> Value {
    match value {
        Value::Null | Value::String(_) => Value::String(format!("{}-falsified", value.as_str().unwrap_or_default())),
        Value::Bool(flag) => Value::Bool(!flag),
        Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 1.0),
        Value::Array(_) => json!(["falsified"]),
        Value::Object(_) => json!({ "falsified": "falsified" }),
    }
}

#[test]
fn comparison_sees_every_kind_of_difference() {
    let same = [
        (json!({"a": null}), json!({})),
        (json!({"a": {}}), json!({"a": null})),
        (json!({"a": 1}), json!({"a": 1, "b": 2})),
        (json!({"a": ""}), json!({"a": false})),
    ];
    for (expected, observed) in same {
        assert_eq!(difference(&expected, &observed), None);
    }
    let different = [
        (json!({"a": null}), json!({"a": {"b": 1}})),
        (json!({"a": {"b": 1}}), json!({"a": null})),
        (json!({"a": [1]}), json!({"a": [1, 2]})),
        (json!({"parameters": {"a": 1}}), json!({"parameters": {"a": 1, "b": 2}})),
        (json!({"parameters": {}}), json!({"parameters": {"b": 2}})),
        (json!({"a": 0}), json!({})),
    ];
    for (expected, observed) in different {
        assert!(difference(&expected, &observed).is_some(), "{expected} {observed}");
    }
}
