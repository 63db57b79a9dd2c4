//! Between our words ([`crate::model`]) and the wire types. Pure.
//!
//! Promises: the same request is the same message; an answer's numbers that this version does not know are skipped; what
//! an answer lacks is told apart from what is empty only where a rule needs it.

use super::proto::v1;
use super::proto::v1::controller_service_capability::{self as controller, rpc::Type as Rpc};
use super::proto::v1::plugin_capability::{self as plugin, service::Type as Service};
use super::proto::v1::volume_capability::access_mode::Mode;
use super::proto::v1::volume_content_source as source;
use crate::model::driver::Capabilities;
use crate::model::request::{AccessMode, AccessType, ContentSource, VolumeCapability};
use crate::model::{CreateRequest, CreatedVolume, Secrets, Segments};
use std::collections::BTreeMap;

/// What an OK to `CreateVolume` said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateReply {
    /// This volume exists now.
    Volume(CreatedVolume),
    /// The driver answered OK without a volume, against the interface: what exists is unknown.
    NoVolume,
}

/// Answer of `NodeGetInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeInfo {
    /// The driver's id of this node.
    pub node_id: String,
    /// Segments of this node; empty when the driver binds it to no place.
    pub segments: Segments,
}

/// Filters of `GetCapacity`; without any of them the whole pool is meant.
#[derive(Clone, Copy, Debug, Default)]
pub struct CapacityQuery<'a> {
    /// Capabilities of the volumes to come.
    pub capabilities: &'a [VolumeCapability],
    /// Class parameters without the reserved ones.
    pub parameters: Option<&'a BTreeMap<String, String>>,
    /// One place; only for drivers with topology.
    pub segments: Option<&'a Segments>,
}

/// Answer of `GetCapacity`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "the unit belongs to the names")]
pub struct CapacityReply {
    /// Free space for volumes that match all filters.
    pub available_bytes: i64,
    /// Largest single volume, if the driver says so.
    pub maximum_volume_bytes: Option<i64>,
    /// Smallest single volume, if the driver says so (alpha).
    pub minimum_volume_bytes: Option<i64>,
}

pub(super) fn create_request(wanted: &CreateRequest) -> v1::CreateVolumeRequest {
    v1::CreateVolumeRequest {
        name: wanted.name.clone(),
        capacity_range: Some(v1::CapacityRange { required_bytes: wanted.required_bytes, limit_bytes: 0 }),
        volume_capabilities: wanted.capabilities.iter().map(capability).collect(),
        parameters: wanted.parameters.clone(),
        secrets: wanted.secrets.reveal().clone(),
        volume_content_source: wanted.source.as_ref().map(content_source),
        accessibility_requirements: wanted.accessibility.as_ref().map(|places| v1::TopologyRequirement {
            requisite: places.requisite.iter().map(topology).collect(),
            preferred: places.preferred().map(topology).collect(),
        }),
        mutable_parameters: wanted.mutable_parameters.clone(),
    }
}

pub(super) fn create_reply(reply: v1::CreateVolumeResponse) -> CreateReply {
    let Some(volume) = reply.volume else { return CreateReply::NoVolume };
    CreateReply::Volume(CreatedVolume {
        id: volume.volume_id,
        capacity_bytes: volume.capacity_bytes,
        context: volume.volume_context,
        source: volume.content_source.map(|named| match named.r#type {
            Some(source::Type::Snapshot(snapshot)) => ContentSource::Snapshot(snapshot.snapshot_id),
            Some(source::Type::Volume(volume)) => ContentSource::Volume(volume.volume_id),
            // A kind of a later interface. Only the presence counts (provisioning.md 5.1 step 4), so it must not get lost.
            None => ContentSource::Volume(String::new()),
        }),
        accessible_topology: volume.accessible_topology.into_iter().map(|place| place.segments).collect(),
    })
}

pub(super) fn delete_request(id: &str, secrets: &Secrets) -> v1::DeleteVolumeRequest {
    v1::DeleteVolumeRequest { volume_id: id.to_owned(), secrets: secrets.reveal().clone() }
}

pub(super) fn capacity_request(query: CapacityQuery<'_>) -> v1::GetCapacityRequest {
    v1::GetCapacityRequest {
        volume_capabilities: query.capabilities.iter().map(capability).collect(),
        parameters: query.parameters.cloned().unwrap_or_default(),
        accessible_topology: query.segments.map(topology),
    }
}

