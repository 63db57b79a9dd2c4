//! A released volume goes away.
//!
//! [`ownership`] (ours or not), [`finalizer`] (keeping the object until its storage is gone), [`delete`] (whether and
//! how the storage is deleted), [`affinity`] (which instance of a node deployment deletes it).

pub mod affinity;
pub mod delete;
pub mod finalizer;
pub mod ownership;
