//! The `GroupController` service.

use super::MockDriver;
use super::script::Call;
use crate::csi::proto::v1::group_controller_server::GroupController;
use crate::csi::proto::v1::group_controller_service_capability::rpc::Type as Rpc;
use crate::csi::proto::v1::group_controller_service_capability::{self, Type};
use crate::csi::proto::v1::{
    CreateVolumeGroupSnapshotRequest, CreateVolumeGroupSnapshotResponse, DeleteVolumeGroupSnapshotRequest,
    DeleteVolumeGroupSnapshotResponse, GetVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotResponse,
    GroupControllerGetCapabilitiesRequest, GroupControllerGetCapabilitiesResponse, GroupControllerServiceCapability,
};
use tonic::{Request, Response, Status, async_trait};

#[async_trait]
impl GroupController for MockDriver {
    async fn group_controller_get_capabilities(
        &self,
        request: Request<GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<GroupControllerGetCapabilitiesResponse>, Status> {
        let rpc = Rpc::CreateDeleteGetVolumeGroupSnapshot;
        let capability = GroupControllerServiceCapability {
            r#type: Some(Type::Rpc(group_controller_service_capability::Rpc { r#type: rpc.into() })),
        };
        let call = Call::new("GroupControllerGetCapabilities", "", request.get_ref());
        let answer = GroupControllerGetCapabilitiesResponse { capabilities: vec![capability] };
        self.call(call, |_| Ok(Response::new(answer))).await
    }

    async fn create_volume_group_snapshot(
        &self,
        request: Request<CreateVolumeGroupSnapshotRequest>,
    ) -> Result<Response<CreateVolumeGroupSnapshotResponse>, Status> {
        let request = request.into_inner();
        let call = Call::new("CreateVolumeGroupSnapshot", &request.name, &request);
        let group = self.call(call, |backend| backend.create_group(&request)).await?;
        Ok(Response::new(CreateVolumeGroupSnapshotResponse { group_snapshot: Some(group) }))
    }

    async fn delete_volume_group_snapshot(
        &self,
        request: Request<DeleteVolumeGroupSnapshotRequest>,
    ) -> Result<Response<DeleteVolumeGroupSnapshotResponse>, Status> {
        let request = request.into_inner();
        let call = Call::new("DeleteVolumeGroupSnapshot", &request.group_snapshot_id, &request);
        self.call(call, |backend| backend.delete_group(&request.group_snapshot_id, &request.snapshot_ids)).await?;
        Ok(Response::new(DeleteVolumeGroupSnapshotResponse {}))
    }

    async fn get_volume_group_snapshot(
        &self,
        request: Request<GetVolumeGroupSnapshotRequest>,
    ) -> Result<Response<GetVolumeGroupSnapshotResponse>, Status> {
        let request = request.into_inner();
        let call = Call::new("GetVolumeGroupSnapshot", &request.group_snapshot_id, &request);
        let found =
            self.call(call, |backend| backend.get_group(&request.group_snapshot_id, &request.snapshot_ids)).await?;
        Ok(Response::new(GetVolumeGroupSnapshotResponse { group_snapshot: Some(found) }))
    }
}
