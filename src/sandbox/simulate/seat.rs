//! One run of the sidecar in the simulated world: the whole program but its process.

use super::cable::Cable;
use super::socket::Socket;
use super::wires::{ApiWire, DriverWire};
use crate::app::embedded::{Around, Ended, Sidecar, Sight};
use crate::clock::Clock;
use crate::csi::Transport;
use crate::random::Random;
use crate::sandbox::apiserver::ApiService;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tonic::service::Routes;

/// What one run is made of.
pub(super) struct Parts {
    pub cable: Cable,
    pub socket: Socket,
    pub server: ApiService,
    pub driver: Routes,
    pub clock: Clock,
    pub random: Random,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// In order.
    Stopped,
    /// By itself, for this reason.
    Failed(Ended),
    /// Killed.
    Killed,
}

/// A running sidecar. Dropping it kills it.
pub struct Running {
    cable: Cable,
    sight: Sight,
    outcome: watch::Receiver<Option<Outcome>>,
    _task: AbortOnDropHandle<()>,
}

impl Running {
    pub(super) fn start(sidecar: Sidecar, parts: Parts) -> Self {
        let (cable, sight) = (parts.cable.clone(), Sight::default());
        let seen = sight.clone();
        let (report, outcome) = watch::channel(None);
        let task = tokio::spawn(async move {
            let outcome = run(sidecar, parts, seen).await;
            report.send_replace(Some(outcome));
        });
        Self { cable, sight, outcome, _task: AbortOnDropHandle::new(task) }
    }

    /// SIGTERM; see [`Self::ended`].
    pub fn terminate(&self) {
        self.cable.terminate();
    }

    /// SIGKILL: from now on it does nothing, and all its tasks are dropped.
    pub async fn kill(&self) -> Outcome {
        self.cable.die();
        self.ended().await
    }

    /// Resolves when it has ended.
    pub async fn ended(&self) -> Outcome {
        let mut outcome = self.outcome.clone();
        match outcome.wait_for(Option::is_some).await.map(|outcome| outcome.clone()) {
            Ok(Some(outcome)) => outcome,
            // The task was aborted.
            Ok(None) | Err(_) => Outcome::Killed,
        }
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome.borrow().clone()
    }

    /// Its metrics, as a scrape would show them.
    pub fn metrics(&self) -> String {
        self.sight.metrics()
    }

    /// How many points and requests there were so far (see [`super::cable`]).
    pub fn counted(&self) -> (u64, u64) {
        self.cable.counted()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.outcome().is_none() {
            self.cable.die();
        }
    }
}

async fn run(sidecar: Sidecar, parts: Parts, sight: Sight) -> Outcome {
    let Parts { cable, socket, server, driver, clock, random } = parts;
    cable.trace().note(cable.who(), "starts");
    let around = Around {
        api: ApiWire { cable: cable.clone(), server },
        losses: socket.losses(),
        driver: Transport::new(DriverWire { cable: cable.clone(), socket, driver }),
        clock,
        random,
        hostname: cable.who().to_owned(),
        sight,
    };
    let outcome = tokio::select! {
        biased;
        () = cable.dead().cancelled() => Outcome::Killed,
        result = sidecar.run_among(around, cable.stop().clone()) => match result {
            Ok(()) => Outcome::Stopped,
            Err(ended) => Outcome::Failed(ended),
        },
    };
    if outcome != Outcome::Killed {
        cable.trace().note(cable.who(), format_args!("ends: {outcome:?}"));
        cable.calls().abandon_all(cable.who());
    }
    outcome
}
