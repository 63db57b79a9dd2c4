//! Promises of the plan that the case tables do not hold.

use super::*;
use crate::model::claim::STORAGE_PROVISIONER;
use proptest::prelude::*;
use serde_json::json;

fn driver() -> Driver {
    let can = Capabilities {
        controller_service: true,
        create_delete_volume: true,
        create_delete_snapshot: true,
        clone_volume: true,
        modify_volume: true,
        ..Capabilities::default()
    };
    Driver { name: "driver.example.com".to_owned(), in_tree_name: None, can }
}

fn claim(spec: serde_json::Value) -> Claim {
    let mut claim: Claim = serde_json::from_value(json!({
        "metadata": { "namespace": "ns", "name": "data", "uid": "1b4e28ba", "annotations": {} },
    }))
    .unwrap();
    claim.metadata.annotations = Some([(STORAGE_PROVISIONER.to_owned(), driver().name)].into());
    claim.spec = serde_json::from_value(spec).unwrap();
    claim
}

fn class(parameters: &serde_json::Value) -> Class {
    serde_json::from_value(json!({ "provisioner": "driver.example.com", "parameters": parameters })).unwrap()
}

fn drafted(claim: &Claim, class: &Class) -> Result<Draft, Refusal> {
    let (driver, options) = (driver(), Options { cross_namespace_source: true, ..Options::default() });
    draft(claim, class, &Setting { driver: &driver, options: &options, translated_class: None, grants: &[] })
}

#[test]
fn claim_being_deleted_gets_no_volume() {
    let mut claim = claim(json!({}));
    assert_eq!(should_provision(&claim, Some(&class(&json!({}))), &driver()), Verdict::Provision);
    claim.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH));
    assert_eq!(should_provision(&claim, Some(&class(&json!({}))), &driver()), Verdict::BeingDeleted);
}

#[test]
fn class_of_another_provisioner_is_left_alone() {
    let other: Class = serde_json::from_value(json!({ "provisioner": "other.example.com" })).unwrap();
    assert_eq!(should_provision(&claim(json!({})), Some(&other), &driver()), Verdict::NotOurs);
}

#[test]
fn late_binding_ignores_the_alpha_annotation() {
    let mut late = class(&json!({}));
    late.volume_binding_mode = Some("WaitForFirstConsumer".to_owned());
    let mut claim = claim(json!({}));
    let annotate = |claim: &mut Claim, key: &str| {
        claim.metadata.annotations.get_or_insert_default().insert(key.to_owned(), "node-1".to_owned());
    };
    annotate(&mut claim, crate::model::claim::ALPHA_SELECTED_NODE);
    assert_eq!(should_provision(&claim, Some(&late), &driver()), Verdict::WaitsForConsumer);
    annotate(&mut claim, crate::model::claim::SELECTED_NODE);
    assert_eq!(should_provision(&claim, Some(&late), &driver()), Verdict::Provision);
}

#[test]
fn unreadable_or_negative_request_is_refused_before_the_driver() {
    for request in ["ten", "-1", ""] {
        let claim = claim(json!({ "resources": { "requests": { "storage": request } } }));
        let refused = drafted(&claim, &class(&json!({}))).map_err(|refusal| refusal.condition());
        assert_eq!(refused, Err("claim-request-unreadable"), "{request:?}");
    }
}

#[test]
fn what_was_not_gathered_is_never_left_out_in_silence() {
    let secret = json!({ "csi.storage.k8s.io/secret-name": "s", "csi.storage.k8s.io/secret-namespace": "n" });
    let cloned = claim(json!({ "dataSource": { "kind": "PersistentVolumeClaim", "name": "source" } }));
    let modified = claim(json!({ "volumeAttributesClassName": "gold" }));
    for (claim, class) in
        [(claim(json!({})), class(&secret)), (cloned, class(&json!({}))), (modified, class(&json!({})))]
    {
        let refused = finish(drafted(&claim, &class).unwrap(), Gathered::default());
        assert_eq!(refused.map_err(|refusal| refusal.condition()), Err("request-unprepared"));
    }
}

#[test]
fn attempt_reads_back_without_its_secrets() {
    let parameters = json!({
        "csi.storage.k8s.io/secret-name": "s", "csi.storage.k8s.io/secret-namespace": "n", "tier": "fast",
    });
    let claim = claim(json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } }));
    let secrets = Secrets::new([("password".to_owned(), "hunter2".to_owned())].into());
    let gathered = Gathered { secrets: Some(secrets), ..Gathered::default() };
    let attempt = finish(drafted(&claim, &class(&parameters)).unwrap(), gathered).unwrap();
    let stored = serde_json::to_string(&attempt).unwrap();
    for text in [&stored, &format!("{attempt:?}")] {
        assert!(!text.contains("hunter2") && !text.contains("password"), "{text}");
    }
    let mut without = attempt;
    without.request.secrets = Secrets::default();
    assert_eq!(serde_json::from_str::<Attempt>(&stored).unwrap(), without);
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,40}", "[${}'\\[\\]a.-]{0,40}", "a{300,600}", Just("${pv.name}".to_owned())]
}

fn key() -> impl Strategy<Value = String> {
    let known = crate::claim::secrets::reserved_keys().map(str::to_owned).collect::<Vec<_>>();
    prop_oneof![prop::sample::select(known), hostile(), hostile().prop_map(|text| format!("csi.storage.k8s.io/{text}"))]
}

proptest! {
    #[test]
    fn no_input_panics_and_every_refusal_is_short(
        parameters in prop::collection::btree_map(key(), hostile(), 0..6),
        texts in prop::collection::vec(hostile(), 6),
        modes in prop::collection::vec(hostile(), 0..20),
        // What is ordinary lets the rest get further than the first refusal.
        ordinary in prop::array::uniform5(prop::bool::ANY),
    ) {
        let source = json!({ "kind": texts[1], "name": texts[2], "namespace": texts[3], "apiGroup": texts[4] });
        let mut claim = claim(json!({
            "accessModes": if ordinary[0] { vec!["ReadWriteOnce".to_owned()] } else { modes },
            "resources": { "requests": { "storage": if ordinary[1] { "1Gi" } else { texts[0].as_str() } } },
            "dataSourceRef": if ordinary[2] { json!(null) } else { source },
        }));
        claim.metadata.uid = Some(if ordinary[3] { "u".to_owned() } else { format!("u{}", texts[5]) });
        let parameters = if ordinary[4] { BTreeMap::new() } else { parameters };
        let first = drafted(&claim, &class(&json!(parameters)));
        if let Err(refusal) = &first {
            prop_assert!(refusal.to_string().chars().count() < 4500, "{refusal}");
        }
        prop_assert_eq!(first, drafted(&claim, &class(&json!(parameters))));
    }
}
