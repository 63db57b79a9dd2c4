//! Makes volumes for claims: reads what a decision needs, asks the pure files, performs and reports.
//!
//! One turn handles one claim. It starts from what the [`Book`] knows and can be repeated after any interruption:
//! knowledge is written down before the driver is asked, so a turn that is dropped anywhere is continued by the next.
//!
//! - this file: what is due for a claim;
//! - [`create`]: the call and what its answer means; the deletion of volumes nobody may use;
//! - [`save`]: the volume object;
//! - [`gather`]: attributes classes and secrets; [`sources`]: snapshots and claims to copy, and their protection;
//! - [`intent`]: durable records of what is open;
//! - [`reschedule`]: giving the claim back to the scheduler; [`take`]: taking one that is no node's.

mod create;
mod gather;
pub mod intent;
mod reschedule;
mod save;
pub mod sources;
mod take;

use super::book::Book;
use super::classes::Classes;
use super::hold_back::Fingerprint;
use super::plan::{self, Attempt, Draft, Setting, Verdict, VolumeFacts};
use super::refusal::{self, Refusal, RefusalState};
use super::source::DataSource;
use super::unresolved::Creation;
use crate::csi::Calls;
use crate::kube_api::error::ApiError;
use crate::kube_api::events::{Recorder, Regarding};
use crate::kube_api::objects::Objects;
use crate::kube_api::pool::{self, Next};
use crate::kube_api::queue::Queue;
use crate::kube_api::secrets::SecretReader;
use crate::model::driver::DriverCell;
use crate::model::grant::Grant;
use crate::model::meta::MetaExt;
use crate::model::{Accessibility, Claim, Class, Driver, Options, Turn};
use crate::report::metrics::Metrics;
use crate::report::reasons;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

/// What other rooms know that a claim's decision needs; the composition root provides it.
pub trait Surroundings: Send + Sync {
    /// Claim UID of the volume object of this name, if one is known that is not Bound yet.
    fn existing_volume(&self, name: &str) -> Option<String>;
    /// Where the volume must be reachable from; `None` sends no requirement (topology-and-capacity.md).
    fn accessibility(&self, claim: &Claim, class: &Class) -> Result<Option<Accessibility>, Refusal>;
    /// The class in the CSI driver's terms, if it names the in-tree plug-in that `driver` replaced.
    fn translate_class(&self, class: &Class, driver: &Driver) -> Result<Option<Class>, Refusal>;
    /// The volume object in the terms of the in-tree plug-in that the driver replaced.
    fn to_in_tree(&self, volume: &Value) -> Result<Value, String>;
    /// A creation from this source has ended: its protection may not be needed any more.
    fn source_may_be_free(&self, source: &DataSource);
    /// Reference grants of a namespace.
    fn grants(&self, namespace: &str) -> Vec<Grant>;
    /// Whose turn the claim is; always ours but in a node deployment.
    fn turn(&self, claim: &Claim, class: Option<&Class>, now: Instant) -> Turn;
    /// Taking the claim was in vain: how long to wait until the next try.
    fn try_later(&self, uid: &str, now: Instant) -> Duration;
    /// Our node in a node deployment.
    fn own_node(&self) -> Option<&str>;
}

/// Everything that the claim room works with.
pub struct ClaimRoom {
    /// What is known.
    pub book: Arc<Book>,
    /// Storage classes.
    pub classes: Arc<Classes>,
    /// Claim UIDs to look at.
    pub queue: Queue<String>,
    /// The driver.
    pub calls: Calls,
    /// Its name and capabilities.
    pub driver: DriverCell,
    /// The API server, with the main budget.
    pub objects: Objects,
    /// Events.
    pub recorder: Recorder,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Settings.
    pub options: Options,
    /// Identity written into volume attributes.
    pub identity: String,
    /// Other rooms.
    pub surroundings: Arc<dyn Surroundings>,
    /// Secrets, read by name.
    pub secrets: Arc<SecretReader>,
    /// Sources read lately.
    pub sources: Arc<sources::SourceViews>,
    /// Durable records.
    pub intents: intent::Intents,
}

/// Why a request is not complete.
struct Hindrance {
    refusal: Refusal,
    /// The API server was only too busy to answer, and asked for this much time.
    busy: Option<Duration>,
}

impl From<Refusal> for Hindrance {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, busy: None }
    }
}

impl Hindrance {
    /// An API call failed, which means this refusal.
    fn by(error: &ApiError, refusal: Refusal) -> Self {
        Self { refusal, busy: error.kind.busy() }
    }
}

/// A busy API server is told to the claim's owner from so many failures in a row on: half a minute at the default.
/// Until then events would only keep it busy.
const PATIENCE: u32 = 5;

/// What a turn reports about a failure.
struct Failure<'a> {
    facts: EventSubject<'a>,
    text: String,
}

