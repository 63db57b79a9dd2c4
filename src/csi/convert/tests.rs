//! Requests as the driver sees them, answers as the rooms see them.

use super::*;
use crate::model::accessibility::Accessibility;
use prost::Message;
use v1::volume_capability::{AccessType as Kind, BlockVolume, MountVolume};

fn segments(key: &str, value: &str) -> Segments {
    Segments::from([(key.to_owned(), value.to_owned())])
}

fn wanted() -> CreateRequest {
    CreateRequest {
        name: "pvc-1".to_owned(),
        required_bytes: 5,
        capabilities: vec![
            VolumeCapability {
                access_mode: AccessMode::SingleNodeWriter,
                access_type: AccessType::Mount { fs_type: "xfs".to_owned(), mount_flags: vec!["ro".to_owned()] },
            },
            VolumeCapability { access_mode: AccessMode::MultiNodeReaderOnly, access_type: AccessType::Block },
        ],
        parameters: segments("tier", "fast"),
        secrets: Secrets::new(segments("user", "admin")),
        source: Some(ContentSource::Snapshot("snap-1".to_owned())),
        accessibility: Some(Accessibility {
            requisite: vec![segments("zone", "a"), segments("zone", "b")].into(),
            first: 1,
        }),
        mutable_parameters: segments("iops", "9"),
    }
}

#[test]
fn create_request_reaches_the_wire_whole() {
    let mode = |mode: Mode| Some(v1::volume_capability::AccessMode { mode: mode.into() });
    let mount = MountVolume {
        fs_type: "xfs".to_owned(),
        mount_flags: vec!["ro".to_owned()],
        volume_mount_group: String::new(),
    };
    let place = |zone| v1::Topology { segments: segments("zone", zone) };
    let expected = v1::CreateVolumeRequest {
        name: "pvc-1".to_owned(),
        capacity_range: Some(v1::CapacityRange { required_bytes: 5, limit_bytes: 0 }),
        volume_capabilities: vec![
            v1::VolumeCapability { access_mode: mode(Mode::SingleNodeWriter), access_type: Some(Kind::Mount(mount)) },
            v1::VolumeCapability {
                access_mode: mode(Mode::MultiNodeReaderOnly),
                access_type: Some(Kind::Block(BlockVolume {})),
            },
        ],
        parameters: segments("tier", "fast"),
        secrets: segments("user", "admin"),
        volume_content_source: Some(v1::VolumeContentSource {
            r#type: Some(source::Type::Snapshot(source::SnapshotSource { snapshot_id: "snap-1".to_owned() })),
        }),
        accessibility_requirements: Some(v1::TopologyRequirement {
            requisite: vec![place("a"), place("b")],
            preferred: vec![place("b"), place("a")],
        }),
        mutable_parameters: segments("iops", "9"),
    };
    assert_eq!(create_request(&wanted()), expected);
}

#[test]
fn absent_source_and_accessibility_are_left_out() {
    let request = create_request(&CreateRequest { source: None, accessibility: None, ..wanted() });
    assert_eq!((request.volume_content_source, request.accessibility_requirements), (None, None));
}

#[test]
fn same_request_is_the_same_bytes() {
    let mut later = wanted();
    later.parameters.insert("a".to_owned(), "1".to_owned());
    let mut earlier = CreateRequest { parameters: segments("a", "1"), ..wanted() };
    earlier.parameters.insert("tier".to_owned(), "fast".to_owned());
    assert_eq!(create_request(&later).encode_to_vec(), create_request(&earlier).encode_to_vec());
}

#[test]
fn every_access_mode_has_the_interfaces_number() {
    for (access_mode, number) in [
        (AccessMode::SingleNodeWriter, 1),
        (AccessMode::MultiNodeReaderOnly, 3),
        (AccessMode::MultiNodeMultiWriter, 5),
        (AccessMode::SingleNodeSingleWriter, 6),
        (AccessMode::SingleNodeMultiWriter, 7),
    ] {
        let wire = capability(&VolumeCapability { access_mode, access_type: AccessType::Block });
        assert_eq!(wire.access_mode.map(|mode| mode.mode), Some(number), "{access_mode:?}");
    }
}

