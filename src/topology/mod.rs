//! Where a volume may live (topology-and-capacity.md 1).
//!
//! [`term`] (one place), [`order`] (which place first), [`nodes`] (what the cluster offers), [`requirement`] (what is
//! asked of the driver), [`watching`] (how nodes get in).

pub mod nodes;
pub mod order;
pub mod requirement;
pub mod term;
pub mod watching;
