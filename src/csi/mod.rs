//! Talks to the CSI driver, and knows whose word an answer is.
//!
//! - [`proto`]: the generated wire types; [`convert`]: between them and [`crate::model`];
//! - [`channel`]: the Unix socket, dialled again when the driver restarts;
//! - [`calls`]: every call that this project makes, one deadline each; [`witness`] and [`failure`] decide what a failed
//!   call says about the backend;
//! - [`identity`]: readiness, name and capabilities at start and after each loss of the connection;
//! - [`redact`]: messages as the log may show them; [`veil`]: what the driver said, without the secrets of the call.

pub mod calls;
pub mod channel;
mod convert;
mod failure;
pub mod identity;
pub mod presence;
pub mod proto;
pub mod redact;
#[cfg(test)]
mod scripted;
mod veil;
mod witness;

pub use calls::{CallObserver, Calls, NameError};
pub use channel::{Connection, Transport};
pub use convert::{CapacityQuery, CapacityReply, CreateReply, NodeInfo};
