//! The node as the API objects that the topology rules read, made from `NODE_NAME` and the driver's own words
//! (topology-and-capacity.md 5.1 point 2). So no instance has to watch all nodes, and every requirement is built from
//! its own node alone.

use crate::model::Segments;
use crate::model::node::{CsiNode, CsiNodeSpec, Node, NodeDriver};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The node: its labels are exactly the segments.
pub fn node(name: &str, segments: &Segments) -> Node {
    let metadata = ObjectMeta { labels: Some(segments.clone()), ..named(name) };
    Node { metadata }
}

/// The node's registrations: this driver, with the keys of the segments.
pub fn csi_node(name: &str, driver: &str, segments: &Segments) -> CsiNode {
    let topology_keys = segments.keys().cloned().collect();
    let drivers = vec![NodeDriver { name: driver.to_owned(), topology_keys }];
    CsiNode { metadata: named(name), spec: CsiNodeSpec { drivers } }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

#[cfg(test)]
mod tests {
    use super::{csi_node, node};
    use crate::model::Segments;
    use crate::model::meta::MetaExt;

    #[test]
    fn node_carries_the_segments_and_registers_their_keys() {
        let segments = Segments::from([("node".to_owned(), "n1".to_owned()), ("zone".to_owned(), "a".to_owned())]);
        let (node, registrations) = (node("n1", &segments), csi_node("n1", "d.example", &segments));
        assert_eq!((node.metadata.name(), registrations.metadata.name()), ("n1", "n1"));
        assert_eq!(node.metadata.labels, Some(segments));
        let [ours] = registrations.spec.drivers.as_slice() else { panic!("one driver") };
        assert_eq!(
            (ours.name.as_str(), ours.topology_keys.as_slice()),
            ("d.example", ["node".to_owned(), "zone".to_owned()].as_slice())
        );
    }
}
