//! Label selectors of claims.

use super::objects::text;
use serde_json::{Map, Value};

/// Whether labels fit a selector; an absent selector fits all. An error for an operator or value list that is none.
pub fn fits(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> Result<bool, String> {
    let Some(selector) = selector else { return Ok(true) };
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    if wanted.into_iter().flatten().any(|(key, value)| label(key) != value.as_str()) {
        return Ok(false);
    }
    let mut all = true;
    for rule in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let values: Vec<&str> =
            rule.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let found = label(text(rule, "/key"));
        let operator = text(rule, "/operator");
        all &= match (operator, values.is_empty()) {
            ("In", false) => found.is_some_and(|value| values.contains(&value)),
            ("NotIn", false) => found.is_none_or(|value| !values.contains(&value)),
            ("Exists", true) => found.is_some(),
            ("DoesNotExist", true) => found.is_none(),
            ("In" | "NotIn", true) => return Err(format!("for '{operator}' operator, values set can't be empty")),
            ("Exists" | "DoesNotExist", false) => {
                return Err(format!("values set must be empty for '{operator}' operator"));
            }
            _ => return Err(format!("{operator:?} is not a valid label selector operator")),
        };
    }
    Ok(all)
}
