//! A complete CSI 1.13 driver without storage behind it: the sandbox's own driver and the driver author's reference.
//!
//! - [`backend`] keeps volumes and snapshots and decides every answer (csi-rules.md 4 to 8), without gRPC;
//! - [`topology`] picks where a volume is reachable from;
//! - [`script`] makes calls slow, failing or deadly on demand;
//! - `identity`, `controller`, `group`, `node` are the gRPC services.
//!
//! Argument checks come before existence checks, and every call is idempotent by its key.

mod attach;
pub mod backend;
mod controller;
mod group;
mod identity;
mod node;
pub mod script;
pub mod serve;
mod snapshots;
mod staging;
mod topology;

use crate::csi::proto::v1::controller_server::ControllerServer;
use crate::csi::proto::v1::group_controller_server::GroupControllerServer;
use crate::csi::proto::v1::identity_server::IdentityServer;
use crate::csi::proto::v1::node_server::NodeServer;
use backend::Backend;
use script::{Call, Script};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tonic::Status;
use tonic::service::{Routes, RoutesBuilder};

/// What the driver claims to be.
#[derive(Clone, Debug)]
pub struct DriverOptions {
    /// Driver name.
    pub name: String,
    /// Node name, reported by the node service.
    pub node: String,
    /// Topology segments of the node; empty = no topology capability.
    pub segments: BTreeMap<String, String>,
    /// All places that volumes can be in, for requirements that name more than the own node.
    pub capacity_bytes: i64,
    /// Volumes must be attached by the controller.
    pub publish: bool,
    /// Snapshots, clones, attributes classes and the rest of the optional calls.
    pub all_capabilities: bool,
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self {
            name: "sandbox.csi.dev".to_owned(),
            node: "sandbox-node".to_owned(),
            segments: BTreeMap::new(),
            capacity_bytes: 100 << 40,
            publish: false,
            all_capabilities: false,
        }
    }
}

/// The driver; clones share their state.
#[derive(Clone)]
pub struct MockDriver {
    options: Arc<DriverOptions>,
    backend: Arc<Mutex<Backend>>,
    script: Script,
}

impl MockDriver {
    /// A driver without volumes.
    pub fn new(options: DriverOptions) -> Self {
        let backend = Backend::new(options.capacity_bytes, options.segments.clone());
        Self { options: Arc::new(options), backend: Arc::new(Mutex::new(backend)), script: Script::default() }
    }

    /// The same driver on another node: one storage behind both.
    #[must_use]
    pub fn on_node(&self, node: &str, segments: BTreeMap<String, String>) -> Self {
        let options = DriverOptions { node: node.to_owned(), segments, ..DriverOptions::clone(&self.options) };
        Self { options: Arc::new(options), ..self.clone() }
    }

    /// Its node.
    pub fn node(&self) -> &str {
        &self.options.node
    }

    /// The gRPC services, for a socket or to be called in-process.
    pub fn routes(&self) -> Routes {
        let mut routes = RoutesBuilder::default();
        routes
            .add_service(IdentityServer::new(self.clone()))
            .add_service(ControllerServer::new(self.clone()))
            .add_service(GroupControllerServer::new(self.clone()))
            .add_service(NodeServer::new(self.clone()));
        routes.routes()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Faults and the call log.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// What is stored, for assertions and views.
    pub fn backend(&self) -> MutexGuard<'_, Backend> {
        self.backend.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one call through the script: it may wait, fail before or after the state has changed, or never answer.
    async fn call<T>(&self, call: Call, act: impl FnOnce(&mut Backend) -> Result<T, Status>) -> Result<T, Status> {
        self.script.around(call, || act(&mut self.backend())).await
    }

    fn has_topology(&self) -> bool {
        !self.options.segments.is_empty()
    }
}

/// Runs a future that must not be cancelled with its caller: a driver goes on when the call that asked is gone.
async fn detached<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Status> {
    tokio::spawn(work).await.map_err(|error| Status::internal(format!("call ended early: {error}")))
}

/// `InvalidArgument` for a required field that is not there.
fn required(value: &str, field: &str) -> Result<(), Status> {
    if value.is_empty() { Err(Status::invalid_argument(format!("{field} is required"))) } else { Ok(()) }
}
