//! The printed form of messages; the first three rules are the rows of group `helper-log-secret-stripping`.

use super::*;
use crate::csi::proto::v1;
use crate::csi::proto::v1::volume_capability::{AccessMode, AccessType, MountVolume, access_mode::Mode};
use serde_json::json;
use std::collections::BTreeMap;

fn entries(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn parsed<M: prost::Message + prost::Name>(message: &M) -> Value {
    serde_json::from_str(&render(message)).expect("rendered as JSON")
}

fn full_request() -> v1::CreateVolumeRequest {
    v1::CreateVolumeRequest {
        name: "test-volume".to_owned(),
        capacity_range: Some(v1::CapacityRange { required_bytes: 1024, limit_bytes: 1024 }),
        volume_capabilities: vec![v1::VolumeCapability {
            access_mode: Some(AccessMode { mode: Mode::MultiNodeMultiWriter.into() }),
            access_type: Some(AccessType::Mount(MountVolume {
                fs_type: "ext4".to_owned(),
                mount_flags: vec!["flag1".to_owned(), "flag2".to_owned(), "flag3".to_owned()],
                volume_mount_group: String::new(),
            })),
        }],
        parameters: entries(&[("param1", "param1"), ("param2", "param2")]),
        secrets: entries(&[("secret1", "secret1"), ("secret2", "secret2")]),
        volume_content_source: Some(v1::VolumeContentSource::default()),
        accessibility_requirements: Some(v1::TopologyRequirement::default()),
        mutable_parameters: BTreeMap::new(),
    }
}

#[test]
fn secrets_are_replaced_and_the_rest_is_shown_with_proto_names() {
    // Unlike the row, mount flags are blanked too: they count as sensitive (csi-rules.md 1.5).
    assert_eq!(
        parsed(&full_request()),
        json!({
            "accessibility_requirements": {},
            "capacity_range": {"limit_bytes": 1024, "required_bytes": 1024},
            "name": "test-volume",
            "parameters": {"param1": "param1", "param2": "param2"},
            "secrets": "***stripped***",
            "volume_capabilities": [{
                "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"},
                "mount": {"fs_type": "ext4", "mount_flags": "***stripped***"},
            }],
            "volume_content_source": {},
        })
    );
}

#[test]
fn empty_message_is_an_empty_object() {
    assert_eq!(render(&v1::CreateVolumeRequest::default()), "{}");
}

#[test]
fn unknown_enum_number_is_shown_as_a_number() {
    let capability = v1::VolumeCapability { access_mode: Some(AccessMode { mode: 12345 }), access_type: None };
    assert_eq!(parsed(&capability), json!({"access_mode": {"mode": 12345}}));
}

#[test]
fn debug_of_a_request_shows_no_secret() {
    let shown = format!("{:?}", full_request());
    assert!(shown.contains("test-volume"), "{shown}");
    for hidden in ["secret1", "secret2", "flag1"] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
}

#[test]
fn debug_of_a_message_around_mount_flags_shows_none() {
    let request = v1::GetCapacityRequest {
        volume_capabilities: full_request().volume_capabilities,
        ..v1::GetCapacityRequest::default()
    };
    let shown = format!("{request:?}");
    assert!(shown.contains("ext4") && !shown.contains("flag1"), "{shown}");
}

#[test]
fn negative_numbers_and_wrappers_are_shown() {
    let reply = v1::GetCapacityResponse {
        available_capacity: -1,
        maximum_volume_size: Some(i64::MAX),
        minimum_volume_size: Some(0),
    };
    assert_eq!(
        parsed(&reply),
        json!({"available_capacity": -1, "maximum_volume_size": {"value": i64::MAX}, "minimum_volume_size": {}})
    );
}

#[test]
fn map_entries_with_empty_sides_are_shown() {
    let place = v1::Topology { segments: entries(&[("", "x"), ("zone", "")]) };
    assert_eq!(parsed(&place), json!({"segments": {"": "x", "zone": ""}}));
}

#[test]
fn lists_keep_their_order() {
    let status = v1::list_volumes_response::VolumeStatus { published_node_ids: vec!["b".to_owned(), "a".to_owned()] };
    assert_eq!(render(&status), r#"{"published_node_ids":["b","a"]}"#);
}

#[test]
fn every_secret_of_the_interface_is_hidden() {
    let hidden: Vec<_> = shapes::MESSAGES
        .iter()
        .flat_map(|message| {
            message.fields.iter().filter(|field| field.hidden).map(|field| (message.full_name, field.name))
        })
        .collect();
    let named_secrets: Vec<_> = shapes::MESSAGES
        .iter()
        .flat_map(|message| {
            message.fields.iter().filter(|f| f.name == "secrets").map(|field| (message.full_name, field.name))
        })
        .collect();
    assert_eq!(named_secrets.len(), 22);
    assert!(named_secrets.iter().all(|secret| hidden.contains(secret)));
    assert_eq!(hidden.len(), 23, "the secrets and the mount flags: {hidden:?}");
}

#[test]
fn tables_are_sorted_for_the_search() {
    assert!(shapes::MESSAGES.is_sorted_by_key(|shape| shape.full_name));
}
