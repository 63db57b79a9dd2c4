//! Room report.

pub mod log;
pub mod metrics;
pub mod reasons;
