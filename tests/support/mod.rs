//! A small language for tests against a real API server and real drivers.
//!
//! Everything here blocks and polls: the tests watch processes from outside, in real time.

pub mod api;
pub mod audit;
pub mod driver;
pub mod guard;
pub mod objects;
pub mod plane;
pub mod process;
pub mod proxy;
pub mod sidecar;
pub mod snapshot;
pub mod wait;
pub mod world;
