//! Strategic merge patch.
//!
//! Promises: maps merge; lists merge by the key of [`super::keys`]; the directives `$patch` (`delete`, `replace`), `$deleteFromPrimitiveList/<list>`, `$setElementOrder/<list>` and `$retainKeys` work as on the real
//! server; no directive is ever stored.

use super::keys::{ListRule, list_rule};
use serde_json::{Map, Value};
use std::collections::VecDeque;

const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// The object after the patch, or why the patch makes no sense.
pub fn apply(plural: &str, old: &Value, patch: &Value) -> Result<Value, String> {
    merge_map(plural, &mut Vec::new(), old, patch)
}

fn merge_map<'p>(plural: &str, path: &mut Vec<&'p str>, old: &Value, change: &'p Value) -> Result<Value, String> {
    let Value::Object(changes) = change else { return Ok(change.clone()) };
    let mut fields = match (old, changes.get("$patch").and_then(Value::as_str)) {
        (_, Some("delete")) => return Ok(Value::Object(Map::new())),
        (_, Some("replace")) => return Ok(plain_map(changes)),
        (_, Some(other)) => return Err(format!("\"{other}\" is not a $patch directive")),
        (Value::Object(fields), _) => fields.clone(),
        _ => Map::new(),
    };
    if let Some(retained) = changes.get("$retainKeys").and_then(Value::as_array) {
        fields.retain(|key, _| retained.iter().any(|kept| kept == key.as_str()));
    }
    for (key, value) in changes {
        if let Some(list) = key.strip_prefix(DELETE_PRIMITIVES) {
            delete_primitives(&mut fields, list, value)?;
        } else if !key.starts_with('$') {
            merge_field(plural, path, &mut fields, (key, value))?;
        }
    }
    for (key, order) in changes {
        if let (Some(list), Some(order)) = (key.strip_prefix(ELEMENT_ORDER), order.as_array()) {
            let rule = list_rule(plural, path, list);
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                let before = old.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                *items = settle_order(std::mem::take(items), order, before, rule);
            }
        }
    }
    Ok(Value::Object(fields))
}

fn merge_field<'p>(
    plural: &str,
    path: &mut Vec<&'p str>,
    fields: &mut Map<String, Value>,
    (key, change): (&'p str, &'p Value),
) -> Result<(), String> {
    let merged = match (fields.get(key), change) {
        (Some(held @ Value::Object(_)), Value::Object(_)) => {
            path.push(key);
            let merged = merge_map(plural, path, held, change);
            path.pop();
            Some(merged?)
        }
        (Some(Value::Array(held)), Value::Array(items)) => {
            let held = held.clone();
            match list_rule(plural, path, key) {
                ListRule::Replace => without_directives(change),
                ListRule::Set => {
                    let both = union(held.clone(), items);
                    Some(Value::Array(settle_order(both, items, &held, ListRule::Set)))
                }
                ListRule::ByKey(merge_key) => {
                    path.extend([key, "*"]);
                    let merged = merge_list(plural, path, held.clone(), (items, merge_key));
                    path.truncate(path.len().saturating_sub(2));
                    Some(Value::Array(settle_order(merged?, items, &held, ListRule::ByKey(merge_key))))
                }
            }
        }
        // Nothing to merge with: the patch's value is taken, but a map that is itself an order to the server is not.
        _ => without_directives(change),
    };
    match merged {
        Some(merged) => fields.insert(key.to_owned(), merged),
        None => fields.remove(key),
    };
    Ok(())
}

fn merge_list<'p>(
    plural: &str,
    path: &mut Vec<&'p str>,
    mut held: Vec<Value>,
    (changes, merge_key): (&'p [Value], &str),
) -> Result<Vec<Value>, String> {
    // One `$patch: replace` among the items makes the patch's list the new one.
    let directive = |item: &Value| item.get("$patch").and_then(Value::as_str).map(str::to_owned);
    if changes.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        let kept = changes.iter().filter(|item| directive(item).is_none());
        return Ok(kept.filter_map(without_directives).collect());
    }
    for change in changes {
        let Some(wanted) = change.get(merge_key) else {
            return Err(format!("map: {change} does not contain declared merge key: {merge_key}"));
        };
        let at = held.iter().position(|item| item.get(merge_key) == Some(wanted));
        match (at, directive(change).as_deref()) {
            (_, Some("delete")) => held.retain(|item| item.get(merge_key) != Some(wanted)),
            (_, Some(other)) => return Err(format!("\"{other}\" is not a $patch directive")),
            (Some(at), _) => {
                if let Some(item) = held.get_mut(at) {
                    *item = merge_map(plural, path, item, change)?;
                }
            }
            (None, _) => held.push(merge_map(plural, path, &Value::Null, change)?),
        }
    }
    Ok(held)
}

fn delete_primitives(fields: &mut Map<String, Value>, list: &str, gone: &Value) -> Result<(), String> {
    let Some(gone) = gone.as_array() else { return Err(format!("{DELETE_PRIMITIVES}{list} is not a list")) };
    if let Some(items) = fields.get_mut(list).and_then(Value::as_array_mut) {
        items.retain(|item| !gone.contains(item));
    }
    Ok(())
}

fn union(mut held: Vec<Value>, more: &[Value]) -> Vec<Value> {
    for item in more {
        if !held.contains(item) {
            held.push(item.clone());
        }
    }
    held
}

/// Orders a merged list as the real server does: what the patch names in the patch's order, what only the server has
/// in the server's order; where both are known from the server, in its order, and new items as early as possible.
fn settle_order(merged: Vec<Value>, patch: &[Value], server: &[Value], rule: ListRule) -> Vec<Value> {
    let same = |item: &Value, other: &Value| match rule {
        ListRule::ByKey(key) => item.get(key).is_some() && item.get(key) == other.get(key),
        ListRule::Set | ListRule::Replace => item == other,
    };
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(item, other));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(patch, item).is_some());
    named.sort_by_key(|item| place(patch, item));
    others.sort_by_key(|item| place(server, item));
    let (mut named, mut others) = (VecDeque::from(named), VecDeque::from(others));
    let mut settled = Vec::with_capacity(named.len() + others.len());
    while let (Some(ours), Some(theirs)) = (named.front(), others.front()) {
        let theirs_first = place(server, theirs).zip(place(server, ours)).is_some_and(|(theirs, ours)| theirs < ours);
        settled.extend(if theirs_first { others.pop_front() } else { named.pop_front() });
    }
    settled.extend(named);
    settled.extend(others);
    settled
}

/// What a patch stores where there is nothing to merge with; nothing for null and for a map with a `$patch` order.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) if fields.contains_key("$patch") => None,
        Value::Object(fields) => Some(plain_map(fields)),
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(without_directives).collect())),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

fn plain_map(fields: &Map<String, Value>) -> Value {
    let plain = fields.iter().filter(|(key, _)| !key.starts_with('$'));
    Value::Object(plain.filter_map(|(key, field)| Some((key.clone(), without_directives(field)?))).collect())
}
