//! `proto/csi.proto` has the same descriptor as the official CSI package: names, numbers, types, labels, oneofs, enum
//! values, reserved numbers and options, compared in both directions.
//!
//! The other side is `tests/data/csi-1.13.0.json`. The ignored test compares that file with a fresh dump
//! (see `tests/data/README.md`).

use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor,
    ServiceDescriptor, Value as OptionValue,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const OFFICIAL: &str = include_str!("data/csi-1.13.0.json");

#[test]
fn own_proto_file_has_the_official_descriptor() {
    assert_eq!(differences(&ours(), &official()), Vec::<String>::new());
}

#[test]
#[ignore = "needs CSI_DESCRIPTOR_DUMP, a fresh dump of the official package"]
fn checked_in_dump_is_what_the_go_package_gives() {
    let path = std::env::var_os("CSI_DESCRIPTOR_DUMP").expect("CSI_DESCRIPTOR_DUMP names a fresh dump");
    let fresh = std::fs::read(path).expect("the file named by CSI_DESCRIPTOR_DUMP is readable");
    assert!(fresh == OFFICIAL.as_bytes(), "tests/data/csi-1.13.0.json is stale: see tests/data/README.md");
}

#[test]
fn dump_covers_the_whole_interface() {
    let official = official();
    let count = |part: &str| official[part].as_object().map_or(0, Map::len);
    let messages = official["messages"].as_object().expect("messages");
    let entries =
        messages.values().filter(|m| m["options"]["google.protobuf.MessageOptions.map_entry"] == true).count();
    assert_eq!((count("services"), messages.len() - entries, count("enums"), count("extensions")), (5, 104, 10, 7));
}

#[test]
fn comparer_finds_a_falsified_leaf_of_every_kind() {
    let request = "/messages/csi.v1.CreateVolumeRequest";
    for (path, wrong) in [
        (format!("{request}/fields/secrets/number"), json!(9)),
        (format!("{request}/fields/name/type"), json!("TYPE_BYTES")),
        (format!("{request}/fields/name/label"), json!("LABEL_REPEATED")),
        (format!("{request}/fields/capacity_range/type_name"), json!(".csi.v1.Volume")),
        (format!("{request}/fields/secrets/options/csi.v1.csi_secret"), json!(false)),
        ("/messages/csi.v1.VolumeCapability/fields/mount/oneof".to_owned(), json!("other")),
        ("/messages/csi.v1.ListVolumesResponse.VolumeStatus/reserved/0/0".to_owned(), json!(1)),
        ("/messages/csi.v1.VolumeHealth/options/csi.v1.alpha_message".to_owned(), json!(false)),
        ("/enums/csi.v1.VolumeUsage.Unit/values/INODES/number".to_owned(), json!(3)),
        ("/services/Controller/methods/GetSnapshot/input".to_owned(), json!(".csi.v1.GetSnapshotResponse")),
        ("/services/SnapshotMetadata/methods/GetMetadataDelta/server_streaming".to_owned(), json!(false)),
        ("/extensions/csi_secret/number".to_owned(), json!(1058)),
    ] {
        let mut falsified = ours();
        *falsified.pointer_mut(&path).unwrap_or_else(|| panic!("{path} exists")) = wrong;
        let found = differences(&falsified, &official());
        assert_eq!(found.len(), 1, "{path}: {found:?}");
        assert!(found[0].starts_with(&path), "{path}: {found:?}");
    }
}

#[test]
fn comparer_finds_what_is_missing_on_either_side() {
    let fields = "/messages/csi.v1.CreateVolumeRequest/fields";
    let mut short = ours();
    short.pointer_mut(fields).and_then(Value::as_object_mut).and_then(|f| f.remove("secrets")).expect("field");
    assert_eq!(differences(&short, &official()), [format!("{fields}/secrets: missing here")]);
    assert_eq!(differences(&official(), &short), [format!("{fields}/secrets: not in the official descriptor")]);
}

fn official() -> Value {
    serde_json::from_str(OFFICIAL).expect("tests/data/csi-1.13.0.json is JSON")
}

/// Paths of all leaves in which `ours` is not `theirs`.
fn differences(ours: &Value, theirs: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(ours), Some(theirs), &mut found);
    found
}

fn compare(path: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                compare(&format!("{path}/{key}"), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}/{at}"), Some(a), Some(b), found);
            }
        }
        (Some(a), Some(b)) if a == b => {}
        (Some(a), Some(b)) => found.push(format!("{path}: {a} here, {b} in the official descriptor")),
        (None, _) => found.push(format!("{path}: missing here")),
        (_, None) => found.push(format!("{path}: not in the official descriptor")),
    }
}

