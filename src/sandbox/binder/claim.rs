//! What a claim needs next (cluster-volume-controllers.md A.6).

use super::bind::{bind, to_claim_phase};
use super::migrated;
use super::names::{BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE};
use super::objects::{
    annotation, child, claim_key, claim_uid, claims_of, class, has_class, is_terminated, key, name, owns, phase, text,
    uid,
};
use super::plan::{Action, Plan, View, about_claim};
use super::provision::{default_class, is_late_binding};
use super::search::{find, mismatch};
use serde_json::{Value, json};

/// The writes and events that are due for the claim. Empty for a claim that is not there.
pub fn sync_claim(view: &View, claim_key: &str) -> Plan {
    let mut plan = Plan::default();
    let Some(held) = view.claims.get(claim_key) else { return plan };
    let mut claim = (**held).clone();
    if migrated::mark_claim(&mut claim) {
        plan.act(Action::WriteClaim(claim.clone()));
    }
    if annotation(&claim, BIND_COMPLETED).is_some() {
        bound(view, claim, &mut plan);
    } else if text(&claim, "/spec/volumeName").is_empty() {
        unbound(view, claim, &mut plan);
    } else {
        named(view, claim, &mut plan);
    }
    plan
}

/// A claim that leaves the choice to the binder.
fn unbound(view: &View, claim: Value, plan: &mut Plan) {
    let late = match is_late_binding(view, &claim) {
        Ok(late) => late,
        Err(error) => return plan.error = Some(error),
    };
    match find(view.volumes.values(), &claim, late) {
        Err(error) => plan.error = Some(format!("error finding PV for claim {:?}: {error}", key(&claim))),
        Ok(Some(volume)) => bind(plan, volume, &claim),
        Ok(None) => without_volume(view, claim, late, plan),
    }
}

fn without_volume(view: &View, mut claim: Value, late: bool, plan: &mut Plan) {
    if let Some(class) = default_class(view).filter(|_| !has_class(&claim)) {
        if let Some(spec) = child(&mut claim, "spec") {
            spec.insert("storageClassName".to_owned(), json!(class));
        }
        // The update wakes the claim again.
        return plan.act(Action::WriteClaim(claim));
    }
    if late && annotation(&claim, SELECTED_NODE).is_none() {
        let (reason, message) = waits_for(view, &claim);
        plan.normal(about_claim(&claim), reason, message);
    } else if class(&claim).is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        plan.normal(about_claim(&claim), "FailedBinding", message.to_owned());
    } else {
        // The phase is left alone, as the real controller does.
        return plan.act(Action::Provision(key(&claim)));
    }
    to_claim_phase(plan, claim, "Pending");
}

/// Reason and text of the event of a claim whose pod has no node yet.
fn waits_for(view: &View, claim: &Value) -> (&'static str, String) {
    let claim = key(claim);
    let waits =
        |pod: &&Value| claims_of(pod).contains(&claim) && !is_terminated(pod) && text(pod, "/spec/nodeName").is_empty();
    let pods: Vec<&str> = view.pods.values().map(AsRef::as_ref).filter(waits).map(name).collect();
    match pods.as_slice() {
        [] => ("WaitForFirstConsumer", "waiting for first consumer to be created before binding".to_owned()),
        [pod] => ("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
        pods => ("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", pods.join(","))),
    }
}

/// A claim that names its volume and is not bound yet.
fn named(view: &View, claim: Value, plan: &mut Plan) {
    let wanted = text(&claim, "/spec/volumeName");
    let Some(volume) = view.volumes.get(wanted) else { return to_claim_phase(plan, claim, "Pending") };
    let Some(owner) = claim_key(volume) else {
        return match mismatch(volume, &claim) {
            None => bind(plan, volume, &claim),
            Some(reason) => {
                let message = format!("Cannot bind to requested volume {wanted:?}: {reason}");
                plan.warning(about_claim(&claim), "VolumeMismatch", message);
                to_claim_phase(plan, claim, "Pending");
            }
        };
    };
    if owns(volume, &claim) {
        // Nothing is compared when both name each other, as the real controller does.
        return bind(plan, volume, &claim);
    }
    plan.warning(
        about_claim(&claim),
        "FailedBinding",
        format!("volume {wanted:?} already bound to a different claim."),
    );
    if annotation(&claim, BOUND_BY_CONTROLLER).is_some() {
        plan.error = Some(format!(
            "invalid binding of claim {:?} to volume {wanted:?}: volume already claimed by {owner:?}",
            key(&claim)
        ));
    } else {
        to_claim_phase(plan, claim, "Pending");
    }
}

/// A claim whose first binding is finished.
fn bound(view: &View, claim: Value, plan: &mut Plan) {
    let wanted = text(&claim, "/spec/volumeName");
    if wanted.is_empty() {
        return lost(
            plan,
            claim,
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        );
    }
    match view.volumes.get(wanted) {
        None => {
            lost(plan, claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
        }
        Some(volume) if claim_key(volume).is_none() || claim_uid(volume) == uid(&claim) => bind(plan, volume, &claim),
        Some(_) => {
            lost(
                plan,
                claim,
                "ClaimMisbound",
                "Two claims are bound to the same volume, this one is bound incorrectly",
            );
        }
    }
}

fn lost(plan: &mut Plan, claim: Value, reason: &'static str, message: &str) {
    if phase(&claim) != "Lost" {
        let about = about_claim(&claim);
        to_claim_phase(plan, claim, "Lost");
        plan.warning(about, reason, message.to_owned());
    }
}
