//! Who the driver is: waits until it is ready, then asks for name and capabilities.
//!
//! Used at start and after every loss of the connection. While a driver restarts it is unreachable for a while, which is
//! waited for; upstream ends the process instead (weak point W31).

use super::calls::{Calls, NameError};
use crate::model::request::Code;
use crate::model::{CallError, Driver};
use crate::random::Random;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Pause between two lines that say the same: the driver is not ready.
const LINE_PAUSE: Duration = Duration::from_secs(10);
/// Longest driver name (csi-rules.md 1.2).
const LONGEST_NAME: usize = 63;

/// Why waiting for the driver ended without a ready driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The driver itself says that it cannot serve.
    #[error("the CSI driver failed its probe: look at the driver's own log")]
    Refused(#[source] CallError),
    /// We are being stopped.
    #[error("stopped while waiting for the CSI driver")]
    Stopped,
}

/// Why the driver cannot be worked with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// It has no name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The API server refuses volumes of this name, so that nothing could ever be saved.
    #[error(
        "the CSI driver calls itself {0:?}; a driver name has at most {LONGEST_NAME} letters, digits, \"-\" and \".\", and each \
         part between dots begins and ends with a letter or digit"
    )]
    UnusableName(String),
    /// It does not tell what it can do.
    #[error("the CSI driver did not tell its capabilities")]
    Capabilities(#[source] CallError),
}

/// Probes at once and then at every `tick` until the driver is ready (provisioning.md 2.1 step 4).
///
/// "Not ready", an unreachable driver and every code that leaves the outcome open are waited for without limit, with one
/// line per 10 s; a final code of the driver ends the wait.
pub async fn probe_until_ready(calls: &Calls, tick: Duration, cancel: &CancellationToken) -> Result<(), ProbeError> {
    let mut ticks = tokio::time::interval(tick.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut next_line = Instant::now();
    loop {
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ProbeError::Stopped),
            outcome = async { ticks.tick().await; calls.probe().await } => outcome,
        };
        let reason = match outcome {
            Ok(true) => {
                info!(target: "csi", "the CSI driver is ready");
                return Ok(());
            }
            Ok(false) => "it says that it is not ready yet".to_owned(),
            Err(error) if leaves_it_open(&error) => error.to_string(),
            Err(error) => return Err(ProbeError::Refused(error)),
        };
        if Instant::now() >= next_line {
            warn!(target: "csi", reason, "waiting for the CSI driver");
            next_line = Instant::now() + LINE_PAUSE;
        }
    }
}

/// Whether another probe may end differently without anybody doing anything.
fn leaves_it_open(error: &CallError) -> bool {
    if !error.from_driver {
        return true;
    }
    match error.code {
        // A driver that is going down or busy coming up.
        Code::Canceled | Code::DeadlineExceeded | Code::Aborted | Code::Unavailable => true,
        Code::Unknown
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => false,
    }
}

/// Asks for name and capabilities. `in_tree_name` gives the in-tree plug-in that a driver of this name replaced.
///
/// Sets the name in what the calls report, so that the capability calls carry it already.
pub async fn ask_driver<F>(calls: &Calls, in_tree_name: F) -> Result<Driver, AskError>
where
    F: FnOnce(&str) -> Option<String>,
{
    let name = calls.driver_name().await?;
    if !is_usable(&name) {
        return Err(AskError::UnusableName(name));
    }
    let in_tree_name = in_tree_name(&name);
    calls.set_driver_name(&name, in_tree_name.is_some());
    let can = calls.capabilities().await.map_err(AskError::Capabilities)?;
    Ok(Driver { name, in_tree_name, can })
}

/// The interface's rule, which is also the API server's (a DNS subdomain, in which it ignores case).
fn is_usable(name: &str) -> bool {
    let is_part = |part: &str| {
        let ends = [part.chars().next(), part.chars().next_back()];
        ends.iter().all(|end| end.is_some_and(|letter| letter.is_ascii_alphanumeric()))
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_part)
}

/// Identity of this process in the volumes it makes: `<unix milliseconds>-<0..9999>-<driver>[-<node>]`, new at every start
/// (provisioning.md 2.1 step 8).
pub fn identity(now: Timestamp, random: &Random, driver: &str, node: Option<&str>) -> String {
    let own = format!("{}-{}-{driver}", now.as_millisecond(), random.below(10_000));
    match node {
        Some(node) => format!("{own}-{node}"),
        None => own,
    }
}

#[cfg(test)]
mod tests;