// === our side, in the form that e2e/tools/dump-descriptor prints ===

fn ours() -> Value {
    let encoded: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/csi_descriptors.bin"));
    let pool = DescriptorPool::decode(encoded).expect("build.rs leaves a descriptor set");
    let file = pool.get_file_by_name("csi.proto").expect("it holds csi.proto");
    dump(&file)
}

fn dump(file: &FileDescriptor) -> Value {
    let (mut messages, mut enums) = (Map::new(), Map::new());
    for found in file.messages() {
        message(&found, &mut messages, &mut enums);
    }
    for found in file.enums() {
        enums.insert(found.full_name().to_owned(), enum_(&found));
    }
    let services: Map<_, _> = file.services().map(|s| (s.name().to_owned(), service(&s))).collect();
    let raw = file.file_descriptor_proto();
    let extensions: Map<_, _> = raw
        .extension
        .iter()
        .map(|x| {
            let mut shape = raw_field(x, &json!({}));
            shape["extends"] = json!(x.extendee());
            (x.name().to_owned(), shape)
        })
        .collect();
    json!({
        "package": raw.package(), "syntax": raw.syntax(), "imports": raw.dependency,
        "messages": messages, "enums": enums, "services": services, "extensions": extensions,
    })
}

/// Adds `of` and everything nested in it, under full names.
fn message(of: &MessageDescriptor, messages: &mut Map<String, Value>, enums: &mut Map<String, Value>) {
    let raw = of.descriptor_proto();
    let fields: Map<_, _> = of.fields().map(|f| (f.name().to_owned(), field(&f))).collect();
    let oneofs: Vec<_> = of.oneofs().map(|o| o.name().to_owned()).collect();
    // Ranges of messages exclude their end.
    let reserved: Vec<_> = raw.reserved_range.iter().map(|r| [r.start(), r.end() - 1]).collect();
    messages.insert(
        of.full_name().to_owned(),
        json!({
            "fields": fields, "oneofs": oneofs, "options": options(&of.options()),
            "reserved": reserved, "reserved_names": raw.reserved_name,
        }),
    );
    for nested in of.child_messages() {
        message(&nested, messages, enums);
    }
    for nested in of.child_enums() {
        enums.insert(nested.full_name().to_owned(), enum_(&nested));
    }
}

fn field(of: &FieldDescriptor) -> Value {
    let mut shape = raw_field(of.field_descriptor_proto(), &options(&of.options()));
    if let Some(oneof) = of.containing_oneof() {
        shape["oneof"] = json!(oneof.name());
    }
    if let Kind::Message(_) | Kind::Enum(_) = of.kind() {
        assert_ne!(shape["type_name"], "", "{} names its type", of.full_name());
    }
    shape
}

fn raw_field(raw: &prost_reflect::prost_types::FieldDescriptorProto, options: &Value) -> Value {
    json!({
        "number": raw.number(), "label": Label::as_str_name(&raw.label()), "type": Type::as_str_name(&raw.r#type()),
        "type_name": raw.type_name(), "json_name": raw.json_name(), "options": options,
    })
}

fn enum_(of: &EnumDescriptor) -> Value {
    let raw = of.enum_descriptor_proto();
    let values: Map<_, _> = of
        .values()
        .map(|v| (v.name().to_owned(), json!({ "number": v.number(), "options": options(&v.options()) })))
        .collect();
    // Ranges of enums include their end.
    let reserved: Vec<_> = raw.reserved_range.iter().map(|r| [r.start(), r.end()]).collect();
    json!({
        "values": values, "options": options(&of.options()),
        "reserved": reserved, "reserved_names": raw.reserved_name,
    })
}

fn service(of: &ServiceDescriptor) -> Value {
    let methods: Map<_, _> = of
        .methods()
        .map(|m| {
            let raw = m.method_descriptor_proto();
            let shape = json!({
                "input": raw.input_type(), "output": raw.output_type(), "options": options(&m.options()),
                "client_streaming": m.is_client_streaming(), "server_streaming": m.is_server_streaming(),
            });
            (m.name().to_owned(), shape)
        })
        .collect();
    json!({ "methods": methods, "options": options(&of.options()) })
}

/// The options that are set; only flags occur in this interface.
fn options(of: &DynamicMessage) -> Value {
    let plain = of.fields().map(|(field, value)| (field.full_name().to_owned(), flag(value)));
    let extensions = of.extensions().map(|(extension, value)| (extension.full_name().to_owned(), flag(value)));
    Value::Object(plain.chain(extensions).collect())
}

fn flag(value: &OptionValue) -> Value {
    json!(value.as_bool().expect("options of this interface are flags"))
}
