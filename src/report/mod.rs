//! What people and monitoring see: log lines, event reasons, metrics, health.

pub mod http;
pub mod log;
pub mod metrics;
pub mod reasons;
