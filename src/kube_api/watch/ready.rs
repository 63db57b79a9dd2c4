//! Tells when all caches are filled for the first time.
//!
//! A [`Ready`] is given up by dropping it and cannot be taken back. It is also dropped when its owner is cancelled, so
//! whoever waits looks at the cancellation token afterwards.

use std::convert::Infallible;
use tokio::sync::mpsc;

/// Hands out [`Ready`] handles and waits for all of them.
#[derive(Debug)]
pub struct Readiness {
    open: mpsc::Sender<Infallible>,
    closed: mpsc::Receiver<Infallible>,
}

/// Held until the holder is ready.
#[derive(Debug)]
pub struct Ready {
    _open: mpsc::Sender<Infallible>,
}

impl Default for Readiness {
    fn default() -> Self {
        // Nothing is ever sent: the channel tells only whether senders are left.
        let (open, closed) = mpsc::channel(1);
        Self { open, closed }
    }
}

impl Readiness {
    /// One more to wait for.
    pub fn handle(&self) -> Ready {
        Ready { _open: self.open.clone() }
    }

    /// Waits until every handle is dropped; at once if there is none.
    pub async fn all(self) {
        let Self { open, mut closed } = self;
        drop(open);
        while closed.recv().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test(flavor = "current_thread")]
    async fn all_are_ready_when_the_last_handle_is_dropped() {
        let readiness = Readiness::default();
        let (first, second) = (readiness.handle(), readiness.handle());
        let mut all = std::pin::pin!(readiness.all());
        drop(first);
        assert!(all.as_mut().now_or_never().is_none());
        drop(second);
        assert!(all.now_or_never().is_some());
    }
}
