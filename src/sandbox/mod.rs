//! Room sandbox.
pub mod apiserver;
