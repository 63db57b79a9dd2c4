//! Whether a volume object is ours to look after (provisioning.md 7.2).

use crate::model::claim::MIGRATED_TO;
use crate::model::meta::MetaExt;
use crate::model::volume::PROVISIONED_BY;
use crate::model::{Driver, Volume};

/// Whether this provisioner deletes the volume's storage. Volumes that an administrator made by hand for our driver
/// count too; another provisioner's annotation rules them out.
pub fn is_ours(volume: &Volume, driver: &Driver) -> bool {
    let known = |name: Option<&str>| name.is_some_and(|name| driver.is_known_as(name));
    let migrated_to = volume.metadata.annotation(MIGRATED_TO);
    if let Some(provisioner) = volume.metadata.annotation(PROVISIONED_BY) {
        return known(Some(provisioner)) || known(migrated_to);
    }
    match &volume.spec.csi {
        Some(csi) => driver.is_known_as(&csi.driver),
        None => known(migrated_to),
    }
}

#[cfg(test)]
mod tests;
