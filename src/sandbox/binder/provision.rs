//! Who makes a volume for a claim, and when (cluster-volume-controllers.md A.9b, A.10).

use super::migrated::{csi_name, mark_claim};
use super::names::{BETA_STORAGE_PROVISIONER, DEFAULT_CLASS, IN_TREE_PREFIX, STORAGE_PROVISIONER};
use super::objects::{annotate, annotation, class, name, text};
use super::plan::{Action, Plan, View, about_claim};
use serde_json::Value;
use std::cmp::Reverse;

/// Whether the claim's volume is made only when a pod needs it. An error for a class without a binding mode.
pub fn is_late_binding(view: &View, claim: &Value) -> Result<bool, String> {
    let Some(class) = view.classes.get(class(claim)) else { return Ok(false) };
    match text(class, "/volumeBindingMode") {
        "" => Err(format!("VolumeBindingMode not set for StorageClass {:?}", name(class))),
        mode => Ok(mode == "WaitForFirstConsumer"),
    }
}

/// The class of claims that name none: the newest marked one, of equally old ones the first by name.
pub fn default_class(view: &View) -> Option<&str> {
    let marked = |class: &&Value| DEFAULT_CLASS.iter().any(|key| annotation(class, key) == Some("true"));
    let age = |class: &&Value| (Reverse(text(class, "/metadata/creationTimestamp").to_owned()), name(class).to_owned());
    view.classes.values().map(AsRef::as_ref).filter(marked).min_by_key(age).map(name)
}

/// The operation behind [`Action::Provision`]: names the provisioner in the claim and says that it is waited for.
pub fn provision(view: &View, claim: &str) -> Plan {
    let mut plan = Plan::default();
    let Some(claim) = view.claims.get(claim) else { return plan };
    let Some(class) = view.classes.get(class(claim)) else {
        let message = format!("storageclass.storage.k8s.io {:?} not found", class(claim));
        plan.warning(about_claim(claim), "ProvisioningFailed", message);
        return plan;
    };
    let provisioner = text(class, "/provisioner");
    let outside = match csi_name(provisioner) {
        Some(csi) => csi,
        None if !provisioner.starts_with(IN_TREE_PREFIX) => provisioner,
        None => {
            let message = format!("no volume plugin matched name: {provisioner}");
            plan.warning(about_claim(claim), "ProvisioningFailed", message);
            return plan;
        }
    };
    if annotation(claim, STORAGE_PROVISIONER) != Some(outside) {
        let mut named = (**claim).clone();
        annotate(&mut named, BETA_STORAGE_PROVISIONER, outside);
        annotate(&mut named, STORAGE_PROVISIONER, outside);
        mark_claim(&mut named);
        plan.act(Action::WriteClaim(named));
    }
    plan.normal(about_claim(claim), "ExternalProvisioning", waiting_text(outside));
    plan
}

fn waiting_text(provisioner: &str) -> String {
    format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
         system administrator. If volume creation is delayed, please verify that the provisioner is running and \
         correctly registered."
    )
}
