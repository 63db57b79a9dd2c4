//! What watch events of nodes and `CSINode`s mean for the places of the cluster.

use super::nodes::Nodes;
use crate::kube_api::sweep::Sweep;
use crate::kube_api::watch::Observer;
use crate::model::driver::DriverCell;
use crate::model::meta::MetaExt;
use crate::model::node::{CsiNode, Node};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The places of the cluster, shared by the watches and the claim room.
#[derive(Clone, Debug, Default)]
pub struct SharedNodes(Arc<Mutex<Nodes>>);

impl SharedNodes {
    /// Exclusive access; never held over an await.
    pub fn lock(&self) -> MutexGuard<'_, Nodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a node that is known without a watch; every registration in it is our driver's.
    pub fn put_fixed(&self, node: &Node, registrations: &CsiNode) {
        let mut nodes = self.lock();
        nodes.put_node(node.metadata.name(), node.metadata.labels.clone().unwrap_or_default());
        let ours = registrations.spec.drivers.first();
        nodes.put_registration(registrations.metadata.name(), ours.map(|one| one.topology_keys.clone()));
    }
}

/// Called when something about a node changed that waiting claims may need.
pub type Wake = Arc<dyn Fn(&str) + Send + Sync>;

/// Feeds node labels.
pub struct NodeObserver {
    nodes: SharedNodes,
    wake: Wake,
    sweep: Sweep,
}

impl NodeObserver {
    /// Writes into `nodes`; `wake` gets the names of changed nodes.
    pub fn new(nodes: SharedNodes, wake: Wake) -> Self {
        Self { nodes, wake, sweep: Sweep::default() }
    }
}

impl Observer<Node> for NodeObserver {
    fn list_begins(&mut self) {
        self.sweep.begin();
    }

    fn seen(&mut self, node: Node, _fresh: bool) {
        let name = node.metadata.name().to_owned();
        self.sweep.saw(&name);
        if self.nodes.lock().put_node(&name, node.metadata.labels.unwrap_or_default()) {
            (self.wake)(&name);
        }
    }

    fn gone(&mut self, node: Node) {
        self.nodes.lock().remove_node(node.metadata.name());
        (self.wake)(node.metadata.name());
    }

    fn list_ends(&mut self) {
        let known = self.nodes.lock().node_names();
        for name in self.sweep.end(known) {
            self.nodes.lock().remove_node(&name);
            (self.wake)(&name);
        }
    }
}

/// Feeds the registrations of our driver.
pub struct CsiNodeObserver {
    nodes: SharedNodes,
    driver: DriverCell,
    wake: Wake,
    sweep: Sweep,
}

impl CsiNodeObserver {
    /// Writes into `nodes`; `wake` gets the names of changed nodes.
    pub fn new(nodes: SharedNodes, driver: DriverCell, wake: Wake) -> Self {
        Self { nodes, driver, wake, sweep: Sweep::default() }
    }
}

impl Observer<CsiNode> for CsiNodeObserver {
    fn list_begins(&mut self) {
        self.sweep.begin();
    }

    fn seen(&mut self, node: CsiNode, _fresh: bool) {
        let name = node.metadata.name().to_owned();
        self.sweep.saw(&name);
        let driver = self.driver.get();
        let ours = node.spec.drivers.into_iter().find(|one| one.name == driver.name);
        if self.nodes.lock().put_registration(&name, ours.map(|one| one.topology_keys)) {
            (self.wake)(&name);
        }
    }

    fn gone(&mut self, node: CsiNode) {
        self.nodes.lock().remove_registration(node.metadata.name());
        (self.wake)(node.metadata.name());
    }

    fn list_ends(&mut self) {
        let known = self.nodes.lock().registration_names();
        for name in self.sweep.end(known) {
            self.nodes.lock().remove_registration(&name);
            (self.wake)(&name);
        }
    }
}
