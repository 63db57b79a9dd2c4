//! Which claims, classes and volume objects of a migrated plug-in are the driver's (migration.md 5).
//!
//! Annotations decide over claims and volume objects, the provisioner alone over classes. Not here: what else a claim
//! or a volume needs before work starts.

use crate::model::claim::MIGRATED_TO;
use crate::model::meta::MetaExt;
use crate::model::volume::{PROVISIONED_BY, VOLUME_FINALIZER};
use crate::model::{Claim, Class, Driver, Volume};

/// Whether the claim is addressed to the driver, by its provisioner annotation or because it was migrated
/// (migration.md 5.1, "Qualifier"). Asked again right before provisioning.
pub fn is_addressed(claim: &Claim, driver: &Driver) -> bool {
    claim.named_provisioner() == Some(driver.name.as_str())
        || claim.metadata.annotation(MIGRATED_TO) == Some(driver.name.as_str())
}

/// Whether the driver should provision the claim as far as annotations tell: it is addressed, and the provisioner named
/// on it is known (migration.md 5.1, "Result").
pub fn should_provision(claim: &Claim, driver: &Driver) -> bool {
    is_addressed(claim, driver) && claim.named_provisioner().is_some_and(|name| driver.is_known_as(name))
}

/// Whether the class has to be translated: its provisioner is the driver's in-tree name (migration.md 5.2).
pub fn is_translated(class: &Class, driver: &Driver) -> bool {
    driver.in_tree_name.as_deref() == Some(class.provisioner.as_str())
}

/// Value of the metric label `migrated`; `None`, no label, for a driver that replaced no plug-in (migration.md 6.4).
pub fn metric_label(driver: &Driver, migrated: bool) -> Option<bool> {
    driver.in_tree_name.as_ref().map(|_| migrated)
}

/// Whether the driver looks after the volume object (migration.md 5.3).
pub fn owns_volume(volume: &Volume, driver: &Driver) -> bool {
    let is_known = |name: &str| driver.is_known_as(name);
    let migrated_here = volume.metadata.annotation(MIGRATED_TO).is_some_and(is_known);
    match (volume.metadata.annotation(PROVISIONED_BY), &volume.spec.csi) {
        (Some(provisioner), _) => is_known(provisioner) || migrated_here,
        (None, Some(csi)) => is_known(&csi.driver),
        (None, None) => migrated_here,
    }
}

/// Whether the storage of the volume object is to be deleted now (migration.md 5.3). A deletion time stamp without our
/// finalizer means that it already was.
pub fn should_delete(volume: &Volume, driver: &Driver) -> bool {
    let done = volume.metadata.is_being_deleted() && !volume.metadata.has_finalizer(VOLUME_FINALIZER);
    owns_volume(volume, driver) && volume.phase() == "Released" && volume.reclaim_policy() == "Delete" && !done
}

/// Whether the volume object lacks our finalizer and must get it: it is the driver's, bound and to be deleted with its
/// storage, and nobody asked for its deletion yet (provisioning.md 7.3).
pub fn lacks_finalizer(volume: &Volume, driver: &Driver) -> bool {
    owns_volume(volume, driver)
        && volume.phase() == "Bound"
        && volume.reclaim_policy() == "Delete"
        && !volume.metadata.is_being_deleted()
        && !volume.metadata.has_finalizer(VOLUME_FINALIZER)
}
