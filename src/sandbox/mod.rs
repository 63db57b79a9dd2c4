//! A whole storage control plane in one process: what a claim meets, without a cluster.
//!
//! It imports only the wire types of the driver interface, so that it stays an independent judge of the sidecar.

pub mod apiserver;
pub mod binder;
pub mod cli;
pub mod direct;
pub mod driver;
pub mod protection;
pub mod scheduler;
