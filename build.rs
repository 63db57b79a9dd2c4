//! Generates the CSI types from `proto/csi.proto`, without `protoc`.
//!
//! Leaves three files in `OUT_DIR`:
//! - `csi.v1.rs`: messages and clients; the server half only with feature `sandbox`;
//! - `csi_shapes.rs`: what `src/csi/redact.rs` needs to print a message without its secrets. The `csi_secret` option is
//!   not part of the generated types, so it is read here from the descriptors;
//! - `csi_descriptors.bin`: the encoded `FileDescriptorSet`, for `tests/descriptor.rs`.

use prost_reflect::{DescriptorPool, EnumDescriptor, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=proto/csi.proto");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run by cargo only")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_file("csi.proto")?;
    fs::write(out.join("csi_descriptors.bin"), compiler.encode_file_descriptor_set())?;
    fs::write(out.join("csi_shapes.rs"), shapes(&compiler.descriptor_pool())?)?;
    let mut config = tonic_prost_build::Config::new();
    // Names at run time: the printer finds a message's shape by its full name.
    config.enable_type_names();
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(env::var_os("CARGO_FEATURE_SANDBOX").is_some())
        // Ordered maps: the same request is the same bytes on every repeat.
        .btree_map(".")
        .out_dir(out)
        .compile_fds_with_config(compiler.file_descriptor_set(), config)?;
    Ok(())
}

/// Rust source of the tables `MESSAGES` and `ENUMS`, sorted by full name.
fn shapes(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let secret = pool.get_extension_by_name("csi.v1.csi_secret").ok_or("csi.proto lost its csi_secret option")?;
    if secret.number() != 1059 {
        return Err("csi_secret must be option number 1059".into());
    }
    let messages = printed(pool);
    let mut enums: Vec<_> = pool.all_enums().filter(|e| e.package_name() == "csi.v1").collect();
    enums.sort_by(|a, b| a.full_name().cmp(b.full_name()));

    let mut source = String::from("pub(super) const MESSAGES: &[MessageShape] = &[\n");
    for (full_name, message) in &messages {
        let fields: String = message.fields().map(|f| field_shape(&f, &secret)).collect::<Result<_, _>>()?;
        writeln!(source, "MessageShape {{ full_name: {full_name:?}, fields: &[{fields}] }},")?;
    }
    source.push_str("];\npub(super) const ENUMS: &[EnumShape] = &[\n");
    for shape in &enums {
        source.push_str(&enum_shape(shape));
    }
    source.push_str("];\n");
    Ok(source)
}

/// Our messages and the well-known ones that their fields use, by full name.
fn printed(pool: &DescriptorPool) -> BTreeMap<String, MessageDescriptor> {
    let ours: Vec<_> = pool.all_messages().filter(|m| m.package_name() == "csi.v1" && !m.is_map_entry()).collect();
    let used = ours.iter().flat_map(MessageDescriptor::fields).filter_map(|field| match field.kind() {
        Kind::Message(message) if !message.is_map_entry() => Some(message),
        _ => None,
    });
    ours.iter().cloned().chain(used).map(|message| (message.full_name().to_owned(), message)).collect()
}

fn field_shape(field: &FieldDescriptor, secret: &ExtensionDescriptor) -> Result<String, String> {
    let hidden = field.options().get_extension(secret).as_bool() == Some(true);
    let kind = kind(&field.kind())?;
    Ok(format!(
        "FieldShape {{ number: {}, name: {:?}, kind: {kind}, repeated: {}, hidden: {hidden} }}, ",
        field.number(),
        field.name(),
        field.is_list(),
    ))
}

/// The kinds that occur in the interface; another one has to be taught to the printer first.
fn kind(kind: &Kind) -> Result<String, String> {
    Ok(match kind {
        Kind::String => "Kind::Text".to_owned(),
        Kind::Bool => "Kind::Bool".to_owned(),
        Kind::Int32 | Kind::Int64 => "Kind::Integer".to_owned(),
        Kind::Message(entry) if entry.is_map_entry() => {
            if entry.fields().any(|side| side.kind() != Kind::String) {
                return Err(format!("{} is not map<string, string>: teach src/csi/redact.rs first", entry.full_name()));
            }
            "Kind::TextMap".to_owned()
        }
        Kind::Message(message) => format!("Kind::Message({:?})", message.full_name()),
        Kind::Enum(shape) => format!("Kind::Enum({:?})", shape.full_name()),
        other => return Err(format!("csi.proto uses {other:?}, which src/csi/redact.rs cannot print: teach it first")),
    })
}

fn enum_shape(shape: &EnumDescriptor) -> String {
    let values: String = shape.values().map(|v| format!("({}, {:?}), ", v.number(), v.name())).collect();
    format!("EnumShape {{ full_name: {:?}, values: &[{values}] }},\n", shape.full_name())
}
