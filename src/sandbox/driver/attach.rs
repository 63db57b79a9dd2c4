//! Publishing, growing and changing volumes: the answers of the optional controller calls (csi-rules.md 7, 12.2).

use super::backend::{Backend, MAX_VOLUMES_PER_NODE, check_capability, check_mutable};
use crate::csi::proto::v1::list_volumes_response::{Entry, VolumeStatus};
use crate::csi::proto::v1::validate_volume_capabilities_response::Confirmed;
use crate::csi::proto::v1::{
    CapacityRange, ControllerPublishVolumeRequest, ValidateVolumeCapabilitiesRequest,
    ValidateVolumeCapabilitiesResponse, Volume,
};
use std::collections::BTreeMap;
use tonic::Status;

impl Backend {
    /// `ControllerPublishVolume`.
    pub(super) fn publish(&mut self, request: &ControllerPublishVolumeRequest, node: &str) -> Result<(), Status> {
        super::required(&request.volume_id, "volume_id")?;
        super::required(&request.node_id, "node_id")?;
        let capability = request
            .volume_capability
            .as_ref()
            .ok_or_else(|| Status::invalid_argument("volume_capability is required"))?;
        check_capability(capability)?;
        let on_node = self.volumes.values().filter(|stored| stored.published.contains_key(&request.node_id)).count();
        let stored = self.existing(&request.volume_id)?;
        if request.node_id != node {
            return Err(Status::not_found(format!("node {} does not exist", request.node_id)));
        }
        if let Some((had, readonly)) = stored.published.get(&request.node_id) {
            return if had.as_ref() == Some(capability) && *readonly == request.readonly {
                Ok(())
            } else {
                Err(Status::already_exists(format!("volume is published on {node} with other arguments")))
            };
        }
        if i64::try_from(on_node).unwrap_or(i64::MAX) >= MAX_VOLUMES_PER_NODE {
            return Err(Status::resource_exhausted(format!("node {node} holds {on_node} volumes already")));
        }
        stored.published.insert(request.node_id.clone(), (Some(capability.clone()), request.readonly));
        Ok(())
    }

    /// `ControllerUnpublishVolume`: fine for volumes that do not exist any more; no node means all nodes.
    pub(super) fn unpublish(&mut self, volume: &str, node: &str) -> Result<(), Status> {
        super::required(volume, "volume_id")?;
        if let Some(stored) = self.volumes.get_mut(volume) {
            if node.is_empty() {
                stored.published.clear();
            } else {
                stored.published.remove(node);
            }
        }
        Ok(())
    }

    /// `ValidateVolumeCapabilities`.
    pub(super) fn validate(
        &mut self,
        request: &ValidateVolumeCapabilitiesRequest,
    ) -> Result<ValidateVolumeCapabilitiesResponse, Status> {
        super::required(&request.volume_id, "volume_id")?;
        if request.volume_capabilities.is_empty() {
            return Err(Status::invalid_argument("volume_capabilities is required"));
        }
        self.existing(&request.volume_id)?;
        for capability in &request.volume_capabilities {
            if let Err(refused) = check_capability(capability) {
                return Ok(ValidateVolumeCapabilitiesResponse {
                    confirmed: None,
                    message: refused.message().to_owned(),
                });
            }
        }
        let confirmed = Confirmed {
            volume_context: request.volume_context.clone(),
            volume_capabilities: request.volume_capabilities.clone(),
            parameters: request.parameters.clone(),
            mutable_parameters: request.mutable_parameters.clone(),
        };
        Ok(ValidateVolumeCapabilitiesResponse { confirmed: Some(confirmed), message: String::new() })
    }

    /// `ControllerExpandVolume` and `NodeExpandVolume`: never smaller, at least what is required.
    pub(super) fn expand(&mut self, volume: &str, range: Option<&CapacityRange>) -> Result<i64, Status> {
        super::required(volume, "volume_id")?;
        let range = range.ok_or_else(|| Status::invalid_argument("capacity_range is required"))?;
        let free = self.free();
        let stored = self.existing(volume)?;
        let size = stored.volume.capacity_bytes.max(range.required_bytes);
        if range.limit_bytes > 0 && size > range.limit_bytes || size - stored.volume.capacity_bytes > free {
            return Err(Status::out_of_range(format!("volume cannot have {size} bytes")));
        }
        stored.volume.capacity_bytes = size;
        Ok(size)
    }

    /// `ControllerModifyVolume`: all or nothing; absent keys are left alone.
    pub(super) fn modify(&mut self, volume: &str, parameters: &BTreeMap<String, String>) -> Result<(), Status> {
        super::required(volume, "volume_id")?;
        let stored = self.existing(volume)?;
        check_mutable(parameters)?;
        stored.mutable_parameters.extend(parameters.clone());
        Ok(())
    }

    /// One entry of `ListVolumes` and `ControllerGetVolume`.
    pub(super) fn entry(volume: &Volume, published: Vec<String>) -> Entry {
        Entry { volume: Some(volume.clone()), status: Some(VolumeStatus { published_node_ids: published }) }
    }
}

/// Cuts one page out of a list. The token is the position of the next entry.
pub(super) fn page<T>(all: Vec<T>, most: i32, token: &str) -> Result<(Vec<T>, String), Status> {
    let start = match token {
        "" => 0,
        text => text.parse::<usize>().ok().filter(|start| *start <= all.len()).ok_or_else(|| {
            Status::aborted(format!("starting_token {text:?} is not one of ours: list from the start"))
        })?,
    };
    let most = match usize::try_from(most) {
        Ok(0) => usize::MAX,
        Ok(most) => most,
        Err(_) => return Err(Status::invalid_argument("max_entries must not be negative")),
    };
    let total = all.len();
    let rest: Vec<T> = all.into_iter().skip(start).take(most).collect();
    let next = start + rest.len();
    Ok((rest, if next < total { next.to_string() } else { String::new() }))
}
