//! Causes that the reference hides behind one text, and the class that it overlooks.

use super::*;
use crate::claim::source::SourceKind;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn checked(claim: Value, source: Value, volume: Option<Value>) -> Result<ContentSource, CloneFault> {
    let data = DataSource { kind: SourceKind::Claim, namespace: "ns".to_owned(), name: "source".to_owned() };
    let claim: Claim = serde_json::from_value(claim).unwrap();
    let wanted = Wanted { claim: &claim, source: &data, required_bytes: 10, driver: "driver" };
    let volume = volume.map_or(Found::Missing, |volume| Found::Object(serde_json::from_value(volume).unwrap()));
    check(&wanted, &Found::Object(serde_json::from_value(source).unwrap()), &volume)
}

fn source() -> Value {
    json!({
        "metadata": { "namespace": "ns", "name": "source", "uid": "u" },
        "spec": { "storageClassName": "c", "volumeName": "pv", "resources": { "requests": { "storage": "10" } } },
        "status": { "phase": "Bound" },
    })
}

fn volume() -> Value {
    json!({
        "metadata": { "name": "pv" },
        "spec": {
            "csi": { "driver": "driver", "volumeHandle": "h" },
            "claimRef": { "namespace": "ns", "name": "source", "uid": "u" },
        },
        "status": { "phase": "Bound" },
    })
}

fn claim() -> Value {
    json!({ "metadata": { "namespace": "ns" }, "spec": { "storageClassName": "c" } })
}

#[test]
fn class_by_the_old_annotation_counts_on_both_sides() {
    let annotated = json!({ "volume.beta.kubernetes.io/storage-class": "c" });
    let (mut claim, mut source) = (claim(), source());
    for object in [&mut claim, &mut source] {
        object["metadata"]["annotations"] = annotated.clone();
        object["spec"]["storageClassName"] = Value::Null;
    }
    assert_eq!(checked(claim, source, Some(volume())), Ok(ContentSource::Volume("h".to_owned())));
}

#[test]
fn every_cause_has_a_text_of_its_own() {
    let changed = |mut object: Value, path: &str, value: Value| {
        *object.pointer_mut(path).unwrap() = value;
        object
    };
    let volumes = [
        None,
        Some(changed(volume(), "/spec/csi", Value::Null)),
        Some(changed(volume(), "/spec/csi/driver", json!("other"))),
        Some(changed(volume(), "/spec/claimRef", Value::Null)),
        Some(changed(volume(), "/spec/claimRef/uid", json!("secret-other-claim"))),
        Some(changed(volume(), "/status/phase", json!("Released"))),
    ];
    let texts: Vec<String> = volumes
        .iter()
        .map(|volume| {
            let fault = checked(claim(), source(), volume.clone()).unwrap_err();
            assert_eq!(fault.condition(), "clone-source-volume-invalid");
            fault.to_string()
        })
        .collect();
    assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), volumes.len(), "{texts:#?}");
    assert!(texts.iter().all(|text| text.contains("\"source\"") && !text.contains("secret-other-claim")), "{texts:#?}");
}

#[test]
fn empty_phase_of_the_source_is_shown_as_new() {
    let mut new = source();
    new["status"]["phase"] = Value::Null;
    let fault = checked(claim(), new, None).unwrap_err();
    assert_eq!(fault.to_string(), "source claim \"source\" is new, not Bound; cloning starts once it is Bound");
}

#[test]
fn differing_modes_are_named_the_right_way_round() {
    let mut block = volume();
    block["spec"]["volumeMode"] = json!("Block");
    let fault = checked(claim(), source(), Some(block)).unwrap_err();
    let wanted = "source claim \"source\" has volume mode Block, the claim Filesystem; they must be equal";
    assert_eq!(fault.to_string(), wanted);
}
