//! How volumes are used on the node (csi-rules.md 10.3): only bookkeeping and empty directories or files.

use super::backend::{Backend, PathUse, check_capability};
use crate::csi::proto::v1::volume_capability::access_mode::Mode;
use crate::csi::proto::v1::{NodePublishVolumeRequest, NodeStageVolumeRequest, VolumeCapability};
use tonic::Status;

impl Backend {
    /// `NodeStageVolume`.
    pub(super) fn stage(&mut self, request: &NodeStageVolumeRequest) -> Result<(), Status> {
        super::required(&request.volume_id, "volume_id")?;
        super::required(&request.staging_target_path, "staging_target_path")?;
        let capability = present(request.volume_capability.as_ref())?;
        let stored = self.existing(&request.volume_id)?;
        match stored.paths.get(&request.staging_target_path) {
            Some(PathUse::Staged(had)) if had == capability => Ok(()),
            Some(_) => Err(Status::already_exists("volume is staged there with another capability")),
            None => {
                stored.paths.insert(request.staging_target_path.clone(), PathUse::Staged(capability.clone()));
                Ok(())
            }
        }
    }

    /// `NodePublishVolume`: how often a volume may be published on one node depends on its access mode.
    pub(super) fn publish_on_node(&mut self, request: &NodePublishVolumeRequest) -> Result<(), Status> {
        super::required(&request.volume_id, "volume_id")?;
        super::required(&request.target_path, "target_path")?;
        let capability = present(request.volume_capability.as_ref())?;
        let stored = self.existing(&request.volume_id)?;
        let wanted = PathUse::Published(capability.clone(), request.readonly);
        if let Some(had) = stored.paths.get(&request.target_path) {
            return if *had == wanted {
                Ok(())
            } else {
                Err(Status::already_exists("volume is published there with other arguments"))
            };
        }
        let elsewhere = stored.paths.values().any(|used| matches!(used, PathUse::Published(..)));
        if elsewhere && !many_targets(capability) {
            return Err(Status::failed_precondition("volume is published at another path of this node"));
        }
        stored.paths.insert(request.target_path.clone(), wanted);
        Ok(())
    }

    /// `NodeUnpublishVolume` and `NodeUnstageVolume`.
    pub(super) fn leave_path(&mut self, volume: &str, path: &str, field: &str) -> Result<(), Status> {
        super::required(volume, "volume_id")?;
        super::required(path, field)?;
        if let Some(stored) = self.volumes.get_mut(volume) {
            stored.paths.remove(path);
        }
        Ok(())
    }

    /// A volume that must be in use at one of its paths.
    pub(super) fn used_at(&mut self, volume: &str, path: &str) -> Result<i64, Status> {
        super::required(volume, "volume_id")?;
        super::required(path, "volume_path")?;
        let stored = self.existing(volume)?;
        if stored.paths.contains_key(path) {
            Ok(stored.volume.capacity_bytes)
        } else {
            Err(Status::not_found(format!("volume {volume} is not at {path}")))
        }
    }
}

fn present(capability: Option<&VolumeCapability>) -> Result<&VolumeCapability, Status> {
    let capability = capability.ok_or_else(|| Status::invalid_argument("volume_capability is required"))?;
    check_capability(capability).map(|()| capability)
}

fn many_targets(capability: &VolumeCapability) -> bool {
    let mode = capability.access_mode.as_ref().and_then(|mode| Mode::try_from(mode.mode).ok());
    match mode {
        Some(
            Mode::MultiNodeReaderOnly
            | Mode::MultiNodeSingleWriter
            | Mode::MultiNodeMultiWriter
            | Mode::SingleNodeMultiWriter,
        ) => true,
        Some(Mode::SingleNodeWriter | Mode::SingleNodeReaderOnly | Mode::SingleNodeSingleWriter | Mode::Unknown)
        | None => false,
    }
}
