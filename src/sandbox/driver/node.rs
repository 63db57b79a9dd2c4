//! The Node service. Published volumes are empty directories or files, so that paths behave as with a real driver.

use super::MockDriver;
use super::backend::MAX_VOLUMES_PER_NODE;
use super::script::Call;
use crate::csi::proto::v1::node_server::Node;
use crate::csi::proto::v1::node_service_capability::rpc::Type as Rpc;
use crate::csi::proto::v1::node_service_capability::{self, Type};
use crate::csi::proto::v1::volume_capability::AccessType;
#[allow(clippy::wildcard_imports, reason = "the service names nearly all of its messages")]
use crate::csi::proto::v1::*;
use std::io;
use std::path::Path;
use tonic::{Request, Response, Status, async_trait};

const CAPABILITIES: [Rpc; 7] = [
    Rpc::StageUnstageVolume,
    Rpc::GetVolumeStats,
    Rpc::ExpandVolume,
    Rpc::SingleNodeMultiWriter,
    Rpc::VolumeMountGroup,
    Rpc::GetVolumeHealth,
    Rpc::GetStorageHealth,
];

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl Node for MockDriver {
    async fn node_stage_volume(&self, request: Request<NodeStageVolumeRequest>) -> Answer<NodeStageVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("NodeStageVolume", &request.volume_id, &request);
        self.call(call, |backend| backend.stage(&request)).await?;
        Ok(Response::new(NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Answer<NodeUnstageVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("NodeUnstageVolume", &request.volume_id, &request);
        let path = &request.staging_target_path;
        self.call(call, |backend| backend.leave_path(&request.volume_id, path, "staging_target_path")).await?;
        Ok(Response::new(NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Answer<NodePublishVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("NodePublishVolume", &request.volume_id, &request);
        self.call(call, |backend| backend.publish_on_node(&request)).await?;
        let capability = request.volume_capability.as_ref();
        let block = capability.is_some_and(|one| matches!(one.access_type, Some(AccessType::Block(_))));
        make_target(Path::new(&request.target_path), block)
            .map_err(|error| Status::internal(format!("cannot make {}: {error}", request.target_path)))?;
        Ok(Response::new(NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Answer<NodeUnpublishVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("NodeUnpublishVolume", &request.volume_id, &request);
        self.call(call, |backend| backend.leave_path(&request.volume_id, &request.target_path, "target_path")).await?;
        remove_target(Path::new(&request.target_path))
            .map_err(|error| Status::internal(format!("cannot remove {}: {error}", request.target_path)))?;
        Ok(Response::new(NodeUnpublishVolumeResponse {}))
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Answer<NodeGetVolumeStatsResponse> {
        let request = request.into_inner();
        let call = Call::new("NodeGetVolumeStats", &request.volume_id, &request);
        let total = self.call(call, |backend| backend.used_at(&request.volume_id, &request.volume_path)).await?;
        let usage = vec![VolumeUsage { available: total, total, used: 0, unit: volume_usage::Unit::Bytes.into() }];
        Ok(Response::new(NodeGetVolumeStatsResponse { usage }))
    }

    async fn node_get_volume_health(
        &self,
        request: Request<NodeGetVolumeHealthRequest>,
    ) -> Answer<NodeGetVolumeHealthResponse> {
        let request = request.into_inner();
        let call = Call::new("NodeGetVolumeHealth", &request.volume_id, &request);
        self.call(call, |backend| backend.existing(&request.volume_id).map(|_| ())).await?;
        let healthy = VolumeHealth { volume_id: request.volume_id, health_statuses: Vec::new() };
        Ok(Response::new(NodeGetVolumeHealthResponse { volume_health: Some(healthy) }))
    }

    async fn node_get_storage_health(
        &self,
        request: Request<NodeGetStorageHealthRequest>,
    ) -> Answer<NodeGetStorageHealthResponse> {
        let call = Call::new("NodeGetStorageHealth", "", request.get_ref());
        self.call(call, |_| Ok(Response::new(NodeGetStorageHealthResponse { backend_health: Vec::new() }))).await
    }

    async fn node_expand_volume(&self, request: Request<NodeExpandVolumeRequest>) -> Answer<NodeExpandVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("NodeExpandVolume", &request.volume_id, &request);
        let capacity_bytes = self
            .call(call, |backend| {
                let size = backend.used_at(&request.volume_id, &request.volume_path)?;
                match &request.capacity_range {
                    Some(range) => backend.expand(&request.volume_id, Some(range)),
                    None => Ok(size),
                }
            })
            .await?;
        Ok(Response::new(NodeExpandVolumeResponse { capacity_bytes }))
    }

    async fn node_get_capabilities(
        &self,
        request: Request<NodeGetCapabilitiesRequest>,
    ) -> Answer<NodeGetCapabilitiesResponse> {
        let capabilities = CAPABILITIES
            .into_iter()
            .filter(|_| self.options.all_capabilities)
            .map(|rpc| NodeServiceCapability {
                r#type: Some(Type::Rpc(node_service_capability::Rpc { r#type: rpc.into() })),
            })
            .collect();
        let call = Call::new("NodeGetCapabilities", "", request.get_ref());
        self.call(call, |_| Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))).await
    }

    async fn node_get_info(&self, request: Request<NodeGetInfoRequest>) -> Answer<NodeGetInfoResponse> {
        let call = Call::new("NodeGetInfo", "", request.get_ref());
        let segments = self.options.segments.clone();
        let answer = NodeGetInfoResponse {
            node_id: self.options.node.clone(),
            max_volumes_per_node: MAX_VOLUMES_PER_NODE,
            accessible_topology: self.has_topology().then_some(Topology { segments }),
        };
        self.call(call, |_| Ok(Response::new(answer))).await
    }
}

fn make_target(path: &Path, block: bool) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if block { std::fs::File::create(path).map(|_| ()) } else { std::fs::create_dir_all(path) }
}

fn remove_target(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
