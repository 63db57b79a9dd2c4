//! Field rules: what makes an object a 422.
//!
//! Promises: the rules of the real server that clients of storage objects meet (required fields, syntax of names,
//! labels, annotations and finalizers, immutable fields), reported all at once with the real field paths. Pure.
//!
//! Not here: rules about kinds that the sandbox only carries (pods, deployments), beyond their metadata.

mod claim;
mod classes;
mod findings;
mod metadata;
pub mod quantity;
mod snapshot;
pub mod syntax;
#[cfg(test)]
mod tests;
mod volume;

use super::refusal::Refusal;
use super::resources::Resource;
use super::world::{internal, meta};
use findings::Findings;
use serde_json::Value;

/// Largest object: etcd's request limit.
const OBJECT_BYTES_MAX: usize = 1_572_864;

/// Checks a new object, or the main part of a changed one (`old` is the object before).
pub fn object(resource: &Resource, new: &Value, old: Option<&Value>) -> Result<(), Refusal> {
    readable(resource, new)?;
    let mut findings = Findings::default();
    metadata::check(resource, new, &mut findings);
    match resource.plural {
        "persistentvolumes" => volume::check(new, old, &mut findings),
        "persistentvolumeclaims" => claim::check(new, old, &mut findings),
        "storageclasses" => classes::storage_class(new, old, &mut findings),
        "volumeattributesclasses" => classes::attributes_class(new, old, &mut findings),
        "csistoragecapacities" => classes::capacity(new, old, &mut findings),
        "csinodes" => classes::csi_node(new, old, &mut findings),
        "csidrivers" => classes::driver(new, old, &mut findings),
        "volumeattachments" => classes::attachment(new, old, &mut findings),
        "leases" => classes::lease(new, &mut findings),
        "volumesnapshots" => snapshot::snapshot(new, old, &mut findings),
        "volumesnapshotcontents" => snapshot::content(new, &mut findings),
        "volumesnapshotclasses" => snapshot::class(new, &mut findings),
        "secrets" => classes::secret(new, old, &mut findings),
        "configmaps" => classes::config_map(new, &mut findings),
        "events" => classes::event(new, &mut findings),
        _ => {}
    }
    finish(resource, new, findings)?;
    fits(new)
}

/// Checks what any write may do to the metadata of an existing object.
pub fn metadata_update(resource: &Resource, old: &Value, new: &Value) -> Result<(), Refusal> {
    let mut findings = Findings::default();
    metadata::check_change(old, new, &mut findings);
    finish(resource, new, findings)
}

/// Checks a status write.
pub fn status_update(resource: &Resource, _old: &Value, new: &Value) -> Result<(), Refusal> {
    let mut findings = Findings::default();
    metadata::check(resource, new, &mut findings);
    if resource.plural == "persistentvolumeclaims" {
        claim::check_status(new, &mut findings);
    }
    finish(resource, new, findings)?;
    fits(new)
}

/// Whether a claim asks for more than before.
pub fn claim_grows(old: &Value, new: &Value) -> bool {
    let size = |claim: &Value| claim.pointer("/spec/resources/requests/storage").and_then(volume::quantity);
    size(old).zip(size(new)).is_some_and(|(old, new)| new.nanos() > old.nanos())
}

/// What is no quantity at all is no object of the kind: 400, not 422.
fn readable(resource: &Resource, object: &Value) -> Result<(), Refusal> {
    let amounts = match resource.plural {
        "persistentvolumeclaims" => object.pointer("/spec/resources/requests"),
        "persistentvolumes" => object.pointer("/spec/capacity"),
        _ => None,
    };
    for (_, amount) in amounts.and_then(Value::as_object).into_iter().flatten() {
        if volume::quantity(amount).is_none() {
            let kind = resource.kind;
            let message = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {amount} is not a quantity");
            return Err(Refusal::bad_request(message));
        }
    }
    Ok(())
}

fn finish(resource: &Resource, new: &Value, findings: Findings) -> Result<(), Refusal> {
    if findings.causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(resource.group, resource.kind, meta(new, "name"), findings.causes))
}

fn fits(object: &Value) -> Result<(), Refusal> {
    match serde_json::to_vec(object) {
        Ok(bytes) if bytes.len() <= OBJECT_BYTES_MAX => Ok(()),
        Ok(_) => Err(internal("etcdserver: request is too large")),
        Err(error) => Err(internal(error.to_string())),
    }
}
