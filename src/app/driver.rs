//! Contact with the driver: the first one, and again after each lost connection.
//!
//! A restarted driver does not end the process (weak point W31): it is probed and asked for its name and capabilities
//! again. Only another name ends it, because everything that is known belongs to the old one.

use crate::csi::Calls;
use crate::csi::identity::{self, AskError, ProbeError};
use crate::csi::presence::Presence;
use crate::migration;
use crate::model::Driver;
use crate::model::driver::DriverCell;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Time between two probes: short, because a driver that starts beside us is ready within moments.
const TICK: Duration = Duration::from_millis(250);
/// Time after a restarted driver did not tell who it is.
const AGAIN: Duration = Duration::from_secs(2);

/// Why the driver cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DriverFailure {
    /// It never became ready.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// It answered a start-up call with an error.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Another driver answers at the socket.
    #[error(
        "CSI driver at the socket changed its name from {was:?} to {is:?}: restart the pod so that it serves one driver"
    )]
    Renamed {
        /// Name at start.
        was: String,
        /// Name now.
        is: String,
    },
}

impl DriverFailure {
    /// Exit code of the process: a failed probe ends with 1, a refused start-up call is fatal as in the Go sidecar.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Probe(_) | Self::Renamed { .. } => 1,
            Self::Ask(_) => 255,
        }
    }
}

/// Waits until the driver is ready and asks what it is. `None` if the stop came first.
pub async fn first_contact(calls: &Calls, stop: &CancellationToken) -> Result<Option<DriverCell>, DriverFailure> {
    match ask(calls, stop).await {
        Ok(driver) => {
            info!(target: "app", driver = %driver.name, "CSI driver is known");
            Ok(Some(DriverCell::new(driver)))
        }
        Err(DriverFailure::Probe(ProbeError::Stopped)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// After each lost connection: probe, name and capabilities again. Calls about volumes wait for that, see
/// [`crate::csi::presence`]. Returns only if the driver cannot be used any more.
pub async fn stay_in_contact(
    mut losses: watch::Receiver<u64>,
    presence: &Presence,
    calls: &Calls,
    known: &DriverCell,
    stop: &CancellationToken,
) -> DriverFailure {
    loop {
        if losses.changed().await.is_err() {
            // The transport has no connection to lose.
            std::future::pending::<()>().await;
        }
        while !stop.is_cancelled() {
            let count = *losses.borrow_and_update();
            match ask(calls, stop).await {
                Ok(driver) if driver.name != known.get().name => {
                    return DriverFailure::Renamed { was: known.get().name.clone(), is: driver.name };
                }
                Ok(driver) => {
                    info!(target: "app", driver = %driver.name, "the CSI driver is back");
                    known.set(driver);
                    presence.introduced(count);
                    break;
                }
                Err(DriverFailure::Probe(ProbeError::Stopped)) => break,
                // It may be restarting still.
                Err(error) => {
                    warn!(target: "app", error = %with_causes(&error), "the CSI driver does not answer as expected");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}

async fn ask(calls: &Calls, stop: &CancellationToken) -> Result<Driver, DriverFailure> {
    identity::probe_until_ready(calls, TICK, stop).await?;
    let driver = identity::ask_driver(calls, |name| migration::in_tree_name(name).map(str::to_owned)).await?;
    Ok(driver)
}

/// An error and what caused it, in one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
