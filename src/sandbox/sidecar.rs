//! The sidecar under test, on a thread of its own: it can be stopped in order, or killed so that nothing of it is left.

use crate::app::embedded::{Ended, Sidecar};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How a run of the sidecar ended; `None` while it runs.
pub type End = Option<Result<(), Ended>>;

/// A running sidecar.
pub struct Running {
    stop: CancellationToken,
    kill: Option<oneshot::Sender<()>>,
    ended: watch::Receiver<End>,
    thread: Option<JoinHandle<()>>,
}

/// Starts it. The thread has its own runtime, which dies with it.
pub fn start(sidecar: Sidecar) -> io::Result<Running> {
    let stop = CancellationToken::new();
    let (kill, killed) = oneshot::channel::<()>();
    let (report, ended) = watch::channel(None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let token = stop.clone();
    let thread = thread::Builder::new().name("sidecar".to_owned()).spawn(move || {
        let result = runtime.block_on(async {
            tokio::select! {
                biased;
                _ = killed => Ok(()),
                result = sidecar.run(token) => result,
            }
        });
        runtime.shutdown_background();
        report.send_replace(Some(result));
    })?;
    Ok(Running { stop, kill: Some(kill), ended, thread: Some(thread) })
}

impl Running {
    /// Resolves when it has ended, with how.
    pub async fn ended(&self) -> Result<(), Ended> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => Err(Ended { code: 255, line: "the sidecar's thread ended early".to_owned() }),
        }
    }

    /// Asks it to stop and waits for its end.
    pub async fn stop(mut self) -> Result<(), Ended> {
        self.stop.cancel();
        let result = self.ended().await;
        self.join();
        result
    }

    /// Ends it where it stands, as SIGKILL does, and waits until its connections are closed.
    pub async fn kill(mut self) {
        drop(self.kill.take());
        let _result = self.ended().await;
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // It has reported its end already, so this is short; a panic was told by the hook.
            let _panicked = thread.join();
        }
    }
}

/// The place of the sidecar in a world: there is one, or none right now.
#[derive(Clone, Default)]
pub struct Seat(Arc<Mutex<Option<Running>>>);

impl Seat {
    /// Puts a sidecar in; returns the one that was there.
    pub fn put(&self, running: Running) -> Option<Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(running)
    }

    /// Takes the sidecar out.
    pub fn take(&self) -> Option<Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// How the sidecar ended, if it did without being taken out.
    pub fn end(&self) -> End {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .and_then(|running| running.ended.borrow().clone())
    }
}
