//! What the driver is and can do, as asked at start and after every reconnection.

use crate::signal::Signal;
use std::sync::Arc;

/// Name and capabilities of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Name from `GetPluginInfo`.
    pub name: String,
    /// In-tree plug-in that this driver replaced, if any.
    pub in_tree_name: Option<String>,
    /// What it reports.
    pub can: Capabilities,
}

/// The capabilities that some rule reads; unknown numbers are skipped (CSI: callers skip values they do not know).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one flag per capability of the interface")]
pub struct Capabilities {
    /// Plug-in `CONTROLLER_SERVICE`.
    pub controller_service: bool,
    /// Plug-in `VOLUME_ACCESSIBILITY_CONSTRAINTS`.
    pub accessibility_constraints: bool,
    /// Controller `CREATE_DELETE_VOLUME`.
    pub create_delete_volume: bool,
    /// Controller `PUBLISH_UNPUBLISH_VOLUME`.
    pub publish_unpublish_volume: bool,
    /// Controller `GET_CAPACITY`.
    pub get_capacity: bool,
    /// Controller `CREATE_DELETE_SNAPSHOT`.
    pub create_delete_snapshot: bool,
    /// Controller `CLONE_VOLUME`.
    pub clone_volume: bool,
    /// Controller `SINGLE_NODE_MULTI_WRITER`.
    pub single_node_multi_writer: bool,
    /// Controller `MODIFY_VOLUME`.
    pub modify_volume: bool,
}

impl Driver {
    /// Whether `name` is the driver's or that of the in-tree plug-in it replaced.
    pub fn is_known_as(&self, name: &str) -> bool {
        self.name == name || self.in_tree_name.as_deref() == Some(name)
    }
}

/// The driver as last asked: capabilities may change when it restarts, the name never within a process.
#[derive(Clone, Debug)]
pub struct DriverCell(Signal<Arc<Driver>>);

impl DriverCell {
    /// Starts with what the driver said first.
    pub fn new(driver: Driver) -> Self {
        Self(Signal::new(Arc::new(driver)))
    }

    /// What the driver said last.
    pub fn get(&self) -> Arc<Driver> {
        self.0.get()
    }

    /// Replaces it after a reconnection.
    pub fn set(&self, driver: Driver) {
        self.0.set(Arc::new(driver));
    }

    /// Resolves once the driver has what `wanted` asks for; for ever pending if it never does.
    pub async fn until(&self, wanted: impl Fn(Capabilities) -> bool) {
        self.0.subscribe().wait_for(|driver| wanted(driver.can)).await;
    }
}
