//! Contact with the driver: the first one, and again after each lost connection.
//!
//! A restarted driver does not end the process (weak point W31): it is probed and asked for its name and capabilities
//! again. Only another name ends it, because everything that is known belongs to the old one.

use crate::csi::Calls;
use crate::csi::identity::{self, IdentityError};
use crate::migration;
use crate::model::Driver;
use crate::model::driver::DriverCell;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Time between two probes.
const TICK: Duration = Duration::from_secs(1);

/// Why the driver cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DriverFailure {
    /// It answered a start-up call with an error.
    #[error("CSI driver cannot be used: {0}")]
    Unusable(#[from] IdentityError),
    /// Another driver answers at the socket.
    #[error("CSI driver at the socket changed its name from {was:?} to {is:?}: restart the pod so that it serves one driver")]
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
            Self::Unusable(error) if error.is_probe() => 1,
            Self::Unusable(_) => 255,
            Self::Renamed { .. } => 1,
        }
    }
}

/// Waits until the driver is ready and asks what it is. `None` if the stop came first.
pub async fn first_contact(calls: &Calls, stop: &CancellationToken) -> Result<Option<DriverCell>, DriverFailure> {
    let driver = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(None),
        driver = ask(calls) => driver?,
    };
    info!(target: "app", driver = %driver.name, "CSI driver is ready");
    Ok(Some(DriverCell::new(driver)))
}

/// After each lost connection: probe, name and capabilities again. Returns only if the driver cannot be used any more.
pub async fn stay_in_contact(mut losses: watch::Receiver<u64>, calls: &Calls, known: &DriverCell) -> DriverFailure {
    loop {
        if losses.changed().await.is_err() {
            // The transport has no connection to lose.
            std::future::pending::<()>().await;
        }
        losses.mark_unchanged();
        warn!(target: "app", "connection to the CSI driver was lost; asking again what it is");
        match ask(calls).await {
            Ok(driver) if driver.name != known.get().name => {
                return DriverFailure::Renamed { was: known.get().name.clone(), is: driver.name };
            }
            Ok(driver) => known.set(driver),
            // It may be restarting: the next loss or call tries again, what is open stays open.
            Err(error) => warn!(target: "app", %error, "CSI driver does not answer as expected"),
        }
    }
}

async fn ask(calls: &Calls) -> Result<Driver, IdentityError> {
    identity::probe_until_ready(calls, TICK).await?;
    let mut driver = identity::ask_driver(calls).await?;
    driver.in_tree_name = migration::in_tree_name(&driver.name).map(str::to_owned);
    calls.set_driver_name(&driver.name, driver.in_tree_name.is_some());
    Ok(driver)
}
