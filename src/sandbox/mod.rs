//! A whole storage control plane in one process: what a claim meets, without a cluster.
//!
//! It imports only the wire types of the driver interface and starts the sidecar as a whole, so that it stays an
//! independent judge of it.
//!
//! - [`apiserver`], [`binder`], [`protection`], [`scheduler`] and [`driver`] are the parts of the world, [`direct`] is
//!   how the controllers reach the API server;
//! - [`world`] puts them together with the [`sidecar`]; [`simulate`] does the same on a paused clock;
//! - [`cli`] is the program: [`run`] and [`up`], with [`files`] read and [`narrate`], [`console`] and [`summary`]
//!   shown.

pub mod apiserver;
pub mod arguments;
pub mod binder;
pub mod cli;
pub mod console;
pub mod direct;
pub mod driver;
pub mod files;
pub mod narrate;
pub mod probe;
pub mod protection;
pub mod run;
pub mod scenario;
pub mod scheduler;
pub mod sidecar;
pub mod simulate;
pub mod summary;
pub mod up;
pub mod world;

/// Resolves on Ctrl-C or SIGTERM.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                biased;
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        // Without a handler for it, SIGTERM ends the process by itself.
        Err(_) => {
            let _interrupt = tokio::signal::ctrl_c().await;
        }
    }
}