pub(super) fn capacity_reply(reply: v1::GetCapacityResponse) -> CapacityReply {
    CapacityReply {
        available_bytes: reply.available_capacity,
        maximum_volume_bytes: reply.maximum_volume_size,
        minimum_volume_bytes: reply.minimum_volume_size,
    }
}

pub(super) fn node_info(reply: v1::NodeGetInfoResponse) -> NodeInfo {
    NodeInfo {
        node_id: reply.node_id,
        segments: reply.accessible_topology.map(|place| place.segments).unwrap_or_default(),
    }
}

/// Both answers as one set; unknown numbers are skipped (csi-rules.md 3.3).
pub(super) fn capabilities(
    of_plugin: &v1::GetPluginCapabilitiesResponse,
    of_controller: &v1::ControllerGetCapabilitiesResponse,
) -> Capabilities {
    let mut can = Capabilities::default();
    for capability in &of_plugin.capabilities {
        let Some(plugin::Type::Service(service)) = &capability.r#type else { continue };
        match Service::try_from(service.r#type) {
            Ok(Service::ControllerService) => can.controller_service = true,
            Ok(Service::VolumeAccessibilityConstraints) => can.accessibility_constraints = true,
            Ok(
                Service::Unknown
                | Service::GroupControllerService
                | Service::SnapshotMetadataService
                | Service::SnapshotAccessibilityConstraints,
            )
            | Err(_) => {}
        }
    }
    for capability in &of_controller.capabilities {
        let Some(controller::Type::Rpc(rpc)) = &capability.r#type else { continue };
        match Rpc::try_from(rpc.r#type) {
            Ok(Rpc::CreateDeleteVolume) => can.create_delete_volume = true,
            Ok(Rpc::PublishUnpublishVolume) => can.publish_unpublish_volume = true,
            Ok(Rpc::GetCapacity) => can.get_capacity = true,
            Ok(Rpc::CreateDeleteSnapshot) => can.create_delete_snapshot = true,
            Ok(Rpc::CloneVolume) => can.clone_volume = true,
            Ok(Rpc::SingleNodeMultiWriter) => can.single_node_multi_writer = true,
            Ok(Rpc::ModifyVolume) => can.modify_volume = true,
            Ok(
                Rpc::Unknown
                | Rpc::ListVolumes
                | Rpc::ListSnapshots
                | Rpc::PublishReadonly
                | Rpc::ExpandVolume
                | Rpc::ListVolumesPublishedNodes
                | Rpc::GetVolume
                | Rpc::GetSnapshot
                | Rpc::GetVolumeHealth
                | Rpc::ListVolumeHealth,
            )
            | Err(_) => {}
        }
    }
    can
}

// === parts ===

fn capability(wanted: &VolumeCapability) -> v1::VolumeCapability {
    use v1::volume_capability::{AccessMode as Wire, AccessType as Kind, BlockVolume, MountVolume};
    let mode = match wanted.access_mode {
        AccessMode::SingleNodeWriter => Mode::SingleNodeWriter,
        AccessMode::SingleNodeSingleWriter => Mode::SingleNodeSingleWriter,
        AccessMode::SingleNodeMultiWriter => Mode::SingleNodeMultiWriter,
        AccessMode::MultiNodeReaderOnly => Mode::MultiNodeReaderOnly,
        AccessMode::MultiNodeMultiWriter => Mode::MultiNodeMultiWriter,
    };
    let access_type = match &wanted.access_type {
        AccessType::Block => Kind::Block(BlockVolume {}),
        AccessType::Mount { fs_type, mount_flags } => Kind::Mount(MountVolume {
            fs_type: fs_type.clone(),
            mount_flags: mount_flags.clone(),
            volume_mount_group: String::new(),
        }),
    };
    v1::VolumeCapability { access_mode: Some(Wire { mode: mode.into() }), access_type: Some(access_type) }
}

fn content_source(wanted: &ContentSource) -> v1::VolumeContentSource {
    let kind = match wanted {
        ContentSource::Snapshot(id) => source::Type::Snapshot(source::SnapshotSource { snapshot_id: id.clone() }),
        ContentSource::Volume(id) => source::Type::Volume(source::VolumeSource { volume_id: id.clone() }),
    };
    v1::VolumeContentSource { r#type: Some(kind) }
}

fn topology(segments: &Segments) -> v1::Topology {
    v1::Topology { segments: segments.clone() }
}

#[cfg(test)]
mod tests;
