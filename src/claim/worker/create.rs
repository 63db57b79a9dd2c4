//! Asks the driver for a volume, and for the deletion of one that nobody may use.

use super::{ClaimRoom, EventSubject, Failure, Next, source_kind};
use crate::claim::existing::may_hold;
use crate::claim::hold_back::Fingerprint;
use crate::claim::plan::Attempt;
use crate::claim::refusal::Refusal;
use crate::claim::unresolved::{Creation, Discard, Reply, Settled, settle};
use crate::csi::CreateReply;
use crate::kube_api::error::ApiErrorKind;
use crate::kube_api::objects::Path;
use crate::model::request::Code;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::warn;

impl ClaimRoom {
    /// Sends the attempt's request and acts on the answer. The book says `Unresolved` before and during the call.
    ///
    /// `of` is what the request was made of: only that is held back if it is hopeless, not what claim and class have
    /// become meanwhile. `None` for a repeated request, which may be older than both.
    pub(super) async fn create(&self, uid: &str, attempt: Arc<Attempt>, of: Option<Fingerprint>) -> Next {
        let began = Instant::now();
        let reply = match self.calls.create_volume(&attempt.request, attempt.facts.migrated).await {
            Ok(CreateReply::Volume(volume)) => Reply::Volume(volume),
            Ok(CreateReply::NoVolume) => Reply::NoVolume,
            Err(error) => Reply::Failed(error),
        };
        match settle(&attempt, &reply) {
            Settled::Created(made) => {
                self.book.set(uid, Creation::Created(Arc::clone(&made)));
                self.save(uid, &made, began).await
            }
            Settled::Discard(discard, text) => {
                self.book.set(uid, Creation::Discarding(Arc::clone(&discard)));
                self.attempt_failed(&attempt, text);
                self.discard(uid, &discard).await
            }
            Settled::Unresolved(text) => {
                self.attempt_failed(&attempt, text);
                // A record that could not be written is written with the next answer, or at the stop.
                let _ = self.record_uncertain(&attempt).await;
                Next::Retry
            }
            Settled::Nothing { text, infeasible, secret_refused } => {
                self.book.clear(uid);
                self.record_ended(&attempt.facts).await;
                if secret_refused {
                    self.forget_secret(&attempt.facts);
                }
                match of.filter(|_| infeasible) {
                    Some(of) => self.is_hopeless(uid, &attempt, &text, &of),
                    None => self.nothing_exists(uid, &attempt, text),
                }
            }
            Settled::Reschedule(text) => {
                self.book.clear(uid);
                self.record_ended(&attempt.facts).await;
                self.attempt_failed(&attempt, text);
                match self.book.claim(uid) {
                    Some(claim) => self.reschedule(&claim).await,
                    None => Next::Done,
                }
            }
        }
    }

    fn nothing_exists(&self, uid: &str, attempt: &Attempt, text: String) -> Next {
        self.attempt_failed(attempt, text);
        if self.book.claim(uid).is_some() { Next::Retry } else { Next::Done }
    }

    fn is_hopeless(&self, uid: &str, attempt: &Attempt, text: &str, of: &Fingerprint) -> Next {
        let text = format!("Volume provisioning failed with infeasible error. Retries will be delayed. {text}");
        self.attempt_failed(attempt, text);
        if self.book.claim(uid).is_some() { self.hold_back(uid, of) } else { Next::Done }
    }

    /// Deletes a volume that nobody may use; remembered until the driver confirms (weak points W7, W15).
    pub(super) async fn discard(&self, uid: &str, discard: &Discard) -> Next {
        let Attempt { request, facts } = discard.attempt.as_ref();
        match self.is_held_by_an_object(discard).await {
            Ok(false) => {}
            Ok(true) => {
                self.book.clear(uid);
                self.record_ended(facts).await;
                let text = Refusal::VolumeNameTaken { volume: facts.volume_name.clone() }.to_string();
                self.report_failure(&Failure { facts: EventSubject::Facts(facts), text });
                return if self.book.claim(uid).is_some() { Next::Retry } else { Next::Done };
            }
            Err(next) => return next,
        }
        match self.calls.delete_volume(&discard.volume_id, &request.secrets, facts.migrated).await {
            Ok(()) => {}
            // The driver says that it does not exist: that is what was wanted.
            Err(error) if error.from_driver && error.code == Code::NotFound => {}
            Err(error) => {
                let text = format!(
                    "unusable volume {} of volume name {} is not deleted yet and will be tried again: {error}",
                    discard.volume_id, facts.volume_name
                );
                self.report_failure(&Failure { facts: EventSubject::Facts(facts), text });
                return Next::Retry;
            }
        }
        self.book.clear(uid);
        self.record_ended(facts).await;
        warn!(target: "claim", volume = %discard.volume_id, "deleted a volume that could not be used");
        // Asked again with backoff: the same answer would come back at once otherwise.
        if self.book.claim(uid).is_some() { Next::Retry } else { Next::Done }
    }

    /// Whether the driver returned a volume that stands behind a volume object already: with short volume names it may be
    /// another claim's, and deleting it would destroy somebody's data (weak point W6).
    async fn is_held_by_an_object(&self, discard: &Discard) -> Result<bool, Next> {
        let facts = &discard.attempt.facts;
        let path = Path::core("persistentvolumes").name(&facts.volume_name);
        match self.objects.get::<Value>(&path).await {
            Ok(existing) => Ok(may_hold(&existing, &discard.volume_id)),
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(false),
            Err(error) => {
                let text = format!(
                    "unusable volume {} is not deleted before it is known whether volume object {} stands for it: {error}",
                    discard.volume_id, facts.volume_name
                );
                let failure = Failure { facts: EventSubject::Facts(facts), text };
                if error.kind.busy().is_some() {
                    self.report_busy(&failure)
                } else {
                    self.report_failure(&failure)
                }
                Err(Next::after_failure(&error))
            }
        }
    }

    fn attempt_failed(&self, attempt: &Attempt, text: String) {
        let facts = &attempt.facts;
        let source = self.book.claim(&facts.claim.uid).map_or(String::new(), |claim| source_kind(&claim).to_owned());
        self.metrics.provision_failed(&facts.class_name, &source);
        self.report_failure(&Failure { facts: EventSubject::Facts(facts), text });
    }
}
