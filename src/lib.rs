//! A CSI provisioning sidecar and the sandbox to try it in.
//!
//! Rooms, from the outside in:
//! - [`app`] puts the sidecar together: probe, build, start, stop;
//! - [`flags`] turns command line and environment into one checked configuration;
//! - [`claim`] makes a volume out of a claim, [`volume`] takes a released volume away;
//! - [`topology`] says where a volume may live, [`protection`] keeps sources alive while they are copied,
//!   [`migration`] translates objects of the former in-tree plug-ins;
//! - [`node_deployment`] shares the claims between instances that run on every node, [`capacity`] names the owner of
//!   capacity objects;
//! - [`csi`] talks to the driver, [`kube_api`] to the API server;
//! - [`report`] is what people and monitoring see;
//! - [`model`] holds the words that all rooms share.
//!
//! Every feature room decides in pure files (no clock, randomness, I/O or log; all input comes as arguments)
//! and acts in one `worker.rs`. `tests/layering.rs` holds the allowed imports.

pub mod app;
pub mod capacity;
pub mod claim;
pub mod clock;
pub mod csi;
pub mod flags;
pub mod kube_api;
pub mod migration;
pub mod model;
pub mod node_deployment;
pub mod protection;
pub mod random;
pub mod report;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod signal;
pub mod topology;
pub mod volume;
