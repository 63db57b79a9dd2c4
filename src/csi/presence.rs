//! Whether who answers at the socket is known: after a lost connection another driver may listen there.
//!
//! Promise: from the moment a connection is lost, nothing is asked about volumes until who is there now has been asked
//! for its name ([`Presence::introduced`]). Otherwise a stranger would make or delete the volumes of our driver.

use crate::signal::Signal;
use tokio::sync::watch;

/// Shared by all clones of the calls and whoever asks for the name.
#[derive(Clone, Debug)]
pub struct Presence {
    losses: watch::Receiver<u64>,
    answered_for: Signal<u64>,
}

impl Presence {
    /// `losses` counts lost connections ([`super::channel::Connection`]). Who is there now counts as known.
    pub fn new(losses: watch::Receiver<u64>) -> Self {
        let answered_for = Signal::new(*losses.borrow());
        Self { losses, answered_for }
    }

    /// For a transport that cannot be lost.
    pub fn constant() -> Self {
        Self::new(watch::channel(0).1)
    }

    /// How many losses there were so far; read it before asking for the name.
    pub fn losses(&self) -> u64 {
        *self.losses.borrow()
    }

    /// Who answers after that many losses is the driver that we serve.
    pub fn introduced(&self, losses: u64) {
        self.answered_for.set(losses);
    }

    /// Waits until who is there is known.
    pub(super) async fn known(&self) {
        self.answered_for.subscribe().wait_for(|answered_for| *answered_for == self.losses()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn calls_wait_from_a_loss_until_the_introduction() {
        let (lost, losses) = watch::channel(0);
        let presence = Presence::new(losses);
        assert!(presence.known().now_or_never().is_some());
        lost.send_replace(1);
        assert!(presence.known().now_or_never().is_none());
        presence.introduced(1);
        assert!(presence.known().now_or_never().is_some());
    }

    #[test]
    fn introduction_before_the_latest_loss_does_not_count() {
        let (lost, losses) = watch::channel(0);
        let presence = Presence::new(losses);
        lost.send_replace(1);
        let asked_at = presence.losses();
        lost.send_replace(2);
        presence.introduced(asked_at);
        assert!(presence.known().now_or_never().is_none());
    }
}