#[test]
fn ok_without_a_volume_is_no_volume() {
    assert_eq!(create_reply(v1::CreateVolumeResponse { volume: None }), CreateReply::NoVolume);
}

#[test]
fn created_volume_is_read_whole() {
    let reply = v1::CreateVolumeResponse {
        volume: Some(v1::Volume {
            capacity_bytes: 7,
            volume_id: "id".to_owned(),
            volume_context: segments("k", "v"),
            content_source: Some(content_source(&ContentSource::Volume("origin".to_owned()))),
            accessible_topology: vec![v1::Topology { segments: segments("zone", "a") }],
        }),
    };
    let expected = CreatedVolume {
        id: "id".to_owned(),
        capacity_bytes: 7,
        context: segments("k", "v"),
        source: Some(ContentSource::Volume("origin".to_owned())),
        accessible_topology: vec![segments("zone", "a")],
    };
    assert_eq!(create_reply(reply), CreateReply::Volume(expected));
}

#[test]
fn content_source_of_an_unknown_kind_still_counts_as_present() {
    let volume = v1::Volume { content_source: Some(v1::VolumeContentSource { r#type: None }), ..v1::Volume::default() };
    let CreateReply::Volume(created) = create_reply(v1::CreateVolumeResponse { volume: Some(volume) }) else {
        panic!("a volume was answered")
    };
    assert!(created.source.is_some());
}

fn plugin_says(number: i32) -> v1::GetPluginCapabilitiesResponse {
    let service = plugin::Service { r#type: number };
    v1::GetPluginCapabilitiesResponse {
        capabilities: vec![v1::PluginCapability { r#type: Some(plugin::Type::Service(service)) }],
    }
}

fn controller_says(number: i32) -> v1::ControllerGetCapabilitiesResponse {
    let rpc = controller::Rpc { r#type: number };
    v1::ControllerGetCapabilitiesResponse {
        capabilities: vec![v1::ControllerServiceCapability { r#type: Some(controller::Type::Rpc(rpc)) }],
    }
}

#[test]
fn each_capability_sets_its_flag_and_unknown_numbers_none() {
    let none = Capabilities::default();
    for (number, expected) in [
        (0, none),
        (1, Capabilities { controller_service: true, ..none }),
        (2, Capabilities { accessibility_constraints: true, ..none }),
        (3, none),
        (99, none),
    ] {
        assert_eq!(capabilities(&plugin_says(number), &controller_says(0)), expected, "plug-in {number}");
    }
    for (number, expected) in [
        (0, none),
        (1, Capabilities { create_delete_volume: true, ..none }),
        (2, Capabilities { publish_unpublish_volume: true, ..none }),
        (3, none),
        (4, Capabilities { get_capacity: true, ..none }),
        (5, Capabilities { create_delete_snapshot: true, ..none }),
        (7, Capabilities { clone_volume: true, ..none }),
        (11, none),
        (13, Capabilities { single_node_multi_writer: true, ..none }),
        (14, Capabilities { modify_volume: true, ..none }),
        (99, none),
    ] {
        assert_eq!(capabilities(&plugin_says(0), &controller_says(number)), expected, "controller {number}");
    }
}

#[test]
fn capacity_query_without_filters_is_an_empty_request() {
    assert_eq!(capacity_request(CapacityQuery::default()), v1::GetCapacityRequest::default());
}

#[test]
fn absent_volume_sizes_stay_absent() {
    let reply = v1::GetCapacityResponse { available_capacity: 3, ..v1::GetCapacityResponse::default() };
    let expected = CapacityReply { available_bytes: 3, maximum_volume_bytes: None, minimum_volume_bytes: None };
    assert_eq!(capacity_reply(reply), expected);
}

#[test]
fn node_without_topology_has_no_segments() {
    let reply = v1::NodeGetInfoResponse { node_id: "n".to_owned(), ..v1::NodeGetInfoResponse::default() };
    assert_eq!(node_info(reply), NodeInfo { node_id: "n".to_owned(), segments: Segments::new() });
}
