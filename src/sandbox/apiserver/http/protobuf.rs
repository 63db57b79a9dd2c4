//! Reads the few protobuf bodies that kubectl sends.
//!
//! kubectl 1.37 writes protobuf where it uses its typed clients: `create namespace`, `create secret`,
//! `create configmap`, `create serviceaccount`. Those four kinds are read here, by field number, into JSON; answers
//! are JSON all the same, which such a client accepts. Every other protobuf body is refused by the caller (415).

use crate::sandbox::apiserver::defaults::base64;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

/// What the envelope of a protobuf body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// One field: number, name in JSON, how it is read.
type Field = (u64, &'static str, Read);

#[derive(Clone, Copy)]
enum Read {
    Text,
    Bytes,
    Bool,
    Number,
    Time,
    Message(&'static [Field]),
    TextList,
    List(&'static [Field]),
    TextMap,
    BytesMap,
}

const OWNER: &[Field] = &[
    (1, "kind", Read::Text),
    (3, "name", Read::Text),
    (4, "uid", Read::Text),
    (5, "apiVersion", Read::Text),
    (6, "controller", Read::Bool),
    (7, "blockOwnerDeletion", Read::Bool),
];
const METADATA: &[Field] = &[
    (1, "name", Read::Text),
    (2, "generateName", Read::Text),
    (3, "namespace", Read::Text),
    (5, "uid", Read::Text),
    (6, "resourceVersion", Read::Text),
    (7, "generation", Read::Number),
    (8, "creationTimestamp", Read::Time),
    (11, "labels", Read::TextMap),
    (12, "annotations", Read::TextMap),
    (13, "ownerReferences", Read::List(OWNER)),
    (14, "finalizers", Read::TextList),
];
const NAMESPACE: &[Field] = &[(1, "metadata", Read::Message(METADATA))];
const SECRET: &[Field] = &[
    (1, "metadata", Read::Message(METADATA)),
    (2, "data", Read::BytesMap),
    (3, "type", Read::Text),
    (4, "stringData", Read::TextMap),
    (5, "immutable", Read::Bool),
];
const CONFIG_MAP: &[Field] = &[
    (1, "metadata", Read::Message(METADATA)),
    (2, "data", Read::TextMap),
    (3, "binaryData", Read::BytesMap),
    (4, "immutable", Read::Bool),
];
const SERVICE_ACCOUNT: &[Field] =
    &[(1, "metadata", Read::Message(METADATA)), (4, "automountServiceAccountToken", Read::Bool)];
const TYPE: &[Field] = &[(1, "apiVersion", Read::Text), (2, "kind", Read::Text)];
const ENVELOPE: &[Field] = &[(1, "type", Read::Message(TYPE)), (2, "raw", Read::Bytes)];

/// Reads an enveloped object; `None` for what is damaged or not one of the four kinds.
pub fn decode(body: &[u8]) -> Option<Value> {
    let inside = body.strip_prefix(MAGIC)?;
    let envelope = message(inside, ENVELOPE)?;
    let kind = envelope.pointer("/type/kind")?.as_str()?;
    let fields = match kind {
        "Namespace" => NAMESPACE,
        "Secret" => SECRET,
        "ConfigMap" => CONFIG_MAP,
        "ServiceAccount" => SERVICE_ACCOUNT,
        _ => return None,
    };
    let mut object = message(raw_of(inside)?, fields)?;
    if let Some(object) = object.as_object_mut() {
        object.insert("kind".into(), json!(kind));
        object.insert("apiVersion".into(), envelope.pointer("/type/apiVersion")?.clone());
    }
    Some(object)
}

fn raw_of(envelope: &[u8]) -> Option<&[u8]> {
    let mut rest = envelope;
    while !rest.is_empty() {
        if let (2, Wire::Bytes(raw)) = next(&mut rest)? {
            return Some(raw);
        }
    }
    None
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => Wire::Number(varint(rest)?),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Wire::Bytes(take(rest, length)?)
        }
        1 => Wire::Bytes(take(rest, 8)?),
        5 => Wire::Bytes(take(rest, 4)?),
        _ => return None,
    };
    Some((tag >> 3, value))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn message(bytes: &[u8], fields: &[Field]) -> Option<Value> {
    let (mut rest, mut object) = (bytes, Map::new());
    while !rest.is_empty() {
        let (number, wire) = next(&mut rest)?;
        let Some((_, name, read)) = fields.iter().find(|field| field.0 == number) else { continue };
        put(&mut object, name, *read, &wire)?;
    }
    Some(Value::Object(object))
}

fn put(object: &mut Map<String, Value>, name: &str, read: Read, wire: &Wire) -> Option<()> {
    let value = match (read, wire) {
        (Read::Bool, Wire::Number(number)) => json!(*number != 0),
        (Read::Number, Wire::Number(number)) => json!(number.cast_signed()),
        (Read::Text, Wire::Bytes(bytes)) => json!(text(bytes)?),
        (Read::Bytes, Wire::Bytes(bytes)) => json!(base64(bytes)),
        (Read::Message(fields), Wire::Bytes(bytes)) => message(bytes, fields)?,
        (Read::Time, Wire::Bytes(bytes)) => time(bytes)?,
        (Read::TextList, Wire::Bytes(bytes)) => {
            return list(object, name).map(|list| list.push(json!(text(bytes).unwrap_or_default())));
        }
        (Read::List(fields), Wire::Bytes(bytes)) => {
            let item = message(bytes, fields)?;
            return list(object, name).map(|list| list.push(item));
        }
        (Read::TextMap, Wire::Bytes(bytes)) => return entry(object, name, bytes, Read::Text),
        (Read::BytesMap, Wire::Bytes(bytes)) => return entry(object, name, bytes, Read::Bytes),
        _ => return None,
    };
    object.insert(name.to_owned(), value);
    Some(())
}

fn list<'a>(object: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Vec<Value>> {
    object.entry(name).or_insert_with(|| json!([])).as_array_mut()
}

/// A map is a list of messages, each with a key (1) and a value (2).
fn entry(object: &mut Map<String, Value>, name: &str, bytes: &[u8], read: Read) -> Option<()> {
    let pair = message(bytes, &[(1, "key", Read::Text), (2, "value", read)])?;
    let key = pair.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
    let value = pair.get("value").cloned().unwrap_or(json!(""));
    object.entry(name).or_insert_with(|| json!({})).as_object_mut()?.insert(key, value);
    Some(())
}

/// An absent time is an empty message.
fn time(bytes: &[u8]) -> Option<Value> {
    let fields = message(bytes, &[(1, "seconds", Read::Number)])?;
    let Some(seconds) = fields.get("seconds").and_then(Value::as_i64) else { return Some(Value::Null) };
    Some(json!(Timestamp::from_second(seconds).ok()?.to_string()))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("short");
        [&[number << 3 | 2, length], content].concat()
    }

    fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
        let told = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &told), field(2, raw)].concat()
    }

    #[test]
    fn secret_of_kubectl_is_read() {
        let metadata = [field(1, b"s"), field(8, b""), field(11, &[field(1, b"a"), field(2, b"b")].concat())].concat();
        let data = [field(1, b"k"), field(2, b"v")].concat();
        let raw = [field(1, &metadata), field(2, &data), field(3, b"Opaque")].concat();
        let wanted = json!({
            "kind": "Secret", "apiVersion": "v1", "type": "Opaque", "data": {"k": "dg=="},
            "metadata": {"name": "s", "labels": {"a": "b"}, "creationTimestamp": null},
        });
        assert_eq!(decode(&envelope("Secret", &raw)), Some(wanted));
    }

    #[test]
    fn other_kinds_and_damaged_bodies_are_not_read() {
        assert_eq!(decode(&envelope("Pod", b"")), None);
        let whole = envelope("Namespace", &field(1, &field(1, b"n")));
        assert!(decode(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(decode(whole.get(..length).expect("inside")), None, "{length}");
        }
    }
}
