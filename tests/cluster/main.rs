//! The sidecar's program against a real API server and drivers that nobody of this project wrote, seen from outside.
//!
//! Needs what e2e/tools/build makes; e2e/run runs everything. Each test ends with the same question: does the driver
//! have exactly the volumes that the API server knows?
#![allow(clippy::disallowed_methods, reason = "processes live in real time")]

#[path = "../support/mod.rs"]
mod support;

mod attached;
mod attributes;
mod costs;
mod durable;
mod faults;
mod grants;
mod handover;
mod lease;
mod logs;
mod nodes;
mod plain;
mod points;
mod races;
mod scenarios;
mod secrets;
mod sources;
mod start;
