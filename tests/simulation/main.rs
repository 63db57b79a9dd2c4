//! The whole sidecar in a simulated world: one paused clock, API server and driver in this process.
//!
//! One test per field fault of the kinds lost, duplicate, stuck, overload, restart, bad input and messages; each is
//! named after the rule that it holds.

mod busy;
mod changes;
mod duplicate;
mod economy;
mod fairness;
mod input;
mod instances;
mod lost;
mod messages;
mod nodes;
mod ordinary;
mod overload;
mod restart;
mod stuck;
mod support;
mod waking;
