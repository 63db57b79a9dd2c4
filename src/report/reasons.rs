//! Reasons and components of events, byte-equal to the Go sidecar's (provisioning.md 11): people filter and alert
//! on them. The texts of events belong to the rooms that send them.

/// Normal, on the claim: an attempt begins, or an external populator is expected to do it.
pub const PROVISIONING: &str = "Provisioning";

/// Normal, on the claim: the `PersistentVolume` is saved.
pub const PROVISIONING_SUCCEEDED: &str = "ProvisioningSucceeded";

/// Warning, on the claim: an attempt failed.
pub const PROVISIONING_FAILED: &str = "ProvisioningFailed";

/// Warning, on the `PersistentVolume`: deleting its storage failed.
pub const VOLUME_FAILED_DELETE: &str = "VolumeFailedDelete";

/// Normal, on the `PersistentVolume`: it is still attached, deletion waits.
pub const VOLUME_DELETE: &str = "VolumeDelete";

/// Normal, on the Lease: leadership was won.
pub const LEADER_ELECTION: &str = "LeaderElection";

/// Component of the event about external populators.
pub const POPULATOR_COMPONENT: &str = "external-provisioner";

/// Component of all events on claims and volumes but the populator's: `<driver>_<hostname>_<uuid>`, with a UUID
/// that is new at every start.
pub fn component(driver: &str, hostname: &str, uuid: &str) -> String {
    format!("{driver}_{hostname}_{uuid}")
}

/// Component of events on the Lease: `<driver>/<hostname>`, the host name as it is.
pub fn lease_component(driver: &str, hostname: &str) -> String {
    format!("{driver}/{hostname}")
}

#[cfg(test)]
mod tests {
    use super::{component, lease_component};

    #[test]
    fn component_joins_driver_host_and_uuid_by_underscores() {
        assert_eq!(component("a.csi.k8s.io", "host-1", "u-2"), "a.csi.k8s.io_host-1_u-2");
    }

    #[test]
    fn lease_component_keeps_the_raw_host_name() {
        assert_eq!(lease_component("a.csi.k8s.io", "Host.1"), "a.csi.k8s.io/Host.1");
    }
}
