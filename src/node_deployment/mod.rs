//! One instance of the sidecar beside the driver on each node (topology-and-capacity.md 5, provisioning.md 8).
//!
//! - [`turn`]: whose turn a claim is, and how long to hold back before taking one that is nobody's;
//! - [`race`]: how far the race for each unassigned claim is;
//! - [`fixed`]: the node as objects, in place of watching all nodes;
//! - [`worker`]: asks the driver about the node at start and answers the claim room.

pub mod fixed;
pub mod race;
pub mod turn;
pub mod worker;
