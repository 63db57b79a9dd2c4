//! Which volume objects of a driver that replaced an in-tree plug-in are its own, and what that means for them.

use super::is_ours;
use crate::model::{Driver, Volume};
use crate::volume::delete;
use crate::volume::finalizer::{Upkeep, upkeep};
use serde_json::{Value, json};

fn driver() -> Driver {
    Driver {
        name: "ebs.csi.aws.com".to_owned(),
        in_tree_name: Some("kubernetes.io/aws-ebs".to_owned()),
        ..Driver::default()
    }
}

/// A volume object of the driver.
fn volume(phase: &str, policy: &str, deleting: bool, finalizers: &[&str]) -> Volume {
    read(&json!({
        "metadata": {
            "annotations": { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" },
            "finalizers": finalizers,
            "deletionTimestamp": deleting.then_some("2026-01-01T00:00:00Z"),
        },
        "spec": { "persistentVolumeReclaimPolicy": policy },
        "status": { "phase": phase },
    }))
}

fn should_delete(volume: &Volume, driver: &Driver) -> bool {
    is_ours(volume, driver) && delete::should_delete(volume)
}

fn lacks_finalizer(volume: &Volume, driver: &Driver) -> bool {
    is_ours(volume, driver) && upkeep(volume) == Upkeep::Add
}

fn read(value: &Value) -> Volume {
    serde_json::from_value(value.clone()).unwrap()
}

const OURS: &str = "external-provisioner.volume.kubernetes.io/finalizer";

#[test]
fn released_volume_with_policy_delete_is_deleted() {
    assert!(should_delete(&volume("Released", "Delete", false, &[]), &driver()));
}

#[test]
fn volume_being_deleted_is_deleted_while_it_carries_the_finalizer() {
    assert!(should_delete(&volume("Released", "Delete", true, &[OURS]), &driver()));
}

#[test]
fn volume_being_deleted_without_the_finalizer_is_done() {
    assert!(!should_delete(&volume("Released", "Delete", true, &["other"]), &driver()));
}

#[test]
fn volume_of_another_phase_or_policy_is_not_deleted() {
    assert!(!should_delete(&volume("Failed", "Delete", false, &[OURS]), &driver()));
    assert!(!should_delete(&volume("Released", "Retain", false, &[OURS]), &driver()));
}

#[test]
fn volume_of_a_foreign_provisioner_is_neither_deleted_nor_protected() {
    let foreign = Driver { name: "other".to_owned(), ..Driver::default() };
    assert!(!should_delete(&volume("Released", "Delete", false, &[OURS]), &foreign));
    assert!(!lacks_finalizer(&volume("Bound", "Delete", false, &[]), &foreign));
}

#[test]
fn bound_volume_with_policy_delete_lacks_the_finalizer() {
    assert!(lacks_finalizer(&volume("Bound", "Delete", false, &["other"]), &driver()));
}

#[test]
fn finalizer_is_not_due_twice() {
    assert!(!lacks_finalizer(&volume("Bound", "Delete", false, &[OURS]), &driver()));
}

#[test]
fn finalizer_is_not_due_on_a_volume_being_deleted() {
    assert!(!lacks_finalizer(&volume("Bound", "Delete", true, &[]), &driver()));
}

#[test]
fn finalizer_is_not_due_in_another_phase_or_policy() {
    assert!(!lacks_finalizer(&volume("Released", "Delete", false, &[]), &driver()));
    assert!(!lacks_finalizer(&volume("Bound", "Retain", false, &[]), &driver()));
}

#[test]
fn migration_mark_does_not_count_on_a_static_csi_volume() {
    let pv = read(&json!({
        "metadata": { "annotations": { "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" } },
        "spec": { "csi": { "driver": "other.example" } },
    }));
    assert!(!is_ours(&pv, &driver()));
}
