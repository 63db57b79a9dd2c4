//! Every call that is made to the driver.
//!
//! Promises:
//! - one deadline per call, told to the driver and enforced here, also when the transport hangs;
//! - a call ends with an answer in our words or with a [`CallError`] that says whether the driver itself spoke
//!   ([`super::failure`]); nothing is retried here;
//! - each call that ends is reported to the [`CallObserver`] once, and shown at log level 5 without secrets ([`super::redact`]);
//! - nothing is asked about volumes while nobody knows who is at the socket ([`super::presence`]);
//! - dropping a call's future abandons it, which is no answer: the caller keeps its knowledge as it was.

use super::channel::Transport;
use super::convert::{self, CapacityQuery, CapacityReply, CreateReply, NodeInfo};
use super::presence::Presence;
use super::proto::v1;
use super::veil::Veil;
use super::witness::{Witness, Witnessed};
use super::{failure, redact};
use crate::model::driver::Capabilities;
use crate::model::{CallError, CreateRequest, Secrets};
use http::uri::PathAndQuery;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tracing::debug;

/// Largest answer that is read, as in Go: what is larger cannot come from a driver in its senses.
const LARGEST_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// Longest deadline that is told to the driver; the header has eight digits, and the library panics far beyond.
const LONGEST_DEADLINE: Duration = Duration::from_secs(99_999_999);
/// Label of calls made before the driver's name is known (provisioning.md 2.1 step 5).
const UNKNOWN_DRIVER: &str = "unknown-driver";

/// Is told the end of every call.
pub trait CallObserver {
    /// `code` is `OK` or the name of a gRPC code; `migrated` is given only when the driver took over an in-tree plug-in.
    #[allow(clippy::too_many_arguments, reason = "one per label of the metric, and its value")]
    fn call_ended(&self, driver: &str, method: &'static str, code: &str, migrated: Option<bool>, seconds: f64);
}

/// The driver, ready to be called; cheap to clone.
#[derive(Clone)]
pub struct Calls {
    transport: Witnessed<Transport>,
    timeout: Duration,
    observer: Arc<dyn CallObserver + Send + Sync>,
    label: Arc<Mutex<Label>>,
    presence: Presence,
}

/// What the observer is told about the driver.
#[derive(Clone)]
struct Label {
    driver: Arc<str>,
    migration_target: bool,
}

/// Why the driver has no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The call failed.
    #[error("the CSI driver did not tell its name")]
    Call(#[source] CallError),
    /// The answer has no name.
    #[error("the CSI driver answered GetPluginInfo with an empty name; the interface requires one")]
    Empty,
}

impl Calls {
    /// `timeout` is the deadline of each call (`--timeout`).
    pub fn new(transport: Transport, timeout: Duration, observer: Arc<dyn CallObserver + Send + Sync>) -> Self {
        let label = Label { driver: UNKNOWN_DRIVER.into(), migration_target: false };
        let presence = Presence::constant();
        Self { transport: Witnessed(transport), timeout, observer, label: Arc::new(Mutex::new(label)), presence }
    }

    /// Lets calls about volumes wait, up to their deadline, while who is at the socket is not known.
    #[must_use]
    pub fn waiting_for(self, presence: Presence) -> Self {
        Self { presence, ..self }
    }

    /// Names the driver in what the observer is told, for all clones; before it is `unknown-driver`.
    pub fn set_driver_name(&self, name: &str, migration_target: bool) {
        *self.label.lock().unwrap_or_else(PoisonError::into_inner) = Label { driver: name.into(), migration_target };
    }

    /// Whether the driver can be used now; an answer without `ready` means yes (csi-rules.md 2).
    pub async fn probe(&self) -> Result<bool, CallError> {
        let reply: v1::ProbeResponse = self.call("/csi.v1.Identity/Probe", false, v1::ProbeRequest {}).await?;
        Ok(reply.ready.unwrap_or(true))
    }

    /// The driver's name, asked each time.
    pub async fn driver_name(&self) -> Result<String, NameError> {
        let reply = self.call("/csi.v1.Identity/GetPluginInfo", false, v1::GetPluginInfoRequest {}).await;
        let v1::GetPluginInfoResponse { name, .. } = reply.map_err(NameError::Call)?;
        if name.is_empty() { Err(NameError::Empty) } else { Ok(name) }
    }

    /// What driver and Controller service report; two calls, and the failure of either is one (provisioning.md 2.1 step 7).
    pub async fn capabilities(&self) -> Result<Capabilities, CallError> {
        let request = v1::GetPluginCapabilitiesRequest {};
        let of_plugin = self.call("/csi.v1.Identity/GetPluginCapabilities", false, request).await?;
        let request = v1::ControllerGetCapabilitiesRequest {};
        let of_controller = self.call("/csi.v1.Controller/ControllerGetCapabilities", false, request).await?;
        Ok(convert::capabilities(&of_plugin, &of_controller))
    }

