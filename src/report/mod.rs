//! Room report.

pub mod log;
pub mod reasons;
