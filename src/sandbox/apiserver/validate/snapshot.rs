//! Rules about snapshots, as their custom resource definitions state them.

use super::findings::Findings;
use serde_json::Value;

/// Checks a snapshot.
pub fn snapshot(new: &Value, old: Option<&Value>, findings: &mut Findings) {
    let source = |key: &str| new.pointer("/spec/source").and_then(|source| source.get(key));
    let count =
        ["persistentVolumeClaimName", "volumeSnapshotContentName"].iter().filter(|key| source(key).is_some()).count();
    match (new.pointer("/spec/source"), count) {
        (None, _) => findings.required("spec.source", ""),
        (Some(_), 1) => {}
        (Some(told), _) => findings.invalid(
            "spec.source",
            told,
            "exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set",
        ),
    }
    if new.pointer("/spec/volumeSnapshotClassName").and_then(Value::as_str) == Some("") {
        findings.invalid(
            "spec.volumeSnapshotClassName",
            &Value::from(""),
            "volumeSnapshotClassName must not be the empty string when set",
        );
    }
    for field in ["spec.source.persistentVolumeClaimName", "spec.source.volumeSnapshotContentName"] {
        findings.unchanged(field, old, new);
    }
}

/// Checks the content of a snapshot.
pub fn content(new: &Value, findings: &mut Findings) {
    for key in ["deletionPolicy", "driver", "source", "volumeSnapshotRef"] {
        if new.pointer("/spec").and_then(|spec| spec.get(key)).is_none() {
            findings.required(format!("spec.{key}"), "");
        }
    }
    findings.one_of("spec.deletionPolicy", new.pointer("/spec/deletionPolicy"), &["Delete", "Retain"]);
}

/// Checks a snapshot class.
pub fn class(new: &Value, findings: &mut Findings) {
    for key in ["deletionPolicy", "driver"] {
        if new.get(key).is_none() {
            findings.required(key, "");
        }
    }
    findings.one_of("deletionPolicy", new.get("deletionPolicy"), &["Delete", "Retain"]);
}
