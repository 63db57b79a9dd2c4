//! A released volume goes away.
//!
//! [`watching`] (which objects matter), [`book`] and [`attachments`] (what is known), [`ownership`] (ours or not),
//! [`finalizer`] (keeping the object until its storage is gone), [`delete`] (whether and how the storage is deleted),
//! [`affinity`] (which instance of a node deployment deletes it). [`worker`] does the I/O.

pub mod affinity;
pub mod attachments;
pub mod book;
pub mod delete;
pub mod finalizer;
pub mod ownership;
pub mod watching;
pub mod worker;
