//! What the sidecar has to know about its own place before it works: its node in a node deployment, and the owner of
//! capacity objects. Both are asked at every start, before leading (provisioning.md 2.1).

use super::{Failure, World};
use crate::capacity::labels;
use crate::capacity::owner::Place;
use crate::capacity::worker::{OwnerFault, find_owner};
use crate::csi::Calls;
use crate::flags::Config;
use crate::kube_api::objects::Objects;
use crate::node_deployment::turn::Pace;
use crate::node_deployment::worker::{Instance, NodeInfoFault, Settings};
use tracing::info;

/// Both; the instance in a node deployment.
pub(super) async fn find(config: &Config, calls: &Calls, world: &World) -> Result<Option<Instance>, Failure> {
    let instance = instance(config, calls, world).await?;
    capacity_marks(config, world).await?;
    Ok(instance)
}

async fn instance(config: &Config, calls: &Calls, world: &World) -> Result<Option<Instance>, NodeInfoFault> {
    let Some(node) = &config.node else { return Ok(None) };
    let settings = Settings {
        node: node.node_name.clone(),
        immediate: node.immediate_binding,
        pace: Pace { base: node.base_delay, max: node.max_delay },
    };
    let instance = Instance::introduce(calls, settings, world.random.clone()).await?;
    info!(target: "app", node = instance.name(), segments = ?instance.segments(), "works for this node only");
    Ok(Some(instance))
}

/// Finds out how capacity objects would be marked, so that wrong settings show at the start.
async fn capacity_marks(config: &Config, world: &World) -> Result<(), OwnerFault> {
    let Some(capacity) = &config.capacity else { return Ok(()) };
    let managed_by = labels::managed_by(config.node.as_ref().map(|node| node.node_name.as_str()));
    let owner = match &capacity.owner {
        None => "nobody".to_owned(),
        Some(owner) => {
            let pod = Place {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                namespace: capacity.namespace.clone(),
                name: owner.pod_name.clone(),
            };
            let found = find_owner(&Objects::new(world.clients.capacity.clone()), pod, owner.level).await?;
            format!("{} {} ({})", found.kind, found.name, found.uid)
        }
    };
    info!(target: "app", owner, managed_by, namespace = %capacity.namespace, "how capacity objects would be marked");
    Ok(())
}
