//! A stand-in for scheduler and kubelet on the sandbox's one node: just enough that claims which wait for a pod walk.
//!
//! - [`next_step`] decides for one pod: choose the node for its claims, give the pod its node, run it, let it go;
//! - [`worker`] acts.
//!
//! Not here: fitting pods to nodes, volumes that exist already for late binding, containers.

pub mod worker;

use super::binder::names::SELECTED_NODE;
use super::binder::objects::{annotation, claims_of, class, is_deleting, phase, text};
use super::binder::plan::Objects;
use serde_json::Value;

/// What a pod needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, or something that others do.
    Wait,
    /// These claims (keys) wait for the node.
    SelectNode(Vec<String>),
    /// All claims are bound: the pod goes to the node.
    Place,
    /// The pod has its node: it runs.
    Run,
    /// The pod is being deleted: it ends.
    End,
}

/// Decides for one pod.
pub fn next_step(pod: &Value, claims: &Objects, classes: &Objects) -> Step {
    let placed = !text(pod, "/spec/nodeName").is_empty();
    if is_deleting(pod) {
        return Step::End;
    }
    if placed {
        return if matches!(phase(pod), "" | "Pending") { Step::Run } else { Step::Wait };
    }
    let wanted = claims_of(pod);
    let (mut unbound, mut waiting) = (false, Vec::new());
    for key in wanted {
        let Some(claim) = claims.get(&key) else { return Step::Wait };
        if phase(claim) != "Bound" {
            unbound = true;
            if waits_for_node(claim, classes) {
                waiting.push(key);
            }
        }
    }
    match (unbound, waiting.is_empty()) {
        (false, _) => Step::Place,
        (true, false) => Step::SelectNode(waiting),
        (true, true) => Step::Wait,
    }
}

/// Whether a claim is unbound, late binding and without a node.
pub fn waits_for_node(claim: &Value, classes: &Objects) -> bool {
    let late = |class: &Value| text(class, "/volumeBindingMode") == "WaitForFirstConsumer";
    matches!(phase(claim), "" | "Pending")
        && !is_deleting(claim)
        && text(claim, "/spec/volumeName").is_empty()
        && annotation(claim, SELECTED_NODE).is_none()
        && classes.get(class(claim)).is_some_and(|class| late(class))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn classes() -> Objects {
        let class = |mode: &str| Arc::new(json!({"volumeBindingMode": mode}));
        Objects::from([("late".to_owned(), class("WaitForFirstConsumer")), ("now".to_owned(), class("Immediate"))])
    }

    fn claims(class: &str, phase: &str) -> Objects {
        let claim = json!({
            "metadata": {"namespace": "default", "name": "data"},
            "spec": {"storageClassName": class}, "status": {"phase": phase},
        });
        Objects::from([("default/data".to_owned(), Arc::new(claim))])
    }

    fn pod() -> Value {
        json!({
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        })
    }

    #[test]
    fn late_claim_of_a_pod_gets_the_node() {
        let step = next_step(&pod(), &claims("late", "Pending"), &classes());
        assert_eq!(step, Step::SelectNode(vec!["default/data".into()]));
    }

    #[test]
    fn pod_waits_for_an_immediate_claim() {
        assert_eq!(next_step(&pod(), &claims("now", "Pending"), &classes()), Step::Wait);
    }

    #[test]
    fn pod_waits_for_a_claim_that_is_not_there() {
        assert_eq!(next_step(&pod(), &Objects::new(), &classes()), Step::Wait);
    }

    #[test]
    fn pod_is_placed_once_its_claims_are_bound() {
        assert_eq!(next_step(&pod(), &claims("late", "Bound"), &classes()), Step::Place);
    }

    #[test]
    fn placed_pod_runs_and_a_deleted_one_ends() {
        let mut placed = pod();
        placed["spec"]["nodeName"] = json!("node");
        assert_eq!(next_step(&placed, &Objects::new(), &classes()), Step::Run);
        placed["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(next_step(&placed, &Objects::new(), &classes()), Step::End);
    }
}
