//! A claim becomes a volume.
//!
//! Read in the order of the way: [`watching`] (which claims matter), [`book`] (what is known), [`plan`] (whether and
//! what to ask), with [`source`], [`clone_source`], [`snapshot_source`], [`grant`], [`attributes`], [`places`], [`access`],
//! [`parameters`], [`secrets`] and [`naming`] for its parts; [`refusal`] (why not); [`answer`] (what the driver's
//! answer means), [`unresolved`] (what may exist); [`volume`] (the object to save), [`existing`] (when the name is
//! taken); [`hold_back`] (claims that the driver called invalid);
//! [`taking`] (claims that are no node's). [`worker`] does the I/O.

pub mod access;
pub mod answer;
pub mod attributes;
pub mod book;
pub mod classes;
pub mod clone_source;
pub mod existing;
pub mod grant;
pub mod grants;
pub mod hold_back;
pub mod intent;
pub mod naming;
pub mod parameters;
pub mod places;
pub mod plan;
pub mod refusal;
pub mod secrets;
pub mod snapshot_source;
pub mod source;
pub mod taking;
mod template;
pub mod unresolved;
pub mod volume;
pub mod watching;
pub mod worker;
