//! Where the volume of a claim has to be reachable from (provisioning.md 4.12): the topology room's answer as a
//! refusal of this room.

use super::refusal::{Refusal, cut};
use crate::model::meta::MetaExt;
use crate::model::{Accessibility, Claim, Class, Driver, Options};
use crate::topology::nodes::Nodes;
use crate::topology::requirement::{Wanted, requirement};

/// The requirement to send; `None` leaves the field out. `class` is in the CSI driver's terms: translated if it is one
/// of a replaced in-tree plug-in (provisioning.md 4.2 step 3).
pub fn accessibility(
    claim: &Claim,
    class: &Class,
    driver: &Driver,
    options: &Options,
    nodes: &mut Nodes,
) -> Result<Option<Accessibility>, Refusal> {
    if !driver.can.accessibility_constraints || !options.topology {
        return Ok(None);
    }
    let wanted = Wanted {
        claim_name: claim.metadata.name(),
        selected_node: claim.selected_node(),
        allowed: &class.allowed_topologies,
        strict: options.strict_topology,
        immediate: options.immediate_topology,
    };
    requirement(&wanted, nodes).map_err(|fault| {
        if fault.needs_other_node() {
            Refusal::SelectedNodeUnknown { node: cut(wanted.selected_node) }
        } else {
            Refusal::TopologyImpossible { why: cut(&fault.to_string()) }
        }
    })
}
