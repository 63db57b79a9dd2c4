//! Between the table's words and the types of the model.

use super::single::mode_name;
use super::table::read;
use csi_provisioner::model::driver::Capabilities;
use csi_provisioner::model::request::{AccessType, Code, ContentSource, CreateRequest};
use csi_provisioner::model::{CreatedVolume, Driver, Options};
use serde_json::{Value, json};

/// The driver of a row.
pub fn driver(input: &Value, name: &str) -> Driver {
    let reported = |list: &str, capability: &str| {
        input["driver"][list].as_array().into_iter().flatten().any(|have| have == capability)
    };
    let controller = |capability: &str| reported("controller_capabilities", capability);
    Driver {
        name: name.to_owned(),
        in_tree_name: input["driver"]["in_tree_name"].as_str().map(str::to_owned),
        can: Capabilities {
            controller_service: reported("plugin_capabilities", "CONTROLLER_SERVICE"),
            accessibility_constraints: reported("plugin_capabilities", "VOLUME_ACCESSIBILITY_CONSTRAINTS"),
            create_delete_volume: controller("CREATE_DELETE_VOLUME"),
            publish_unpublish_volume: controller("PUBLISH_UNPUBLISH_VOLUME"),
            get_capacity: controller("GET_CAPACITY"),
            create_delete_snapshot: controller("CREATE_DELETE_SNAPSHOT"),
            clone_volume: controller("CLONE_VOLUME"),
            single_node_multi_writer: controller("SINGLE_NODE_MULTI_WRITER"),
            modify_volume: controller("MODIFY_VOLUME"),
        },
    }
}

/// The table's defaults with the row's flags and gates over them.
pub fn options(input: &Value) -> Options {
    let flag = |name: &str, default: bool| input["options"][name].as_bool().unwrap_or(default);
    let text = |name: &str, default: &str| input["options"][name].as_str().unwrap_or(default).to_owned();
    let gate = |name: &str, default: bool| input["feature_gates"][name].as_bool().unwrap_or(default);
    Options {
        volume_name_prefix: text("volume-name-prefix", "test"),
        volume_name_uuid_length: 5,
        default_fstype: text("default-fstype", "ext4"),
        extra_create_metadata: flag("extra-create-metadata", false),
        controller_publish_readonly: flag("controller-publish-readonly", false),
        prevent_volume_mode_conversion: flag("prevent-volume-mode-conversion", false),
        strict_topology: false,
        immediate_topology: true,
        topology: gate("Topology", true),
        cross_namespace_source: gate("CrossNamespaceVolumeDataSource", false),
        attributes_class: gate("VolumeAttributesClass", true),
    }
}

/// A code by its usual spelling.
pub fn code_of(name: &str) -> Code {
    const ALL: [Code; 16] = [
        Code::Canceled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];
    ALL.into_iter().find(|code| code.name() == name).unwrap_or_else(|| panic!("{name} is no code"))
}

/// A scripted answer.
pub fn created(reply: &Value) -> CreatedVolume {
    let source = &reply["content_source"];
    let snapshot = source["snapshot"]["snapshot_id"].as_str().map(|id| ContentSource::Snapshot(id.to_owned()));
    let volume = source["volume"]["volume_id"].as_str().map(|id| ContentSource::Volume(id.to_owned()));
    CreatedVolume {
        id: reply["volume_id"].as_str().unwrap_or_default().to_owned(),
        capacity_bytes: reply["capacity_bytes"].as_i64().unwrap_or_default(),
        context: read(&reply["volume_context"]),
        source: snapshot.or(volume),
        accessible_topology: reply["accessible_topology"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|topology| read(&topology["segments"]))
            .collect(),
    }
}

/// A request in the interface's field names.
pub fn shown(request: &CreateRequest) -> Value {
    let capabilities: Vec<Value> = request
        .capabilities
        .iter()
        .map(|capability| match &capability.access_type {
            AccessType::Block => json!({ "access_mode": mode_name(capability.access_mode), "block": {} }),
            AccessType::Mount { fs_type, mount_flags } => json!({
                "access_mode": mode_name(capability.access_mode),
                "mount": { "fs_type": fs_type, "mount_flags": mount_flags },
            }),
        })
        .collect();
    json!({
        "name": request.name,
        "capacity_range": { "required_bytes": request.required_bytes },
        "volume_capabilities": capabilities,
        "parameters": request.parameters,
        "secrets": request.secrets.reveal(),
        "mutable_parameters": request.mutable_parameters,
        "volume_content_source": match &request.source {
            Some(ContentSource::Snapshot(id)) => json!({ "snapshot": { "snapshot_id": id } }),
            Some(ContentSource::Volume(id)) => json!({ "volume": { "volume_id": id } }),
            None => Value::Null,
        },
    })
}
