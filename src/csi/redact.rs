//! Prints CSI messages for the log, without what must not be there.
//!
//! Promises:
//! - one line of JSON with the field names of the proto file; what is unset is left out; enum values by name, numbers
//!   that this version does not know as numbers;
//! - fields marked `csi_secret`, and mount flags, are replaced by [`HIDDEN`], keys included; the same form is the `Debug`
//!   of every type that holds such a field.
//!
//! The tables come from `build.rs`, so a field that gets the mark in `proto/csi.proto` is hidden without a change here.

use super::proto::v1;
use prost::encoding::{WireType, decode_key, decode_varint};
use serde_json::{Map, Value};
use std::fmt;

/// What stands in the place of a hidden value (the text that the Go sidecar writes too).
pub const HIDDEN: &str = "***stripped***";

/// The message as one line of JSON.
pub fn render<M: prost::Message + prost::Name>(message: &M) -> String {
    value(M::full_name().as_str(), &message.encode_to_vec()).to_string()
}

// === the shapes, filled in by build.rs ===

struct MessageShape {
    full_name: &'static str,
    fields: &'static [FieldShape],
}

struct FieldShape {
    number: u32,
    name: &'static str,
    kind: Kind,
    repeated: bool,
    hidden: bool,
}

struct EnumShape {
    full_name: &'static str,
    values: &'static [(i64, &'static str)],
}

enum Kind {
    Text,
    Bool,
    Integer,
    TextMap,
    Message(&'static str),
    Enum(&'static str),
}

/// `Debug` of a type that holds hidden fields: the redacted form.
macro_rules! debug_as_redacted {
    ($($message:path),* $(,)?) => {$(
        impl fmt::Debug for $message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&render(self))
            }
        }
    )*};
}

/// The generated tables in a module of their own: they say `pub(super)`.
mod shapes {
    use super::{EnumShape, FieldShape, Kind, MessageShape, fmt, render, v1};
    include!(concat!(env!("OUT_DIR"), "/csi_shapes.rs"));
}

// === walking the encoded message ===

/// One field as it is on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn value(full_name: &str, encoded: &[u8]) -> Value {
    let fields = shapes::MESSAGES
        .binary_search_by(|shape| shape.full_name.cmp(full_name))
        .ok()
        .and_then(|at| shapes::MESSAGES.get(at))
        .map_or(&[][..], |shape| shape.fields);
    let mut object = Map::new();
    for (number, wire) in Fields(encoded) {
        // A field without a shape cannot be judged, so it is not shown.
        if let Some(shape) = fields.iter().find(|shape| shape.number == number) {
            add(&mut object, shape, &wire);
        }
    }
    Value::Object(object)
}

fn add(object: &mut Map<String, Value>, shape: &FieldShape, wire: &Wire<'_>) {
    let name = shape.name.to_owned();
    if shape.hidden {
        object.insert(name, Value::from(HIDDEN));
        return;
    }
    match (&shape.kind, wire) {
        (Kind::TextMap, Wire::Bytes(entry)) => {
            let entries = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(entries) = entries.as_object_mut() {
                let (key, text) = map_entry(entry);
                entries.insert(key, Value::from(text));
            }
        }
        (kind, wire) if shape.repeated => {
            if let Some(list) = object.entry(name).or_insert_with(|| Value::Array(Vec::new())).as_array_mut() {
                list.push(single(kind, wire));
            }
        }
        (kind, wire) => {
            object.insert(name, single(kind, wire));
        }
    }
}

fn single(kind: &Kind, wire: &Wire<'_>) -> Value {
    match (kind, wire) {
        (Kind::Text, Wire::Bytes(text)) => Value::from(String::from_utf8_lossy(text)),
        (Kind::Message(full_name), Wire::Bytes(encoded)) => value(full_name, encoded),
        (Kind::Bool, Wire::Number(number)) => Value::from(*number != 0),
        (Kind::Integer, Wire::Number(number)) => Value::from(number.cast_signed()),
        (Kind::Enum(full_name), Wire::Number(number)) => {
            let number = number.cast_signed();
            enum_name(full_name, number).map_or_else(|| Value::from(number), Value::from)
        }
        // The encoder is generated from the same file as the shapes: other pairs do not exist.
        (Kind::Text | Kind::Message(_) | Kind::TextMap, Wire::Number(_))
        | (Kind::Bool | Kind::Integer | Kind::Enum(_) | Kind::TextMap, Wire::Bytes(_)) => Value::Null,
    }
}

fn enum_name(full_name: &str, number: i64) -> Option<&'static str> {
    let shape = shapes::ENUMS.iter().find(|shape| shape.full_name == full_name)?;
    shape.values.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Key and value of one entry of a `map<string, string>`; a side at its default is not on the wire.
fn map_entry(encoded: &[u8]) -> (String, String) {
    let (mut key, mut text) = (String::new(), String::new());
    for (number, wire) in Fields(encoded) {
        if let Wire::Bytes(bytes) = wire {
            let side = if number == 1 { &mut key } else { &mut text };
            *side = String::from_utf8_lossy(bytes).into_owned();
        }
    }
    (key, text)
}

/// Reads fields off an encoded message; ends at the first byte that is none of the two wire types of this interface.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Wire<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let (number, wire_type) = decode_key(&mut self.0).ok()?;
        let varint = decode_varint(&mut self.0).ok()?;
        match wire_type {
            WireType::Varint => Some((number, Wire::Number(varint))),
            WireType::LengthDelimited => {
                let (bytes, rest) = self.0.split_at_checked(usize::try_from(varint).ok()?)?;
                self.0 = rest;
                Some((number, Wire::Bytes(bytes)))
            }
            WireType::SixtyFourBit | WireType::StartGroup | WireType::EndGroup | WireType::ThirtyTwoBit => None,
        }
    }
}

#[cfg(test)]
mod tests;
