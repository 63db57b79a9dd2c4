//! The Identity service.

use super::MockDriver;
use super::script::Call;
use crate::csi::proto::v1::identity_server::Identity;
use crate::csi::proto::v1::plugin_capability::service::Type as Service;
use crate::csi::proto::v1::plugin_capability::volume_expansion::Type as Expansion;
use crate::csi::proto::v1::plugin_capability::{self, Type};
use crate::csi::proto::v1::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    PluginCapability, ProbeRequest, ProbeResponse,
};
use std::collections::BTreeMap;
use tonic::{Request, Response, Status, async_trait};

#[async_trait]
impl Identity for MockDriver {
    async fn get_plugin_info(
        &self,
        request: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        let call = Call::new("GetPluginInfo", "", request.get_ref());
        let name = self.options.name.clone();
        let answer = GetPluginInfoResponse {
            name,
            vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: BTreeMap::new(),
        };
        self.call(call, |_| Ok(Response::new(answer))).await
    }

    async fn get_plugin_capabilities(
        &self,
        request: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let mut capabilities = vec![service(Service::ControllerService)];
        if self.has_topology() {
            capabilities.push(service(Service::VolumeAccessibilityConstraints));
        }
        if self.options.all_capabilities {
            capabilities.push(service(Service::GroupControllerService));
            if self.has_topology() {
                capabilities.push(service(Service::SnapshotAccessibilityConstraints));
            }
            let online = plugin_capability::VolumeExpansion { r#type: Expansion::Online.into() };
            capabilities.push(PluginCapability { r#type: Some(Type::VolumeExpansion(online)) });
        }
        let call = Call::new("GetPluginCapabilities", "", request.get_ref());
        self.call(call, |_| Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))).await
    }

    async fn probe(&self, request: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        let call = Call::new("Probe", "", request.get_ref());
        self.call(call, |_| Ok(Response::new(ProbeResponse { ready: Some(true) }))).await
    }
}

fn service(kind: Service) -> PluginCapability {
    PluginCapability { r#type: Some(Type::Service(plugin_capability::Service { r#type: kind.into() })) }
}
