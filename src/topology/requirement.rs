//! Which places are asked of the driver (topology-and-capacity.md 1.2).
//!
//! Nothing is remembered per claim: a request that may be running in the backend is kept whole by the claim room, so
//! only what was really sent is ever pinned (weak points W12, W20, W34; field faults S03, T02).

use super::nodes::{self, Keys, Nodes};
use super::{order, term};
use crate::model::class::TopologyTerm;
use crate::model::{Accessibility, Segments};
use std::sync::Arc;

/// What a claim and its class ask for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Claim name: decides the start of the rotation.
    pub claim_name: &'a str,
    /// Node picked by the scheduler; empty = none.
    pub selected_node: &'a str,
    /// `allowedTopologies` of the class.
    pub allowed: &'a [TopologyTerm],
    /// `--strict-topology`.
    pub strict: bool,
    /// `--immediate-topology`.
    pub immediate: bool,
}

/// Why no place can be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum TopologyFault {
    /// E1, and a missing Node (W11): another node has to be picked.
    #[error("node {node:?}, selected for the claim, has no {missing} object: it left the cluster or never joined it")]
    NodeUnknown { node: String, missing: &'static str },
    /// E2.
    #[error("the driver has not registered topology keys on node {node:?} yet; check its node plug-in there")]
    NotRegistered { node: String },
    /// E3: the missing keys are named (field faults S03, T08, U05).
    #[error("node {node:?} lacks the labels {} that the driver registered as topology keys", .missing.join(", "))]
    LabelsMissing { node: String, missing: Vec<String> },
    /// E5 and E9.
    #[error("node {node:?} is at {place}, which the class does not allow; it allows {allowed}")]
    NotAllowed { node: String, place: String, allowed: String },
    /// E6.
    #[error("no node carries the labels of the registered topology keys {}", .keys.join(", "))]
    NoPlace { keys: Vec<String> },
    /// E7.
    #[error("the driver has registered topology keys on no node yet; check its node plug-in")]
    NothingRegistered,
}

impl TopologyFault {
    /// Whether the scheduler has to pick another node.
    pub fn needs_other_node(&self) -> bool {
        match self {
            Self::NodeUnknown { .. } => true,
            Self::NotRegistered { .. }
            | Self::LabelsMissing { .. }
            | Self::NotAllowed { .. }
            | Self::NoPlace { .. }
            | Self::NothingRegistered => false,
        }
    }
}

/// The requirement to send; `None` leaves the field out.
pub fn requirement(wanted: &Wanted<'_>, nodes: &mut Nodes) -> Result<Option<Accessibility>, TopologyFault> {
    if wanted.selected_node.is_empty() { immediate(wanted, nodes) } else { late(wanted, nodes) }
}

fn immediate(wanted: &Wanted<'_>, nodes: &mut Nodes) -> Result<Option<Accessibility>, TopologyFault> {
    let requisite = if !wanted.allowed.is_empty() {
        Arc::new(term::sorted(term::flattened(wanted.allowed)))
    } else if wanted.immediate {
        everywhere(nodes)?
    } else {
        return Ok(None);
    };
    let start = order::start(wanted.claim_name, requisite.len());
    Ok(asked(requisite, start))
}

fn late(wanted: &Wanted<'_>, nodes: &mut Nodes) -> Result<Option<Accessibility>, TopologyFault> {
    let node = wanted.selected_node;
    let (keys, place) = place_of(node, nodes)?;
    let not_allowed = |allowed: &[Segments]| TopologyFault::NotAllowed {
        node: node.to_owned(),
        place: term::shown_one(&place),
        allowed: term::shown(allowed),
    };
    let requisite = if wanted.allowed.is_empty() {
        if wanted.strict { Arc::new(vec![place.clone()]) } else { nodes.aggregate(&keys) }
    } else {
        let allowed = term::sorted(term::flattened(wanted.allowed));
        if wanted.strict {
            if !allowed.iter().any(|one| term::is_within(one, &place)) {
                return Err(not_allowed(&allowed));
            }
            Arc::new(vec![place.clone()])
        } else {
            Arc::new(allowed)
        }
    };
    if requisite.is_empty() {
        return if wanted.allowed.is_empty() { Err(TopologyFault::NoPlace { keys }) } else { Ok(None) };
    }
    match requisite.iter().position(|one| term::is_within(one, &place)) {
        Some(start) => Ok(asked(requisite, start)),
        None => Err(not_allowed(&requisite)),
    }
}

fn asked(requisite: Arc<Vec<Segments>>, first: usize) -> Option<Accessibility> {
    (!requisite.is_empty()).then_some(Accessibility { requisite, first })
}

/// Every place of every registered key set (1.4).
fn everywhere(nodes: &mut Nodes) -> Result<Arc<Vec<Segments>>, TopologyFault> {
    let sets = nodes.key_sets();
    if sets.is_empty() {
        return Err(TopologyFault::NothingRegistered);
    }
    let places = nodes.everywhere();
    if places.is_empty() {
        let mut keys: Vec<String> = sets.into_iter().flatten().collect();
        keys.sort();
        keys.dedup();
        return Err(TopologyFault::NoPlace { keys });
    }
    Ok(places)
}

/// Keys and term of the selected node (1.3).
fn place_of(node: &str, nodes: &Nodes) -> Result<(Keys, Segments), TopologyFault> {
    let unknown = |missing| TopologyFault::NodeUnknown { node: node.to_owned(), missing };
    let registration = nodes.registration(node).ok_or_else(|| unknown("CSINode"))?;
    // Before the registration's content: nothing will register any more on a node that is gone (S02).
    let labels = nodes.labels(node).ok_or_else(|| unknown("Node"))?;
    let keys = registration
        .as_ref()
        .filter(|keys| !keys.is_empty())
        .ok_or_else(|| TopologyFault::NotRegistered { node: node.to_owned() })?;
    let missing: Vec<String> = keys.iter().filter(|key| !labels.contains_key(*key)).cloned().collect();
    match nodes::place(labels, keys) {
        Some(place) => Ok((keys.clone(), place)),
        None => Err(TopologyFault::LabelsMissing { node: node.to_owned(), missing }),
    }
}
