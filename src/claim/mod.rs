//! A claim becomes a volume.
//!
//! Read in the order of the way: [`plan`] (whether and what to ask), with [`source`], [`clone_source`],
//! [`snapshot_source`], [`grant`], [`attributes`], [`access`], [`parameters`], [`secrets`] and [`naming`] for its
//! parts; [`refusal`] (why not); [`answer`] (what the driver's answer means); [`volume`] (the object to save);
//! [`hold_back`] (claims that the driver called invalid).

pub mod access;
pub mod answer;
pub mod attributes;
pub mod clone_source;
pub mod grant;
pub mod hold_back;
pub mod naming;
pub mod parameters;
pub mod plan;
pub mod refusal;
pub mod secrets;
pub mod snapshot_source;
pub mod source;
mod template;
pub mod volume;