    /// Makes a volume, or finds the one of this name. `migrated`: for a claim of the former in-tree plug-in.
    pub async fn create_volume(&self, request: &CreateRequest, migrated: bool) -> Result<CreateReply, CallError> {
        self.driver_is_known().await?;
        let (veil, request) = (Veil::over(&request.secrets), convert::create_request(request));
        let reply = self.call_with("/csi.v1.Controller/CreateVolume", migrated, request, &veil).await;
        reply.map(convert::create_reply)
    }

    /// Deletes a volume; one that does not exist is a success of the driver's.
    pub async fn delete_volume(&self, id: &str, secrets: &Secrets, migrated: bool) -> Result<(), CallError> {
        self.driver_is_known().await?;
        let (veil, request) = (Veil::over(secrets), convert::delete_request(id, secrets));
        let reply = self.call_with("/csi.v1.Controller/DeleteVolume", migrated, request, &veil).await;
        reply.map(|v1::DeleteVolumeResponse {}| ())
    }

    /// What the driver says about the node that it runs on.
    pub async fn node_info(&self) -> Result<NodeInfo, CallError> {
        self.call("/csi.v1.Node/NodeGetInfo", false, v1::NodeGetInfoRequest {}).await.map(convert::node_info)
    }

    /// Free space for volumes that match the query.
    pub async fn get_capacity(&self, query: CapacityQuery<'_>) -> Result<CapacityReply, CallError> {
        self.driver_is_known().await?;
        let request = convert::capacity_request(query);
        self.call("/csi.v1.Controller/GetCapacity", false, request).await.map(convert::capacity_reply)
    }

    // === one call ===

    async fn driver_is_known(&self) -> Result<(), CallError> {
        tokio::time::timeout(self.timeout, self.presence.known()).await.map_err(|_| failure::away(self.timeout))
    }

    async fn call<Q, A>(&self, method: &'static str, migrated: bool, request: Q) -> Result<A, CallError>
    where
        Q: prost::Message + prost::Name + 'static,
        A: prost::Message + prost::Name + Default + 'static,
    {
        self.call_with(method, migrated, request, &Veil::default()).await
    }

    /// A call that carries secrets.
    async fn call_with<Q, A>(
        &self,
        method: &'static str,
        migrated: bool,
        request: Q,
        veil: &Veil,
    ) -> Result<A, CallError>
    where
        Q: prost::Message + prost::Name + 'static,
        A: prost::Message + prost::Name + Default + 'static,
    {
        debug!(target: "csi", method, request = %redact::render(&request), "calling the CSI driver");
        let began = Instant::now();
        let result = self.exchange(method, request, began, veil).await;
        let took = began.elapsed();
        let code = match &result {
            Ok(reply) => {
                debug!(target: "csi", method, reply = %veil.hide(&redact::render(reply)), ?took, "the CSI driver answered");
                "OK"
            }
            Err(error) => {
                debug!(target: "csi", method, %error, error.from_driver, ?took, "the call to the CSI driver failed");
                error.code.name()
            }
        };
        let label = self.label.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let migrated = label.migration_target.then_some(migrated);
        self.observer.call_ended(&label.driver, method, code, migrated, took.as_secs_f64());
        result
    }

    async fn exchange<Q, A>(
        &self,
        method: &'static str,
        message: Q,
        began: Instant,
        veil: &Veil,
    ) -> Result<A, CallError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let witness = Witness::default();
        let mut request = Request::new(message);
        request.set_timeout(self.timeout.min(LONGEST_DEADLINE));
        request.extensions_mut().insert(witness.clone());
        let path = PathAndQuery::from_static(method);
        match tokio::time::timeout(self.timeout, send(self.transport.clone(), path, request)).await {
            Ok(Ok(reply)) => Ok(reply.into_inner()),
            Ok(Err(status)) => {
                let expired = began.elapsed() >= self.timeout;
                Err(failure::explain(&status, witness.heard(), expired, self.timeout, veil))
            }
            Err(_) => Err(failure::out_of_time(self.timeout)),
        }
    }
}

async fn send<Q, A>(
    transport: Witnessed<Transport>,
    path: PathAndQuery,
    request: Request<Q>,
) -> Result<Response<A>, Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let mut client = Grpc::new(transport).max_decoding_message_size(LARGEST_ANSWER_BYTES);
    client.ready().await.map_err(Status::from_error)?;
    client.unary(request, path, ProstCodec::default()).await
}

#[cfg(test)]
mod tests;
