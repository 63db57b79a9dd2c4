//! The protection controllers: an object in use stays until its use ends (cluster-volume-controllers.md C).
//!
//! [`finalizers_of_claim`] and [`finalizers_of_volume`] decide, [`worker`] writes. The `Unused` condition of newer
//! servers is not written.

pub mod worker;

use super::binder::objects::{claims_of, finalizers, is_deleting, key, phase, text, uid};
use serde_json::Value;

/// Keeps a claim while a pod uses it.
pub const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
/// Keeps a volume while it is Bound.
pub const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// The finalizers that the claim should have; `None` = as they are.
pub fn finalizers_of_claim<'a>(claim: &Value, pods: impl IntoIterator<Item = &'a Value>) -> Option<Vec<String>> {
    changed(claim, CLAIM_FINALIZER, || pods.into_iter().any(|pod| uses(pod, claim)))
}

/// The finalizers that the volume should have; `None` = as they are.
pub fn finalizers_of_volume(volume: &Value) -> Option<Vec<String>> {
    changed(volume, VOLUME_FINALIZER, || phase(volume) == "Bound")
}

fn changed(object: &Value, own: &str, in_use: impl FnOnce() -> bool) -> Option<Vec<String>> {
    let held = finalizers(object);
    let has_it = held.contains(&own);
    let all = held.iter().map(|finalizer| (*finalizer).to_owned());
    match (is_deleting(object), has_it) {
        (false, false) => Some(all.chain([own.to_owned()]).collect()),
        (true, true) if !in_use() => Some(all.filter(|finalizer| finalizer != own).collect()),
        (false, true) | (true, _) => None,
    }
}

/// Whether a pod keeps a claim from going: it has a node and names the claim, or is still running and the claim was
/// made for it. A finished pod counts, an unscheduled one does not.
pub fn uses(pod: &Value, claim: &Value) -> bool {
    if text(pod, "/spec/nodeName").is_empty() || !claims_of(pod).contains(&key(claim)) {
        return false;
    }
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let named = volumes
        .into_iter()
        .flatten()
        .any(|volume| text(volume, "/persistentVolumeClaim/claimName") == text(claim, "/metadata/name"));
    named || (!is_shut_down(pod) && is_controlled_by(claim, pod))
}

fn is_shut_down(pod: &Value) -> bool {
    is_deleting(pod) && pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64) == Some(0)
}

fn is_controlled_by(claim: &Value, pod: &Value) -> bool {
    let owners = claim.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners
        .into_iter()
        .flatten()
        .any(|owner| text(owner, "/uid") == uid(pod) && owner.get("controller").and_then(Value::as_bool) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(deleting: bool, finalizers: &[&str]) -> Value {
        let mut claim =
            json!({"metadata": {"namespace": "default", "name": "data", "uid": "u1", "finalizers": finalizers}});
        if deleting {
            claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        claim
    }

    fn pod(node: &str) -> Value {
        json!({
            "metadata": {"namespace": "default", "name": "web", "uid": "p1"},
            "spec": {"nodeName": node, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        })
    }

    #[test]
    fn new_claim_gets_the_finalizer_behind_the_others() {
        assert_eq!(finalizers_of_claim(&claim(false, &["a"]), []), Some(vec!["a".into(), CLAIM_FINALIZER.into()]));
    }

    #[test]
    fn claim_used_by_a_scheduled_pod_stays() {
        assert_eq!(finalizers_of_claim(&claim(true, &[CLAIM_FINALIZER]), [&pod("node")]), None);
    }

    #[test]
    fn claim_used_by_an_unscheduled_pod_goes() {
        assert_eq!(finalizers_of_claim(&claim(true, &["a", CLAIM_FINALIZER]), [&pod("")]), Some(vec!["a".into()]));
    }

    #[test]
    fn finished_pod_still_protects() {
        let mut finished = pod("node");
        finished["status"] = json!({"phase": "Succeeded"});
        assert!(uses(&finished, &claim(true, &[])));
    }

    #[test]
    fn claim_being_deleted_does_not_get_the_finalizer_back() {
        assert_eq!(finalizers_of_claim(&claim(true, &[]), []), None);
    }

    #[test]
    fn bound_volume_stays_and_released_volume_goes() {
        let volume = |phase: &str| {
            json!({
                "metadata": {"name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [VOLUME_FINALIZER]},
                "status": {"phase": phase},
            })
        };
        assert_eq!(finalizers_of_volume(&volume("Bound")), None);
        assert_eq!(finalizers_of_volume(&volume("Released")), Some(Vec::new()));
    }
}
