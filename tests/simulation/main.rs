//! The whole sidecar in a simulated world: one paused clock, API server and driver in this process.
//!
//! One test per field fault of the kinds lost, duplicate, stuck, overload, restart, bad input and messages; each is
//! named after the rule that it holds.

mod ordinary;
mod support;
