//! Generates the CSI types from `proto/csi.proto`, without `protoc`.
//!
//! Leaves three files in `OUT_DIR`:
//! - `csi.v1.rs`: messages and clients; the server half only with feature `sandbox`;
//! - `csi_shapes.rs`: what `src/csi/redact.rs` needs to print a message without its secrets. The `csi_secret` option is
//!   not part of the generated types, so it is read here from the descriptors. Types that hold secrets get no derived
//!   `Debug`, but one that prints the redacted form;
//! - `csi_descriptors.bin`: the encoded `FileDescriptorSet`, for `tests/descriptor.rs`.

use prost_reflect::{DescriptorPool, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor};
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
    let pool = compiler.descriptor_pool();
    let secret = pool.get_extension_by_name("csi.v1.csi_secret").ok_or("csi.proto lost its csi_secret option")?;
    let messages = printed(&pool);
    let hiding: Vec<_> = messages.values().filter(|m| m.fields().any(|field| is_hidden(&field, &secret))).collect();
    fs::write(out.join("csi_shapes.rs"), shapes(&pool, &messages, &hiding, &secret)?)?;

    let mut config = tonic_prost_build::Config::new();
    // Names at run time: the printer finds a message's shape by its full name.
    config.enable_type_names();
    config.skip_debug(hiding.iter().map(|message| format!(".{}", message.full_name())));
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(env::var_os("CARGO_FEATURE_SANDBOX").is_some())
        // Ordered maps: the same request is the same bytes on every repeat.
        .btree_map(".")
        .out_dir(out)
        .compile_fds_with_config(compiler.file_descriptor_set(), config)?;
    Ok(())
}

/// Rust source of the tables `MESSAGES` and `ENUMS`, sorted by full name, and of the list of types that hide something.
fn shapes(
    pool: &DescriptorPool,
    messages: &BTreeMap<String, MessageDescriptor>,
    hiding: &[&MessageDescriptor],
    secret: &ExtensionDescriptor,
) -> Result<String, Box<dyn Error>> {
    let mut enums: Vec<_> = pool.all_enums().filter(|e| e.package_name() == "csi.v1").collect();
    enums.sort_by(|a, b| a.full_name().cmp(b.full_name()));

    let mut source = String::from("pub(super) const MESSAGES: &[MessageShape] = &[\n");
    for (full_name, message) in messages {
        let fields: String = message.fields().map(|f| field_shape(&f, secret)).collect::<Result<_, _>>()?;
        writeln!(source, "MessageShape {{ full_name: {full_name:?}, fields: &[{fields}] }},")?;
    }
    source.push_str("];\npub(super) const ENUMS: &[EnumShape] = &[\n");
    for shape in &enums {
        write!(source, "EnumShape {{ full_name: {:?}, values: &[", shape.full_name())?;
        for value in shape.values() {
            write!(source, "({}, {:?}), ", value.number(), value.name())?;
        }
        source.push_str("] },\n");
    }
    source.push_str("];\ndebug_as_redacted! {\n");
    for message in hiding {
        writeln!(source, "{},", rust_path(message))?;
    }
    source.push_str("}\n");
    Ok(source)
}

/// Path of the generated type below `csi::proto`.
fn rust_path(message: &MessageDescriptor) -> String {
    let scope = message.parent_message().map(|parent| rust_path(&parent));
    match scope {
        None => format!("v1::{}", message.name()),
        Some(scope) => {
            let (path, parent) = scope.rsplit_once("::").unwrap_or(("v1", &scope));
            let mut module = String::new();
            for letter in parent.chars() {
                if letter.is_ascii_uppercase() && !module.is_empty() {
                    module.push('_');
                }
                module.push(letter.to_ascii_lowercase());
            }
            format!("{path}::{module}::{}", message.name())
        }
    }
}

/// Whether the value never reaches a log. Mount flags count as sensitive without carrying the option (csi-rules.md 1.5).
fn is_hidden(field: &FieldDescriptor, secret: &ExtensionDescriptor) -> bool {
    field.full_name() == "csi.v1.VolumeCapability.MountVolume.mount_flags"
        || field.options().get_extension(secret).as_bool() == Some(true)
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
    let (kind, hidden) = (kind(&field.kind())?, is_hidden(field, secret));
    if field.is_list() && !matches!(field.kind(), Kind::String | Kind::Message(_)) {
        // Numbers would arrive packed.
        return Err(format!("{} is a list that src/csi/redact.rs cannot print: teach it first", field.full_name()));
    }
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
