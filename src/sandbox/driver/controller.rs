//! The Controller service: each call is logged, run through the script and answered by the backend.

use super::attach::page;
use super::backend::Backend;
use super::script::Call;
use super::{MockDriver, detached};
use crate::csi::proto::v1::controller_server::Controller;
use crate::csi::proto::v1::controller_service_capability::rpc::Type as Rpc;
use crate::csi::proto::v1::controller_service_capability::{self, Type};
#[allow(clippy::wildcard_imports, reason = "the service names nearly all of its messages")]
use crate::csi::proto::v1::*;
use std::collections::BTreeMap;
use tonic::{Request, Response, Status, async_trait};

/// What every driver of this kind can do.
const ALWAYS: [Rpc; 2] = [Rpc::CreateDeleteVolume, Rpc::GetCapacity];
/// What it can do with all capabilities on.
const OPTIONAL: [Rpc; 13] = [
    Rpc::ListVolumes,
    Rpc::CreateDeleteSnapshot,
    Rpc::ListSnapshots,
    Rpc::CloneVolume,
    Rpc::PublishReadonly,
    Rpc::ExpandVolume,
    Rpc::ListVolumesPublishedNodes,
    Rpc::GetVolume,
    Rpc::SingleNodeMultiWriter,
    Rpc::ModifyVolume,
    Rpc::GetSnapshot,
    Rpc::GetVolumeHealth,
    Rpc::ListVolumeHealth,
];

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl Controller for MockDriver {
    async fn create_volume(&self, request: Request<CreateVolumeRequest>) -> Answer<CreateVolumeResponse> {
        let (driver, request) = (self.clone(), request.into_inner());
        let call = Call::new("CreateVolume", &request.name, &request);
        let volume = detached(async move { driver.call(call, |backend| backend.create(&request)).await }).await??;
        Ok(Response::new(CreateVolumeResponse { volume: Some(volume) }))
    }

    async fn delete_volume(&self, request: Request<DeleteVolumeRequest>) -> Answer<DeleteVolumeResponse> {
        let (driver, request) = (self.clone(), request.into_inner());
        let call = Call::new("DeleteVolume", &request.volume_id, &request);
        detached(async move { driver.call(call, |backend| backend.delete(&request.volume_id)).await }).await??;
        Ok(Response::new(DeleteVolumeResponse {}))
    }

    async fn controller_publish_volume(
        &self,
        request: Request<ControllerPublishVolumeRequest>,
    ) -> Answer<ControllerPublishVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("ControllerPublishVolume", &request.volume_id, &request);
        self.call(call, |backend| backend.publish(&request, &self.options.node)).await?;
        let publish_context = BTreeMap::from([("device".to_owned(), "/dev/mock".to_owned())]);
        Ok(Response::new(ControllerPublishVolumeResponse { publish_context }))
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<ControllerUnpublishVolumeRequest>,
    ) -> Answer<ControllerUnpublishVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("ControllerUnpublishVolume", &request.volume_id, &request);
        self.call(call, |backend| backend.unpublish(&request.volume_id, &request.node_id)).await?;
        Ok(Response::new(ControllerUnpublishVolumeResponse {}))
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Answer<ValidateVolumeCapabilitiesResponse> {
        let request = request.into_inner();
        let call = Call::new("ValidateVolumeCapabilities", &request.volume_id, &request);
        self.call(call, |backend| backend.validate(&request)).await.map(Response::new)
    }

    async fn list_volumes(&self, request: Request<ListVolumesRequest>) -> Answer<ListVolumesResponse> {
        let request = request.into_inner();
        let call = Call::new("ListVolumes", "", &request);
        let all = self.call(call, |backend| Ok(entries(backend))).await?;
        let (entries, next_token) = page(all, request.max_entries, &request.starting_token)?;
        Ok(Response::new(ListVolumesResponse { entries, next_token }))
    }

    async fn get_capacity(&self, request: Request<GetCapacityRequest>) -> Answer<GetCapacityResponse> {
        let request = request.into_inner();
        let call = Call::new("GetCapacity", "", &request);
        let available_capacity = self.call(call, |backend| Ok(backend.free())).await?;
        let maximum_volume_size = Some(available_capacity);
        Ok(Response::new(GetCapacityResponse { available_capacity, maximum_volume_size, minimum_volume_size: None }))
    }

    async fn controller_get_capabilities(
        &self,
        request: Request<ControllerGetCapabilitiesRequest>,
    ) -> Answer<ControllerGetCapabilitiesResponse> {
        let mut all = ALWAYS.to_vec();
        if self.options.publish {
            all.push(Rpc::PublishUnpublishVolume);
        }
        if self.options.all_capabilities {
            all.extend(OPTIONAL);
        }
        let capabilities = all
            .into_iter()
            .map(|rpc| ControllerServiceCapability {
                r#type: Some(Type::Rpc(controller_service_capability::Rpc { r#type: rpc.into() })),
            })
            .collect();
        let call = Call::new("ControllerGetCapabilities", "", request.get_ref());
        self.call(call, |_| Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities }))).await
    }

    async fn create_snapshot(&self, request: Request<CreateSnapshotRequest>) -> Answer<CreateSnapshotResponse> {
        let request = request.into_inner();
        let call = Call::new("CreateSnapshot", &request.name, &request);
        let snapshot = self.call(call, |backend| backend.create_snapshot(&request)).await?;
        Ok(Response::new(CreateSnapshotResponse { snapshot: Some(snapshot) }))
    }

    async fn delete_snapshot(&self, request: Request<DeleteSnapshotRequest>) -> Answer<DeleteSnapshotResponse> {
        let request = request.into_inner();
        let call = Call::new("DeleteSnapshot", &request.snapshot_id, &request);
        self.call(call, |backend| backend.delete_snapshot(&request.snapshot_id)).await?;
        Ok(Response::new(DeleteSnapshotResponse {}))
    }

    async fn list_snapshots(&self, request: Request<ListSnapshotsRequest>) -> Answer<ListSnapshotsResponse> {
        let request = request.into_inner();
        let call = Call::new("ListSnapshots", &request.snapshot_id, &request);
        let all = self.call(call, |backend| Ok(backend.find_snapshots(&request))).await?;
        let (found, next_token) = page(all, request.max_entries, &request.starting_token)?;
        let entries = found.into_iter().map(|one| list_snapshots_response::Entry { snapshot: Some(one) }).collect();
        Ok(Response::new(ListSnapshotsResponse { entries, next_token }))
    }

    async fn get_snapshot(&self, request: Request<GetSnapshotRequest>) -> Answer<GetSnapshotResponse> {
        let request = request.into_inner();
        let call = Call::new("GetSnapshot", &request.snapshot_id, &request);
        let snapshot = self.call(call, |backend| backend.get_snapshot(&request.snapshot_id)).await?;
        Ok(Response::new(GetSnapshotResponse { snapshot: Some(snapshot) }))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> Answer<ControllerExpandVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("ControllerExpandVolume", &request.volume_id, &request);
        let range = request.capacity_range.as_ref();
        let capacity_bytes = self.call(call, |backend| backend.expand(&request.volume_id, range)).await?;
        Ok(Response::new(ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required: true }))
    }

    async fn controller_get_volume(
        &self,
        request: Request<ControllerGetVolumeRequest>,
    ) -> Answer<ControllerGetVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("ControllerGetVolume", &request.volume_id, &request);
        let stored = self.call(call, |backend| backend.existing(&request.volume_id).cloned()).await?;
        let status =
            controller_get_volume_response::VolumeStatus { published_node_ids: stored.published.into_keys().collect() };
        Ok(Response::new(ControllerGetVolumeResponse { volume: Some(stored.volume), status: Some(status) }))
    }

    async fn controller_modify_volume(
        &self,
        request: Request<ControllerModifyVolumeRequest>,
    ) -> Answer<ControllerModifyVolumeResponse> {
        let request = request.into_inner();
        let call = Call::new("ControllerModifyVolume", &request.volume_id, &request);
        self.call(call, |backend| backend.modify(&request.volume_id, &request.mutable_parameters)).await?;
        Ok(Response::new(ControllerModifyVolumeResponse {}))
    }

    async fn controller_list_volume_health(
        &self,
        request: Request<ControllerListVolumeHealthRequest>,
    ) -> Answer<ControllerListVolumeHealthResponse> {
        let request = request.into_inner();
        let call = Call::new("ControllerListVolumeHealth", "", &request);
        // Only unhealthy volumes are listed, and none of ours ever is.
        self.call(call, |_| page(Vec::<VolumeHealth>::new(), request.max_entries, &request.starting_token)).await?;
        Ok(Response::new(ControllerListVolumeHealthResponse::default()))
    }

    async fn controller_get_volume_health(
        &self,
        request: Request<ControllerGetVolumeHealthRequest>,
    ) -> Answer<ControllerGetVolumeHealthResponse> {
        let request = request.into_inner();
        let call = Call::new("ControllerGetVolumeHealth", &request.volume_id, &request);
        self.call(call, |backend| backend.existing(&request.volume_id).map(|_| ())).await?;
        let healthy = VolumeHealth { volume_id: request.volume_id, health_statuses: Vec::new() };
        Ok(Response::new(ControllerGetVolumeHealthResponse { volume_health: Some(healthy) }))
    }
}

fn entries(backend: &Backend) -> Vec<list_volumes_response::Entry> {
    backend
        .volumes()
        .values()
        .map(|stored| Backend::entry(&stored.volume, stored.published.keys().cloned().collect()))
        .collect()
}
