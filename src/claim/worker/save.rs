//! Saves the volume object of a volume that exists.

use super::{ClaimRoom, EventSubject, Failure, Next, regarding, source_kind};
use crate::claim::existing::{Existing, compare};
use crate::claim::unresolved::{Creation, Discard, Made};
use crate::claim::volume;
use crate::kube_api::error::{ApiError, ApiErrorKind};
use crate::kube_api::objects::Path;
use crate::report::reasons;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

impl ClaimRoom {
    /// Posts the volume object. `began` is when the driver was asked, for the duration metric.
    pub(super) async fn save(&self, uid: &str, made: &Made, began: Instant) -> Next {
        let facts = &made.attempt.facts;
        let mut object = volume::persistent_volume(facts, &made.volume, &self.identity);
        if facts.migrated {
            // A volume that cannot be described in the former plug-in's terms is deleted again (weak point W14).
            match self.surroundings.to_in_tree(&object) {
                Ok(translated) => object = translated,
                Err(why) => return self.refused_for_good(uid, made, why).await,
            }
        }
        if self.book.is_bound(uid) {
            // Stored by a call whose answer was lost. Posted again it would come back from the dead if it has been
            // deleted meanwhile, without storage behind it.
            return self.compare(uid, made, &object, began).await;
        }
        match self.objects.create(&Path::core("persistentvolumes"), &object).await {
            Ok(_) => self.saved(uid, made, began).await,
            Err(error) if error.kind == ApiErrorKind::AlreadyExists => self.compare(uid, made, &object, began).await,
            Err(error) if error.kind.is_final_refusal() => {
                self.refused_for_good(uid, made, format!("volume object {} is refused: {error}", facts.volume_name))
                    .await
            }
            Err(error) => self.save_later(made, &error),
        }
    }

    /// A volume object of this name exists: success only if it is this volume for this claim (weak point W6).
    async fn compare(&self, uid: &str, made: &Made, wanted: &Value, began: Instant) -> Next {
        let facts = &made.attempt.facts;
        let path = Path::core("persistentvolumes").name(&facts.volume_name);
        let existing = match self.objects.get::<Value>(&path).await {
            Ok(existing) => existing,
            // It was used, and went the way of a released volume already.
            Err(error) if error.kind == ApiErrorKind::NotFound && self.book.is_bound(uid) => {
                return self.saved(uid, made, began).await;
            }
            // It went away between the two calls: post again.
            Err(error) if error.kind == ApiErrorKind::NotFound => return Next::Retry,
            Err(error) => return self.save_later(made, &error),
        };
        match compare(&existing, wanted) {
            Existing::Same => self.saved(uid, made, began).await,
            Existing::SameStorage => {
                // The storage belongs to that volume object: deleting it would destroy somebody's data.
                self.book.clear(uid);
                self.record_ended(facts).await;
                self.save_failed(
                    made,
                    format!(
                        "volume name {} belongs to another claim: use a longer --volume-name-uuid-length or another \
                         --volume-name-prefix",
                        facts.volume_name
                    ),
                );
                Next::Retry
            }
            Existing::OtherStorage => {
                let text = format!(
                    "a volume object named {} exists with another volume behind it: delete it or use another \
                     --volume-name-prefix",
                    facts.volume_name
                );
                self.refused_for_good(uid, made, text).await
            }
        }
    }

    /// The API will never take this volume object: tell, and delete the volume (W7).
    async fn refused_for_good(&self, uid: &str, made: &Made, text: String) -> Next {
        let discard = Arc::new(Discard::of(&made.attempt, &made.volume.id));
        self.book.set(uid, Creation::Discarding(Arc::clone(&discard)));
        self.save_failed(made, text);
        self.discard(uid, &discard).await
    }

    async fn saved(&self, uid: &str, made: &Made, began: Instant) -> Next {
        let facts = &made.attempt.facts;
        let (claim, deleted) = (self.book.claim(uid), self.book.is_deleted(uid));
        self.book.saved(uid, &facts.volume_name);
        let source = claim.as_ref().map_or("", |claim| source_kind(claim));
        self.metrics.provision_ok(&facts.class_name, source, began.elapsed().as_secs_f64());
        // Nobody is left to be told when the claim is gone (provisioning.md 3.8).
        if !deleted {
            self.recorder.normal(
                &regarding(&EventSubject::Facts(facts)),
                reasons::PROVISIONING_SUCCEEDED,
                &format!("Successfully provisioned volume {}", facts.volume_name),
            );
        }
        self.record_ended(facts).await;
        Next::Done
    }

    fn save_later(&self, made: &Made, error: &ApiError) -> Next {
        let facts = &made.attempt.facts;
        let text = format!("volume {} exists but its object cannot be saved yet: {error}", facts.volume_name);
        if error.kind.busy().is_some() {
            self.count_failed_save(made);
            self.report_busy(&Failure { facts: EventSubject::Facts(facts), text });
        } else {
            self.save_failed(made, text);
        }
        Next::after_failure(error)
    }

    fn save_failed(&self, made: &Made, text: String) {
        self.count_failed_save(made);
        self.report_failure(&Failure { facts: EventSubject::Facts(&made.attempt.facts), text });
    }

    fn count_failed_save(&self, made: &Made) {
        let facts = &made.attempt.facts;
        let source = self.book.claim(&facts.claim.uid).map_or(String::new(), |claim| source_kind(&claim).to_owned());
        self.metrics.provision_failed(&facts.class_name, &source);
    }
}