/// The claim that an event is about: from the claim as seen, or from the facts of a creation whose claim may be gone.
enum EventSubject<'a> {
    Claim(&'a Claim),
    Facts(&'a VolumeFacts),
}

impl ClaimRoom {
    /// Works until `stop`, with at most `threads` claims at once; running turns are awaited.
    pub async fn run(self: Arc<Self>, threads: usize, stop: CancellationToken) {
        let room = Arc::clone(&self);
        pool::run(&self.queue, threads, &stop, move |uid: String| {
            let room = Arc::clone(&room);
            async move { room.handle(uid).await }
        })
        .await;
    }

    async fn handle(&self, uid: String) -> Next {
        let next = match self.turn(&uid).await {
            // An ended creation is done with when its record is gone too.
            Next::Done if self.book.is_record_due(&uid) => Next::Busy(self.intents.wait()),
            next => next,
        };
        self.metrics.set_open_creations(self.book.open_creations());
        next
    }

    async fn turn(&self, uid: &str) -> Next {
        match self.book.creation(uid) {
            Some(Creation::Discarding(discard)) => self.discard(uid, &discard).await,
            Some(Creation::Created(made)) => self.save(uid, &made, Instant::now()).await,
            Some(Creation::Unresolved(attempt)) => self.go_on(uid, attempt).await,
            None if self.book.is_record_due(uid) => match self.remove_record(uid).await {
                Ok(()) => self.start(uid).await,
                Err(error) => Next::after_failure(&error),
            },
            None => self.start(uid).await,
        }
    }

    /// Repeats an open request, or sees that it was finished.
    async fn go_on(&self, uid: &str, attempt: Arc<Attempt>) -> Next {
        match self.is_finished(uid, &attempt).await {
            Ok(false) => {}
            Ok(true) => return Next::Done,
            Err(next) => return next,
        }
        match self.with_secret(uid, attempt).await {
            Ok(attempt) => self.create(uid, attempt, None).await,
            Err(next) => next,
        }
    }

    /// Decides whether a creation is due and begins it.
    async fn start(&self, uid: &str) -> Next {
        let Some(claim) = self.book.claim(uid) else { return Next::Done };
        if self.book.is_saved(uid) {
            return Next::Done;
        }
        let driver = self.driver.get();
        let class = self.classes.get(claim.class_name());
        let verdict = plan::should_provision(&claim, class.as_deref(), &driver);
        if let Verdict::Provision | Verdict::ClassMissing { .. } = verdict
            && let Some(next) = self.not_our_turn(uid, &claim, class.as_deref()).await
        {
            return next;
        }
        let class = match verdict {
            Verdict::NotOurs | Verdict::AlreadyHasVolume | Verdict::BeingDeleted => return Next::Done,
            Verdict::WaitsForConsumer => {
                debug!(target: "claim", claim = %claim.metadata.key(), "waits for a pod that uses it");
                return Next::Done;
            }
            Verdict::ClassMissing { name } => return self.class_missing(uid, &claim, &name),
            Verdict::Provision => match class {
                Some(class) => class,
                None => return self.class_missing(uid, &claim, claim.class_name()),
            },
        };
        self.book.has_class(uid);
        if let Some(wait) = self.book.held_for(uid, &Fingerprint::of(&claim, &class), Instant::now()) {
            return Next::After(wait);
        }
        self.begin(uid, &claim, &class).await
    }

    async fn begin(&self, uid: &str, claim: &Claim, class: &Class) -> Next {
        let driver = self.driver.get();
        let (draft, effective) = match self.draft(claim, class, &driver) {
            Ok(drafted) => drafted,
            Err(refusal) => return self.refuse(claim, &refusal).await,
        };
        if let Some(owner) = self.surroundings.existing_volume(&draft.volume_name) {
            return self.name_taken(uid, claim, &draft.volume_name, &owner).await;
        }
        if let Err(owner) = self.book.reserve(uid, &draft.volume_name) {
            return self.name_taken(uid, claim, &draft.volume_name, &owner).await;
        }
        let name = draft.volume_name.clone();
        if self.book.announce(uid) {
            let text = format!("External provisioner is provisioning volume for claim \"{}\"", claim.metadata.key());
            self.recorder.normal(&regarding(&EventSubject::Claim(claim)), reasons::PROVISIONING, &text);
        }
        let gathered = self.gather(claim, effective.as_ref().unwrap_or(class), draft).await;
        let recorded = match self.protected(gathered).await {
            Ok(attempt) => self.record_before(attempt).await,
            Err(hindrance) => Err(hindrance),
        };
        match recorded {
            Ok(attempt) => {
                let attempt = Arc::new(attempt);
                self.book.set(uid, Creation::Unresolved(Arc::clone(&attempt)));
                // An earlier process's request carries no secret.
                match self.with_secret(uid, attempt).await {
                    Ok(attempt) => self.create(uid, attempt, Some(Fingerprint::of(claim, class))).await,
                    Err(next) => next,
                }
            }
            Err(hindrance) => {
                self.book.release(uid, &name);
                self.hindered(claim, hindrance).await
            }
        }
    }

    /// The draft, and the class in the driver's terms where that differs.
    fn draft(&self, claim: &Claim, class: &Class, driver: &Driver) -> Result<(Draft, Option<Class>), Refusal> {
        let translated = self.surroundings.translate_class(class, driver)?;
        let grants = claim
            .source()
            .filter(|source| source.namespace != claim.metadata.namespace())
            .map_or(Vec::new(), |source| self.surroundings.grants(source.namespace));
        let setting =
            Setting { driver, options: &self.options, translated_class: translated.as_ref(), grants: &grants };
        let draft = plan::draft(claim, class, &setting)?;
        Ok((draft, translated))
    }

    /// A volume object or a creation of this name exists already.
    async fn name_taken(&self, uid: &str, claim: &Claim, name: &str, owner: &str) -> Next {
        if owner == uid {
            return Next::Done;
        }
        self.refuse(claim, &Refusal::VolumeNameTaken { volume: name.to_owned() }).await
    }

    fn class_missing(&self, uid: &str, claim: &Claim, name: &str) -> Next {
        // Said once, and looked at again when a class of that name appears (W42: no silent case).
        let refusal = Refusal::ClassNotFound { class: refusal::cut(name) };
        if self.book.misses_class(uid) {
            self.report_failure(&Failure { facts: EventSubject::Claim(claim), text: refusal.to_string() });
        }
        self.metrics.provision_failed(claim.class_name(), source_kind(claim));
        Next::Retry
    }

    /// What a request waits for: reported, unless the API server only needs a moment.
    async fn hindered(&self, claim: &Claim, Hindrance { refusal, busy }: Hindrance) -> Next {
        let Some(wait) = busy else { return self.refuse(claim, &refusal).await };
        self.metrics.provision_failed(claim.class_name(), source_kind(claim));
        self.report_busy(&Failure { facts: EventSubject::Claim(claim), text: refusal.to_string() });
        Next::Busy(wait)
    }

    /// Reports why nothing was asked of the driver, and when to look again.
    async fn refuse(&self, claim: &Claim, refusal: &Refusal) -> Next {
        match refusal.state() {
            RefusalState::Ignored => {
                if let Refusal::ExternalPopulator { .. } = refusal {
                    self.recorder.speaking_as(reasons::POPULATOR_COMPONENT).normal(
                        &regarding(&EventSubject::Claim(claim)),
                        reasons::PROVISIONING,
                        "Assuming an external populator will provision the volume",
                    );
                }
                debug!(target: "claim", claim = %claim.metadata.key(), reason = %refusal, "left to others");
                return Next::Done;
            }
            RefusalState::NoChange | RefusalState::Reschedule => {}
        }
        self.metrics.provision_failed(claim.class_name(), source_kind(claim));
        self.report_failure(&Failure { facts: EventSubject::Claim(claim), text: refusal.to_string() });
        if refusal.state() == RefusalState::Reschedule {
            return self.reschedule(claim).await;
        }
        Next::Retry
    }

    fn hold_back(&self, uid: &str, request: &Fingerprint) -> Next {
        let now = Instant::now();
        self.book.hold(uid, request.clone(), now);
        self.book.held_for(uid, request, now).map_or(Next::Retry, Next::After)
    }

    /// As [`Self::report_failure`], but without an event before it has lasted for a while.
    fn report_busy(&self, failure: &Failure<'_>) {
        let subject = regarding(&failure.facts);
        if self.queue.failures(&subject.uid) >= PATIENCE {
            return self.report_failure(failure);
        }
        info!(target: "claim", claim = %format_args!("{}/{}", subject.namespace, subject.name), error = %failure.text, "the API server is busy");
    }

    fn report_failure(&self, failure: &Failure<'_>) {
        let subject = regarding(&failure.facts);
        info!(target: "claim", claim = %format_args!("{}/{}", subject.namespace, subject.name), error = %failure.text, "provisioning failed");
        self.recorder.warning(&subject, reasons::PROVISIONING_FAILED, &failure.text);
    }
}

/// Label `source` of the provisioning metrics (W43: a cross-namespace source counts too).
fn source_kind(claim: &Claim) -> &str {
    claim.source().map_or("", |source| source.kind)
}

fn regarding(subject: &EventSubject<'_>) -> Regarding {
    let (namespace, name, uid, version) = match subject {
        EventSubject::Claim(claim) => {
            let meta = &claim.metadata;
            (meta.namespace(), meta.name(), meta.uid(), meta.version())
        }
        EventSubject::Facts(facts) => (
            facts.claim.namespace.as_str(),
            facts.claim.name.as_str(),
            facts.claim.uid.as_str(),
            facts.claim.resource_version.as_str(),
        ),
    };
    Regarding {
        kind: "PersistentVolumeClaim".to_owned(),
        api_version: "v1".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        resource_version: version.to_owned(),
    }
}
