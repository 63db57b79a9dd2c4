//! The whole sidecar inside another program: the same flags and the same way as in its own process, but no signals, no
//! environment and no exit.

use super::start::{rates, world_of};
use super::{World, driver, run};
use crate::clock::Clock;
use crate::csi::Transport;
use crate::flags::{self, Config, Parsed};
use crate::kube_api::client::Clients;
use crate::kube_api::limiter::ThrottleObserver;
use crate::random::Random;
use crate::report::log;
use crate::report::metrics::Metrics;
use bytes::Bytes;
use http::{Request, Response};
use kube::client::Body;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;
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

/// A world inside this process, in place of the machine's. Two equal ones make two equal runs.
pub struct Around<S> {
    /// Speaks the Kubernetes API.
    pub api: S,
    /// Speaks to the driver.
    pub driver: Transport,
    /// Counts connections to the driver that were lost and made again.
    pub losses: watch::Receiver<u64>,
    /// Wall clock.
    pub clock: Clock,
    /// Randomness.
    pub random: Random,
    /// Host name, part of identities.
    pub hostname: String,
    /// Shows the run's metrics from outside.
    pub sight: Sight,
}

/// A look at the metrics of a run, which has no HTTP server.
#[derive(Clone, Default)]
pub struct Sight(Arc<OnceLock<Arc<Metrics>>>);

impl Sight {
    /// The metrics as a scrape would show them; nothing before the run begins.
    pub fn metrics(&self) -> String {
        self.0.get().map(|metrics| metrics.render()).unwrap_or_default()
    }
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
        Self::within(args, &|_| None)
    }

    /// The same with an environment, which is asked by the names of its variables.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn within(args: &[String], environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Ended> {
        match flags::parse(args, environment) {
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
        Box::pin(run(Arc::clone(&self.0), world, stop))
            .await
            .map_err(|failure| Ended { code: failure.exit_code(), line: driver::with_causes(&failure) })
    }

    /// Runs among these surroundings, which the flags about addresses do not change. Dropping the future ends it where
    /// it stands, with all its tasks, as SIGKILL does.
    pub async fn run_among<S, B>(&self, around: Around<S>, stop: CancellationToken) -> Result<(), Ended>
    where
        S: tower::Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError> + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let metrics = Metrics::register(self.0.leader.is_some())
            .map_err(|failure| Ended { code: 255, line: format!("cannot set up metrics: {failure}") })?;
        // A sight is of one run only: the first.
        around.sight.0.set(metrics.clone()).ok();
        let observer: Arc<dyn ThrottleObserver> = metrics.clone();
        let world = World {
            clients: Clients::over(around.api, rates(&self.0), &observer),
            transport: around.driver,
            losses: around.losses,
            clock: around.clock,
            random: around.random,
            hostname: around.hostname,
            metrics,
        };
        Box::pin(run(Arc::clone(&self.0), world, stop))
            .await
            .map_err(|failure| Ended { code: failure.exit_code(), line: driver::with_causes(&failure) })
    }
}
