//! JSON patch, RFC 6902: add, remove, replace, move, copy, test.
//!
//! As the real server's library does, `remove` of an absent path is a failure, and nothing is changed unless all
//! operations apply.

use serde_json::Value;

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It is not a JSON patch.
    Malformed(String),
    /// An operation does not fit the object, or a test failed.
    DoesNotApply(String),
}

/// The object after all operations.
pub fn apply(old: &Value, patch: &Value) -> Result<Value, Failure> {
    let Some(operations) = patch.as_array() else {
        return Err(Failure::Malformed("a JSON patch is a list of operations".into()));
    };
    let mut object = old.clone();
    for operation in operations {
        step(&mut object, operation)?;
    }
    Ok(object)
}

fn step(object: &mut Value, operation: &Value) -> Result<(), Failure> {
    let path = text(operation, "path")?;
    match text(operation, "op")? {
        "add" => add(object, path, value(operation)?),
        "remove" => remove(object, path).map(drop),
        "replace" => {
            let wanted = value(operation)?;
            let held = object.pointer_mut(path).ok_or_else(|| missing(path))?;
            *held = wanted;
            Ok(())
        }
        "move" => {
            let moved = remove(object, text(operation, "from")?)?;
            add(object, path, moved)
        }
        "copy" => {
            let from = text(operation, "from")?;
            let copied = object.pointer(from).cloned().ok_or_else(|| missing(from))?;
            add(object, path, copied)
        }
        "test" => {
            let wanted = operation.get("value").cloned().unwrap_or(Value::Null);
            // An absent field equals null.
            if object.pointer(path).unwrap_or(&Value::Null) == &wanted {
                return Ok(());
            }
            Err(Failure::DoesNotApply(format!("testing value {path} failed")))
        }
        other => Err(Failure::Malformed(format!("unknown operation \"{other}\""))),
    }
}

fn text<'a>(operation: &'a Value, key: &str) -> Result<&'a str, Failure> {
    let found = operation.get(key).and_then(Value::as_str);
    found.ok_or_else(|| Failure::Malformed(format!("operation without \"{key}\"")))
}

fn value(operation: &Value) -> Result<Value, Failure> {
    operation.get("value").cloned().ok_or_else(|| Failure::Malformed("operation without \"value\"".into()))
}

fn missing(path: &str) -> Failure {
    Failure::DoesNotApply(format!("there is nothing at {path}"))
}

fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), Failure> {
    if path.is_empty() {
        *object = value;
        return Ok(());
    }
    let (parent, last) = split(path).ok_or_else(|| missing(path))?;
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.insert(last, value);
        }
        Some(Value::Array(items)) if last == "-" => items.push(value),
        Some(Value::Array(items)) => {
            let at = last.parse::<usize>().ok().filter(|at| *at <= items.len()).ok_or_else(|| missing(path))?;
            items.insert(at, value);
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<Value, Failure> {
    let (parent, last) = split(path).ok_or_else(|| missing(path))?;
    let removed = match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.remove(&last),
        Some(Value::Array(items)) => {
            let at = last.parse::<usize>().ok().filter(|at| *at < items.len());
            at.map(|at| items.remove(at))
        }
        _ => None,
    };
    removed.ok_or_else(|| missing(path))
}
