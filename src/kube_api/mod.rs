//! How this program talks to the Kubernetes API server.
//!
//! - [`client`] connects and hands out one client per traffic class, each behind its own [`limiter`] bucket;
//! - [`objects`] reads and writes single objects as JSON, [`error`] says what a failure means; [`secrets`] reads secrets;
//! - [`watch`] follows a kind of object for ever, [`sweep`] finds out what a list no longer contains;
//! - [`queue`] decides which key a worker takes next and when a failed one comes back, [`pool`] runs the workers;
//! - [`events`] tells people, [`lease`] decides who leads.

pub mod client;
pub mod error;
pub mod events;
#[cfg(test)]
mod fake_api;
pub mod lease;
pub mod limiter;
pub mod objects;
pub mod pool;
pub mod queue;
pub mod secrets;
pub mod sweep;
pub mod watch;
