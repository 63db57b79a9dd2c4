//! Whole objects, as the reference writes them (its own output, read back from an API server).

use super::*;
use crate::claim::plan::ClaimIdentity;
use crate::claim::secrets::SecretRefs;
use std::collections::BTreeMap;

fn facts() -> VolumeFacts {
    VolumeFacts {
        volume_name: "pvc-uid-1".to_owned(),
        claim: ClaimIdentity {
            namespace: "default".to_owned(),
            name: "data".to_owned(),
            uid: "uid-1".to_owned(),
            resource_version: "7".to_owned(),
        },
        class_name: "class-a".to_owned(),
        class_provisioner: "driver.example.test".to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        access_modes: vec!["ReadWriteOnce".to_owned()],
        volume_mode: Some("Filesystem".to_owned()),
        driver: "driver.example.test".to_owned(),
        ..VolumeFacts::default()
    }
}

fn made() -> Accepted {
    Accepted {
        id: "id-pvc-uid-1".to_owned(),
        capacity_bytes: 1 << 30,
        context: BTreeMap::from([("ctx".to_owned(), "1".to_owned())]),
        ..Accepted::default()
    }
}

fn plain() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": "pvc-uid-1",
            "annotations": {
                "pv.kubernetes.io/provisioned-by": "driver.example.test",
                "volume.kubernetes.io/provisioner-deletion-secret-name": "",
                "volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
            },
            "finalizers": ["external-provisioner.volume.kubernetes.io/finalizer"],
        },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "csi": {
                "driver": "driver.example.test",
                "volumeHandle": "id-pvc-uid-1",
                "volumeAttributes": { "ctx": "1", "storage.kubernetes.io/csiProvisionerIdentity": "1-2-driver" },
            },
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": "data",
                "uid": "uid-1", "resourceVersion": "7",
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "class-a",
            "volumeMode": "Filesystem",
        },
    })
}

#[test]
fn plain_claim_gives_exactly_this_object() {
    assert_eq!(persistent_volume(&facts(), &made(), "1-2-driver"), plain());
}

#[test]
fn secrets_file_system_attributes_class_and_topology_add_exactly_these_fields() {
    let secret = |name: &str| Some(SecretRef { name: name.to_owned(), namespace: "n".to_owned() });
    let facts = VolumeFacts {
        refs: SecretRefs { provisioner: secret("p"), controller_modify: secret("m"), ..SecretRefs::default() },
        mount_options: vec!["ro".to_owned()],
        fs_type: "xfs".to_owned(),
        attributes_class: Some("gold".to_owned()),
        ..facts()
    };
    let zone = Segments::from([("topology.example.test/zone".to_owned(), "z0".to_owned())]);
    let made = Accepted { accessible_topology: vec![Segments::new(), zone], ..made() };
    let mut wanted = plain();
    wanted["metadata"]["annotations"] = json!({
        "pv.kubernetes.io/provisioned-by": "driver.example.test",
        "volume.kubernetes.io/provisioner-deletion-secret-name": "p",
        "volume.kubernetes.io/provisioner-deletion-secret-namespace": "n",
        "volume.kubernetes.io/controller-modify-secret-name": "m",
        "volume.kubernetes.io/controller-modify-secret-namespace": "n",
    });
    wanted["spec"]["mountOptions"] = json!(["ro"]);
    wanted["spec"]["csi"]["fsType"] = json!("xfs");
    wanted["spec"]["volumeAttributesClassName"] = json!("gold");
    wanted["spec"]["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [
        { "key": "topology.example.test/zone", "operator": "In", "values": ["z0"] },
    ] }] } });
    assert_eq!(persistent_volume(&facts, &made, "1-2-driver"), wanted);
}

#[test]
fn driver_may_override_the_identity() {
    let context = BTreeMap::from([(IDENTITY_KEY.to_owned(), "own".to_owned())]);
    let object = persistent_volume(&facts(), &Accepted { context, ..made() }, "ours");
    assert_eq!(object["spec"]["csi"]["volumeAttributes"], json!({ IDENTITY_KEY: "own" }));
}

#[test]
fn only_the_same_volume_for_the_same_claim_is_the_same() {
    let volume = |handle: &str, uid: &str| json!({ "spec": { "csi": { "driver": "d", "volumeHandle": handle }, "claimRef": { "uid": uid } } });
    assert!(same_volume(&volume("h", "u"), &volume("h", "u")));
    assert!(!same_volume(&volume("h", "u"), &volume("other", "u")));
    assert!(!same_volume(&volume("h", "u"), &volume("h", "other")));
    assert!(!same_volume(&json!({ "spec": {} }), &volume("h", "u")));
    assert!(!same_volume(&json!({}), &json!({})));
}

#[test]
fn translated_volumes_are_compared_by_their_in_tree_source() {
    let volume =
        |id: &str| json!({ "spec": { "awsElasticBlockStore": { "volumeID": id }, "claimRef": { "uid": "u" } } });
    assert!(same_volume(&volume("vol-1"), &volume("vol-1")));
    assert!(!same_volume(&volume("vol-1"), &volume("vol-2")));
}
