//! Room report.

pub mod log;
pub mod reasons;
pub mod metrics;
