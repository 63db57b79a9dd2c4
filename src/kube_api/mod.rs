//! How this program talks to the Kubernetes API server.
//!
//! - [`client`] connects and hands out one client per traffic class, each behind its own [`limiter`] bucket;
//! - [`objects`] reads and writes single objects as JSON, [`error`] says what a failure means;
//! - [`watch`] follows a kind of object for ever, [`held`] keeps what a room needs of it;
//! - [`queue`] decides which key a worker takes next and when a failed one comes back.

pub mod client;
pub mod error;
pub mod held;
pub mod limiter;
pub mod objects;
pub mod queue;
pub mod watch;
