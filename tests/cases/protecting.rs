//! Protection of clone sources and snapshots.

use super::table::{read, read_all};
use csi_provisioner::model::Claim;
use csi_provisioner::model::claim::CLONE_FINALIZER;
use csi_provisioner::model::driver::Capabilities;
use csi_provisioner::model::finalizers;
use csi_provisioner::model::meta::MetaExt;
use csi_provisioner::model::snapshot::{SNAPSHOT_FINALIZER, Snapshot};
use csi_provisioner::protection::clone::{self, Release};
use csi_provisioner::protection::{SourceKey, snapshot, sweep};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

fn finalizers(meta: &ObjectMeta) -> Vec<String> {
    meta.finalizers.clone().unwrap_or_default()
}

/// One look at a source claim.
pub fn clone_finalizer(input: &Value) -> Value {
    let source: Claim = read(&input["source"]);
    let others: Vec<Claim> = read_all(&input["other_claims"]);
    let used: BTreeSet<SourceKey> = others.iter().filter_map(clone::source_of_unfinished).collect();
    let key = SourceKey::new(source.metadata.namespace(), source.metadata.name());
    let before = finalizers(&source.metadata);
    let (error, after) = match clone::release(&source, used.contains(&key)) {
        Release::NotDue => (Value::Null, before),
        Release::CloneInProgress => (json!({ "condition": "clone-in-progress" }), before),
        Release::Due => (Value::Null, finalizers::removed(&before, CLONE_FINALIZER).unwrap_or(before)),
    };
    json!({ "error": error, "finalizers_after": after })
}

/// Whether a claim is queued.
pub fn clone_queue(input: &Value) -> Value {
    let claim: Claim = read(&input["claim"]);
    let keys: Vec<String> = clone::is_candidate(&claim).then(|| claim.metadata.key()).into_iter().collect();
    json!({ "queue_length": keys.len(), "queue_keys": keys })
}

/// One sweep.
pub fn sweep(input: &Value) -> Value {
    let claims: Vec<Claim> = read_all(&input["claims"]);
    let used: BTreeSet<SourceKey> = claims.iter().filter_map(snapshot::source_of_unfinished).collect();
    let used = (input["claim_list_fails"] != Value::Bool(true)).then_some(used);
    let mut after = Map::new();
    for object in read_all::<Snapshot>(&input["snapshots"]) {
        let before = finalizers(&object.metadata);
        let left = if sweep::is_orphan(&object, used.as_ref()) {
            finalizers::removed(&before, SNAPSHOT_FINALIZER).unwrap_or(before)
        } else {
            before
        };
        after.insert(object.metadata.key(), json!(left));
    }
    json!({ "finalizers_after": after })
}

/// Whether there is a sweep at all.
pub fn sweep_enabled(input: &Value) -> Value {
    let seconds = input["interval_seconds"].as_i64().expect("seconds");
    let interval = u64::try_from(seconds).ok().map(Duration::from_secs);
    let snapshots =
        input["controller_capabilities"].as_array().into_iter().flatten().any(|have| have == "CREATE_DELETE_SNAPSHOT");
    let can = Capabilities { create_delete_snapshot: snapshots, ..Capabilities::default() };
    let listed = input["snapshot_api_listed"] == Value::Bool(true);
    json!({ "controller_created": sweep::is_enabled(interval, listed, can) })
}

/// Whether the claim restores a snapshot.
pub fn is_restore(input: &Value) -> Value {
    json!({ "result": snapshot::restored_by(&read(&input["claim"])).is_some() })
}

/// Which one it restores.
pub fn snapshot_key(input: &Value) -> Value {
    let key = snapshot::restored_by(&read(&input["claim"])).expect("the claim restores a snapshot");
    json!({ "namespace": key.namespace, "name": key.name })
}
