//! Groups about instances that share the work: the node of a node deployment, its turn, and the marks of capacity objects.

use super::asking::with_paused_clock;
use super::table::read;
use csi_provisioner::capacity::owner::{Place, Walked};
use csi_provisioner::capacity::{labels, worker};
use csi_provisioner::claim::plan::Attempt;
use csi_provisioner::claim::taking;
use csi_provisioner::model::Segments;
use csi_provisioner::node_deployment::fixed;
use csi_provisioner::node_deployment::turn::{Contestant, Pace};
use csi_provisioner::topology::nodes::Nodes;
use serde_json::{Value, json};
use std::time::Duration;

/// The node of a row.
pub struct OwnNode<'a> {
    pub name: &'a str,
    immediate: bool,
    segments: Segments,
    /// What the driver answers about its free space.
    free: &'a Value,
}

impl<'a> OwnNode<'a> {
    /// None without node deployment.
    pub fn of(input: &'a Value) -> Option<Self> {
        let deployment = &input["node_deployment"];
        Some(Self {
            name: deployment["node"].as_str()?,
            immediate: deployment["immediate_binding"] == Value::Bool(true),
            segments: read(&deployment["segments"]),
            free: &input["replies"]["GetCapacity"],
        })
    }

    pub fn contestant(&self) -> Contestant<'a> {
        Contestant { node: self.name, immediate: self.immediate }
    }

    /// In place of watched nodes.
    pub fn put_into(&self, nodes: &mut Nodes, driver: &str) {
        let node = fixed::node(self.name, &self.segments);
        nodes.put_node(self.name, node.metadata.labels.unwrap_or_default());
        for registered in fixed::csi_node(self.name, driver, &self.segments).spec.drivers {
            nodes.put_registration(self.name, Some(registered.topology_keys));
        }
    }

    /// Asks about free space as the worker does: the first answer that is enough counts, and an error counts as enough.
    pub fn has_room(&self, attempt: &Attempt) -> bool {
        let questions = taking::questions(attempt);
        let answer = self.free["available_capacity"].as_i64();
        questions.is_empty() || questions.iter().any(|_| answer.is_none_or(|free| taking::is_enough(free, attempt)))
    }
}

/// The shortest and the longest delay of all tries that the row allows.
pub fn ownership_delay(input: &Value) -> Value {
    let secs = |key: &str| Duration::from_secs(input[key].as_u64().expect("seconds"));
    let pace = Pace { base: secs("base_delay_seconds"), max: secs("max_delay_seconds") };
    let tries: Vec<u32> = read_range(&input["failures_before"]);
    let delays = tries.iter().flat_map(|tries| [pace.delay(*tries, pace.base), pace.delay(*tries, Duration::ZERO)]);
    let (mut shortest, mut longest) = (Duration::MAX, Duration::ZERO);
    for delay in delays {
        (shortest, longest) = (shortest.min(delay), longest.max(delay));
    }
    json!({ "every_delay_seconds_between": [shortest.as_secs(), longest.as_secs()] })
}

fn read_range(bounds: &Value) -> Vec<u32> {
    let bound = |at: usize| u32::try_from(bounds[at].as_u64().expect("a number")).expect("a small number");
    (bound(0)..=bound(1)).collect()
}

/// The walk from the pod to the owner among the row's objects.
pub fn owner(input: &Value) -> Value {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let start = &input["start"];
    let pod = Place {
        api_version: text(&start["apiVersion"]),
        kind: text(&start["kind"]),
        namespace: text(&start["namespace"]),
        name: text(&start["name"]),
    };
    let levels = u32::try_from(input["levels"].as_u64().expect("a number")).expect("a small number");
    let read_object = |at: Place| {
        let is_there = |object: &&Value| {
            let meta = &object["metadata"];
            object["apiVersion"] == at.api_version.as_str()
                && object["kind"] == at.kind.as_str()
                && meta["namespace"] == at.namespace.as_str()
                && meta["name"] == at.name.as_str()
        };
        let found = input["objects"].as_array().into_iter().flatten().find(is_there);
        std::future::ready(Ok(found.map(read::<Walked>)))
    };
    match with_paused_clock(worker::walk(pod, levels, read_object)) {
        Ok(owner) => json!({ "error": null, "owner": owner }),
        Err(fault) => json!({ "error": { "condition": fault.condition() } }),
    }
}

/// The mark of an instance.
pub fn managed_by(input: &Value) -> Value {
    let text = |key: &str| input[key].as_str().expect("a text");
    let max = usize::try_from(input["max_length"].as_u64().expect("a number")).expect("a small number");
    json!({ "name": labels::joined(text("base"), text("suffix"), max) })
}
