//! What the driver at a socket says about itself.

use crate::csi::channel;
use crate::csi::proto::v1::identity_client::IdentityClient;
use crate::csi::proto::v1::node_client::NodeClient;
use crate::csi::proto::v1::plugin_capability::Type;
use crate::csi::proto::v1::plugin_capability::service;
use crate::csi::proto::v1::{GetPluginCapabilitiesRequest, GetPluginInfoRequest, NodeGetInfoRequest};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;
use tonic::Code;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Name of the node when the driver does not run on one.
const NODE: &str = "sandbox-node";

/// What the world needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFacts {
    /// Its name.
    pub name: String,
    /// The node it runs on.
    pub node: String,
    /// Topology segments of that node.
    pub segments: BTreeMap<String, String>,
    /// Whether volumes have a place.
    pub has_topology: bool,
}

/// Asks the driver at `address`.
pub async fn ask(address: &str) -> anyhow::Result<DriverFacts> {
    let path = channel::parse_address(address)?;
    let unreachable = || format!("no CSI driver answers at {}; start it first, or leave --driver out", path.display());
    let transport = channel::connect_lazily(path.clone()).transport;
    let mut identity = IdentityClient::new(transport.clone());
    let info = timeout(PATIENCE, identity.get_plugin_info(GetPluginInfoRequest {}))
        .await
        .with_context(unreachable)?
        .with_context(unreachable)?
        .into_inner();
    if info.name.is_empty() {
        bail!("the driver at {} reports no name in GetPluginInfo; a CSI driver must", path.display());
    }
    let capabilities = timeout(PATIENCE, identity.get_plugin_capabilities(GetPluginCapabilitiesRequest {}))
        .await
        .with_context(unreachable)?
        .with_context(unreachable)?
        .into_inner()
        .capabilities;
    let has_topology = capabilities.into_iter().any(|capability| {
        matches!(capability.r#type, Some(Type::Service(service)) if service.r#type() == service::Type::VolumeAccessibilityConstraints)
    });
    let node = timeout(PATIENCE, NodeClient::new(transport).node_get_info(NodeGetInfoRequest {}))
        .await
        .with_context(unreachable)?;
    let (node, segments) = match node {
        Ok(answer) => {
            let answer = answer.into_inner();
            (answer.node_id, answer.accessible_topology.map(|topology| topology.segments).unwrap_or_default())
        }
        // A controller-only driver; its node part runs elsewhere.
        Err(status) if status.code() == Code::Unimplemented => (String::new(), BTreeMap::new()),
        Err(status) => bail!("NodeGetInfo of {} failed: {}", info.name, status.message()),
    };
    Ok(DriverFacts { name: info.name, node: node_name(&node), segments, has_topology })
}

/// A node id as a name of a Node object; ids that cannot be one get a fixed name.
fn node_name(id: &str) -> String {
    let fits = id.len() <= 63
        && id.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && id.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit())
        && id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'));
    if fits { id.to_owned() } else { NODE.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_id_that_is_no_name_gets_the_fixed_one() {
        assert_eq!(node_name("node-1"), "node-1");
        assert_eq!(node_name("Node_1"), NODE);
        assert_eq!(node_name(""), NODE);
    }
}
