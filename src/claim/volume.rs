//! The volume object of a created volume (provisioning.md 5.2 and 3.5 point 10).
//!
//! Promises: the same facts and answer give the same object; it carries our finalizer and the claim's UID from the
//! start, so that it is never bound elsewhere and never removed before its storage.

use super::answer::Accepted;
use super::plan::VolumeFacts;
use crate::model::quantity;
use crate::model::request::Segments;
use crate::model::secret::SecretRef;
use crate::model::volume::{DELETION_SECRET_NAME, DELETION_SECRET_NAMESPACE, PROVISIONED_BY, VOLUME_FINALIZER};
use serde_json::{Map, Value, json};

/// Entry of the volume attributes that tells which process made the volume.
pub const IDENTITY_KEY: &str = "storage.kubernetes.io/csiProvisionerIdentity";
/// Annotation for the resizer: name of the secret for volume modification.
pub const MODIFY_SECRET_NAME: &str = "volume.kubernetes.io/controller-modify-secret-name";
/// Annotation for the resizer: namespace of the secret for volume modification.
pub const MODIFY_SECRET_NAMESPACE: &str = "volume.kubernetes.io/controller-modify-secret-namespace";

/// The object to save. `identity` names this process.
pub fn persistent_volume(facts: &VolumeFacts, volume: &Accepted, identity: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": facts.volume_name,
            "annotations": annotations(facts),
            "finalizers": [VOLUME_FINALIZER],
        },
        "spec": spec(facts, volume, identity),
    })
}

fn annotations(facts: &VolumeFacts) -> Map<String, Value> {
    // Both keys are always there, so that deletion never has to guess from a class that may have changed.
    let deletion =
        facts.refs.provisioner.clone().unwrap_or_else(|| SecretRef { name: String::new(), namespace: String::new() });
    let mut all = Map::new();
    let mut put = |key: &str, value: &str| all.insert(key.to_owned(), Value::from(value));
    put(PROVISIONED_BY, &facts.class_provisioner);
    put(DELETION_SECRET_NAME, &deletion.name);
    put(DELETION_SECRET_NAMESPACE, &deletion.namespace);
    if let Some(modify) = &facts.refs.controller_modify {
        put(MODIFY_SECRET_NAME, &modify.name);
        put(MODIFY_SECRET_NAMESPACE, &modify.namespace);
    }
    all
}

fn spec(facts: &VolumeFacts, volume: &Accepted, identity: &str) -> Map<String, Value> {
    let mut spec = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec.insert(key.to_owned(), value);
        }
    };
    let listed = |list: &[String]| (!list.is_empty()).then(|| json!(list));
    put("accessModes", listed(&facts.access_modes));
    put("mountOptions", listed(&facts.mount_options));
    put("capacity", Some(json!({ "storage": quantity::format_bytes(volume.capacity_bytes) })));
    put("persistentVolumeReclaimPolicy", facts.reclaim_policy.as_deref().map(Value::from));
    put("volumeMode", facts.volume_mode.as_deref().map(Value::from));
    put("storageClassName", text(&facts.class_name));
    put("volumeAttributesClassName", facts.attributes_class.as_deref().map(Value::from));
    put("nodeAffinity", node_affinity(&volume.accessible_topology));
    let claim = &facts.claim;
    put(
        "claimRef",
        Some(json!({
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
            "resourceVersion": claim.resource_version,
        })),
    );
    put("csi", Some(Value::Object(csi(facts, volume, identity))));
    spec
}

fn text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| Value::from(text))
}

fn csi(facts: &VolumeFacts, volume: &Accepted, identity: &str) -> Map<String, Value> {
    let mut csi = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            csi.insert(key.to_owned(), value);
        }
    };
    put("driver", Some(Value::from(facts.driver.as_str())));
    put("volumeHandle", Some(Value::from(volume.id.as_str())));
    put("readOnly", facts.read_only.then_some(Value::Bool(true)));
    put("fsType", text(&facts.fs_type));
    let mut attributes = Map::new();
    attributes.insert(IDENTITY_KEY.to_owned(), Value::from(identity));
    // The driver's entries on top: it may even override the identity (provisioning.md 5.1 point 2).
    attributes.extend(volume.context.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))));
    put("volumeAttributes", Some(Value::Object(attributes)));
    let refs = &facts.refs;
    let secrets = [
        ("controllerPublishSecretRef", &refs.controller_publish),
        ("nodeStageSecretRef", &refs.node_stage),
        ("nodePublishSecretRef", &refs.node_publish),
        ("controllerExpandSecretRef", &refs.controller_expand),
        ("nodeExpandSecretRef", &refs.node_expand),
    ];
    for (key, secret) in secrets {
        put(key, secret.as_ref().map(|secret| json!({ "name": secret.name, "namespace": secret.namespace })));
    }
    csi
}

/// One term per non-empty segment map; none = reachable from anywhere.
fn node_affinity(topologies: &[Segments]) -> Option<Value> {
    let terms: Vec<Value> = topologies.iter().filter(|segments| !segments.is_empty()).map(term).collect();
    (!terms.is_empty()).then(|| json!({ "required": { "nodeSelectorTerms": terms } }))
}

fn term(segments: &Segments) -> Value {
    let expressions: Vec<Value> =
        segments.iter().map(|(key, value)| json!({ "key": key, "operator": "In", "values": [value] })).collect();
    json!({ "matchExpressions": expressions })
}

/// Whether an object that was there already is the one that was to be saved: the same volume for the same claim.
///
/// The reference takes any object of the name for its own (weak point W6); with shortened UIDs two claims can share a
/// name, and one volume must not be handed out twice.
pub fn same_volume(existing: &Value, wanted: &Value) -> bool {
    let same = |path: &str| existing.pointer(path) == wanted.pointer(path);
    let same_claim = wanted.pointer("/spec/claimRef/uid").is_some() && same("/spec/claimRef/uid");
    let same_source = if wanted.pointer("/spec/csi").is_some() {
        same("/spec/csi/driver") && same("/spec/csi/volumeHandle")
    } else {
        IN_TREE_SOURCES.iter().all(|source| same(source))
    };
    same_claim && same_source
}

/// Where a volume of a replaced in-tree plug-in says which storage it is.
const IN_TREE_SOURCES: [&str; 9] = [
    "/spec/awsElasticBlockStore/volumeID",
    "/spec/gcePersistentDisk/pdName",
    "/spec/azureDisk/diskURI",
    "/spec/azureFile/shareName",
    "/spec/azureFile/secretName",
    "/spec/cinder/volumeID",
    "/spec/vsphereVolume/volumePath",
    "/spec/portworxVolume/volumeID",
    "/spec/csi/volumeHandle",
];

#[cfg(test)]
mod tests;
