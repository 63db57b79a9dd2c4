//! The whole sidecar inside another program: the same flags and the same way as in its own process, but no signals, no
//! environment and no exit.

use super::start::world_of;
use super::{driver, run};
use crate::clock::Clock;
use crate::flags::{self, Config, Parsed};
use crate::report::log;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How the sidecar ended when it was not asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct Ended {
    /// What its own process would have ended with.
    pub code: u8,
    /// Why, in one line.
    pub line: String,
}

/// A sidecar whose flags have been read.
#[derive(Clone, Debug)]
pub struct Sidecar(Arc<Config>);

impl Sidecar {
    /// Reads the command line (the program's name first). The environment is not looked at.
    ///
    /// # Errors
    /// Whatever the process would refuse to start with; flags that only print something count as refused.
    pub fn new(args: &[String]) -> Result<Self, Ended> {
        match flags::parse(args, &|_| None) {
            Ok(Parsed::Run(config)) => Ok(Self(Arc::new(*config))),
            Ok(Parsed::Help(line) | Parsed::Version(line)) => Err(Ended { code: 0, line }),
            Err(exit) => Err(Ended { code: exit.code, line: exit.line }),
        }
    }

    /// Sends the log of this program to stderr as its flags say. Only the first call in a process counts.
    pub fn log(&self) {
        // A log that is set up already is the program's own choice.
        let _already = log::init(&self.0.log, Clock::system());
    }

    /// Runs until `stop` is cancelled and everything is put away, or until something ends it.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), Ended> {
        let world = world_of(&self.0).await.map_err(|(code, line)| Ended { code, line })?;
        run(Arc::clone(&self.0), world, stop)
            .await
            .map_err(|failure| Ended { code: failure.exit_code(), line: driver::with_causes(&failure) })
    }
}
