//! Talks to the CSI driver.

pub mod proto;
