//! An in-memory Kubernetes API server.
//!
//! Good enough for the sidecar, kubectl, the real controller manager (with JSON) and the simulated world. It knows
//! nothing of the sidecar's own code, so that it can judge it; it is itself judged by the real API server, which
//! runs the same scenarios.
//!
//! The way through it: [`http`] reads a request and notes it in [`requests`]; [`faults`] may bend it; the operations
//! (`create`, `update`, `delete`, `listing`, `watching`) act on the [`world::World`] under one lock; `table` and
//! `discovery` serve kubectl. [`ApiServer`] also offers the operations directly, past faults and log.
//!
//! Not offered: managed fields, server-side apply, protobuf, schemas, admission webhooks, quotas, real RBAC.

mod create;
mod defaults;
mod delete;
mod direct;
mod discovery;
pub mod faults;
mod http;
mod listing;
pub mod patch;
pub mod refusal;
pub mod requests;
pub mod resources;
mod selectors;
mod store;
mod table;
mod update;
pub mod validate;
pub mod watching;
mod world;

#[cfg(test)]
mod tests;

pub use delete::{DeleteOptions, Deleted};
pub use http::serve::serve;
pub use http::service::{ApiService, Body};

use crate::clock::Clock;
use crate::random::Random;
use faults::Faults;
use requests::{Request, RequestLog};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::World;

/// The server; clones share its state.
#[derive(Clone, Debug)]
pub struct ApiServer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    faults: Faults,
    log: RequestLog,
}

impl ApiServer {
    /// A server with the four usual namespaces and nothing else.
    pub fn new(clock: Clock, random: Random) -> Self {
        let faults = Faults::new(random.clone());
        let world = Mutex::new(World::new(clock, random));
        Self(Arc::new(Shared { world, faults, log: RequestLog::default() }))
    }

    /// The switchboard of faults.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Every request that came over HTTP or the in-process service so far.
    pub fn requests(&self) -> Vec<Request> {
        self.0.log.all()
    }

    /// Forgets the requests so far; order numbers go on.
    pub fn clear_requests(&self) {
        self.0.log.clear();
    }

    /// Forgets all history, as a compaction of etcd does: older watches and lists get 410.
    pub fn compact(&self) {
        self.world().store.compact();
    }

    /// How many changes of each kind are kept for watches (20,000 at first).
    pub fn set_history(&self, changes: usize) {
        self.world().store.set_history(changes);
    }

    /// Whether streaming lists are offered (they are at first); without them the server refuses as 1.30 to 1.33 do.
    pub fn watch_list(&self, offered: bool) {
        self.world().settings.watch_list = offered;
    }

    /// Whether new claims, volumes and attributes classes get their protection finalizer (they do at first). Without
    /// protection controllers nothing would ever remove it.
    pub fn in_use_protection(&self, on: bool) {
        self.world().settings.in_use_protection = on;
    }

    /// Whether a deleted namespace takes its objects along by itself (it does at first); off when a real namespace
    /// controller does that work.
    pub fn namespace_sweep(&self, on: bool) {
        self.world().settings.namespace_sweep = on;
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.world().store.revision()
    }

    pub(in crate::sandbox::apiserver) fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::sandbox::apiserver) fn log(&self) -> &RequestLog {
        &self.0.log
    }
}
