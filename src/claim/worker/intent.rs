//! Keeps the durable records of open creations (`--durable-intent`): written, taken over and removed here.

use super::{ClaimRoom, EventSubject, Failure, Hindrance, Next};
use crate::claim::intent::{self, LABEL, RecordFault, Scope};
use crate::claim::plan::{Attempt, VolumeFacts};
use crate::claim::refusal::Refusal;
use crate::claim::unresolved::Creation;
use crate::kube_api::error::{ApiError, ApiErrorKind, PASSING_REFUSALS};
use crate::kube_api::objects::{Objects, Path};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

/// When a creation is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Never: what is open is lost with the process, as in the Go sidecar.
    Never,
    /// When an answer leaves it open, and at a stop.
    Uncertain,
    /// Before the first call.
    Always,
}

/// The records of this process.
pub struct Intents {
    objects: Objects,
    namespace: String,
    /// The node of a node deployment.
    node: Option<String>,
    when: When,
    /// Claim UIDs that have a record. Records that have to go are in the room's book.
    written: Mutex<BTreeSet<String>>,
    /// Of these, the ones of an earlier leader that were not compared with the volume objects yet.
    adopted: Mutex<BTreeSet<String>>,
    /// Until when the API server wants to be left alone with records.
    busy_until: Mutex<Option<Instant>>,
}

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
enum WriteFault {
    #[error(transparent)]
    Record(#[from] RecordFault),
    #[error("the record of the creation cannot be written: {0}")]
    Api(#[from] ApiError),
}

/// Pause between two tries to read the records at start.
const PAUSE: Duration = Duration::from_secs(2);
/// When to look for records that came late: API servers give up a request after a minute at the latest.
const LATE: Duration = Duration::from_secs(150);
/// How often records are tried at a stop, and the pauses between: at most 16 s, which a pod's grace period has room for.
const LAST_TRIES: u32 = 8;
const LAST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_LAST_PAUSE: Duration = Duration::from_secs(2);

impl Intents {
    /// Records in `namespace`, written when `when` says so.
    pub fn new(objects: Objects, namespace: &str, when: When) -> Self {
        Self {
            objects,
            namespace: namespace.to_owned(),
            node: None,
            when,
            written: Mutex::default(),
            adopted: Mutex::default(),
            busy_until: Mutex::default(),
        }
    }

    /// The same, of one node's instance only.
    #[must_use]
    pub fn of_node(self, node: Option<&str>) -> Self {
        Self { node: node.map(str::to_owned), ..self }
    }

    fn scope<'a>(&'a self, driver: &'a str) -> Scope<'a> {
        Scope { driver, node: self.node.as_deref() }
    }

    /// How many records are remembered.
    pub fn entries(&self) -> usize {
        self.written().len()
    }

    /// How long the API server still wants to be left alone with records.
    pub(super) fn wait(&self) -> Duration {
        let until = *self.busy_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    fn remember_wait(&self, error: &ApiError) {
        if let Some(until) = error.kind.busy().and_then(|wait| Instant::now().checked_add(wait)) {
            *self.busy_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        }
    }

    fn path(&self) -> Path {
        Path::core("configmaps").namespace(&self.namespace)
    }

    fn written(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn adopted(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All records of this driver, and in a node deployment of this node.
    async fn list(&self, driver: &str) -> Result<Vec<Value>, ApiError> {
        let selector = format!("{LABEL}={}", self.scope(driver).mark());
        self.objects.list(&self.path(), &[("labelSelector", &selector)]).await
    }

    /// Writes the record if it is not there. `Ok(Some)` = an earlier process left another request for this claim: that
    /// one has to be repeated instead.
    async fn write(&self, attempt: &Attempt) -> Result<Option<Attempt>, WriteFault> {
        let uid = &attempt.facts.claim.uid;
        if self.written().contains(uid) {
            return Ok(None);
        }
        let scope = self.scope(&attempt.facts.driver);
        let record = intent::record(attempt, &self.namespace, scope)?;
        let earlier = match self.objects.create(&self.path(), &record).await {
            Ok(_) => None,
            Err(error) if error.kind == ApiErrorKind::AlreadyExists => {
                let name = intent::name(scope, uid);
                let found: Value = self.objects.get(&self.path().name(&name)).await?;
                Some(intent::attempt(&found, scope)?)
            }
            Err(error) => return Err(error.into()),
        };
        self.written().insert(uid.clone());
        Ok(earlier)
    }
}

impl ClaimRoom {
    /// Takes over what earlier leaders left open; call it before the workers start. Returns early at a stop.
    pub async fn take_over(&self, stop: &CancellationToken) {
        if self.intents.when == When::Never {
            return;
        }
        let driver = self.driver.get().name.clone();
        let mut refusals = 0;
        loop {
            let listed = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                listed = self.intents.list(&driver) => listed,
            };
            match listed {
                Ok(records) => return self.adopt(&records, &driver),
                Err(problem) if problem.kind == ApiErrorKind::Forbidden && refusals >= PASSING_REFUSALS => {
                    error!(
                        target: "claim", namespace = %self.intents.namespace, error = %problem,
                        "--durable-intent needs the rights get, list, create and delete on configmaps in this namespace; \
                         until then no creation can be recorded"
                    );
                    return;
                }
                Err(problem) => {
                    warn!(target: "claim", error = %problem, "cannot read the records of open creations yet");
                    refusals += u32::from(problem.kind == ApiErrorKind::Forbidden);
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        () = sleep(problem.kind.busy().unwrap_or_default().max(PAUSE)) => {}
                    }
                }
            }
        }
    }

    /// Looks once more, when the API server has long ended all requests of the process that led before: one that was
    /// killed may have its record written after the first look.
    pub async fn take_over_late(&self, stop: &CancellationToken) {
        if self.intents.when == When::Never {
            return;
        }
        let driver = self.driver.get().name.clone();
        let look = async {
            sleep(LATE).await;
            self.intents.list(&driver).await
        };
        let listed = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            listed = look => listed,
        };
        match listed {
            Ok(records) => self.adopt(&records, &driver),
            Err(problem) => debug!(target: "claim", error = %problem, "cannot look for late records"),
        }
    }

    /// Whether this process works on the creation, has its record, or is about to remove it.
    fn is_known(&self, uid: &str) -> bool {
        self.is_open(uid) || self.intents.written().contains(uid)
    }

    /// Goes on with what is not known here.
    fn adopt(&self, records: &[Value], driver: &str) {
        for record in records {
            match intent::attempt(record, self.intents.scope(driver)) {
                Ok(attempt) => {
                    let uid = attempt.facts.claim.uid.clone();
                    if self.is_known(&uid) {
                        continue;
                    }
                    info!(target: "claim", claim_uid = %uid, volume = %attempt.facts.volume_name, "goes on with an open creation of an earlier leader");
                    self.intents.written().insert(uid.clone());
                    self.intents.adopted().insert(uid.clone());
                    self.book.set(&uid, Creation::Unresolved(Arc::new(attempt)));
                    self.queue.add(uid);
                }
                Err(fault) => warn!(target: "claim", error = %fault, "ignored a record"),
            }
        }
    }

    /// Before the driver is asked for the first time. `Err` = the request cannot be recorded, so it is not sent.
    pub(super) async fn record_before(&self, attempt: Attempt) -> Result<Attempt, Hindrance> {
        if self.intents.when != When::Always {
            return Ok(attempt);
        }
        match self.write_record(&attempt).await {
            Ok(None) => Ok(attempt),
            Ok(Some(earlier)) => Ok(earlier),
            Err(fault) => {
                let refusal = Refusal::NotRecorded { why: fault.to_string() };
                Err(match &fault {
                    WriteFault::Api(error) => Hindrance::by(error, refusal),
                    WriteFault::Record(_) => refusal.into(),
                })
            }
        }
    }

    /// After an answer that leaves the creation open. `Err` = it may not be written down, but another try may help; how
    /// long the API server wants to be left alone.
    pub(super) async fn record_uncertain(&self, attempt: &Attempt) -> Result<(), Duration> {
        if self.intents.when == When::Never {
            return Ok(());
        }
        let Err(fault) = self.write_record(attempt).await else { return Ok(()) };
        self.report_failure(&Failure { facts: EventSubject::Facts(&attempt.facts), text: fault.to_string() });
        match fault {
            WriteFault::Api(error) => Err(error.kind.busy().unwrap_or_default()),
            WriteFault::Record(_) => Ok(()),
        }
    }

    async fn write_record(&self, attempt: &Attempt) -> Result<Option<Attempt>, WriteFault> {
        let (uid, written) = (&attempt.facts.claim.uid, self.intents.write(attempt).await);
        match &written {
            Ok(_) => self.book.record_is_gone(uid),
            // It may have been stored all the same. If the creation goes on it is found again, else it has to go.
            Err(WriteFault::Api(_)) => self.book.record_is_due(uid),
            Err(WriteFault::Record(_)) => {}
        }
        written
    }

    /// The creation has ended, one way or the other: its source may be free, and its record goes. What cannot be removed
    /// now is tried again in the claim's next turns; a record that outlives its process is compared with the volume
    /// objects by the next leader.
    pub(super) async fn record_ended(&self, facts: &VolumeFacts) {
        if let Some(source) = &facts.source {
            self.surroundings.source_may_be_free(source);
        }
        let uid = &facts.claim.uid;
        if self.intents.written().remove(uid) {
            self.book.record_is_due(uid);
        }
        if self.book.is_record_due(uid) {
            // A failure is told there, and the claim's turn ends with another try.
            let _ = self.remove_record(uid).await;
        }
    }

    /// Removes a record that is due.
    pub(super) async fn remove_record(&self, uid: &str) -> Result<(), ApiError> {
        let driver = self.driver.get();
        let name = intent::name(self.intents.scope(&driver.name), uid);
        match self.objects.delete(&self.intents.path().name(&name), None).await {
            Ok(()) => {}
            Err(error) if error.kind == ApiErrorKind::NotFound => {}
            Err(error) => {
                warn!(target: "claim", claim_uid = %uid, %error, "cannot remove the record of an ended creation yet");
                self.intents.remember_wait(&error);
                return Err(error);
            }
        }
        self.book.record_is_gone(uid);
        Ok(())
    }

    /// At a stop: whatever is still open is written down, if records are wanted at all. What the API server does not take
    /// is tried again a few times: nobody else knows of it when this process is gone.
    pub async fn record_all_open(&self) {
        for _ in 0..LAST_TRIES {
            let mut failed = None;
            for (_, creation) in self.book.all_creations() {
                // The request of a created volume gives the same volume again, which is then saved, as is one that has to
                // go: it is found again, saved, and deleted if nobody wants it.
                let attempt = match &creation {
                    Creation::Unresolved(attempt) => attempt,
                    Creation::Created(made) => &made.attempt,
                    Creation::Discarding(discard) => &discard.attempt,
                };
                failed = failed.max(self.record_uncertain(attempt).await.err());
            }
            for uid in self.book.records_due() {
                if self.book.creation(&uid).is_none() {
                    let removed = self.remove_record(&uid).await;
                    failed = failed.max(removed.err().map(|error| error.kind.busy().unwrap_or_default()));
                }
            }
            let Some(wait) = failed else { return };
            sleep(wait.clamp(LAST_PAUSE, LONGEST_LAST_PAUSE)).await;
        }
    }

    /// Whether a creation that was taken over is finished: its volume object exists, and only the record outlived the
    /// process that removed it. The request must not be repeated then, because the volume may be on its way out already
    /// (see [`Self::is_open`]) and would be made anew.
    pub(super) async fn is_finished(&self, uid: &str, attempt: &Attempt) -> Result<bool, Next> {
        if !self.intents.adopted().contains(uid) {
            return Ok(false);
        }
        let name = &attempt.facts.volume_name;
        match self.objects.get::<Value>(&Path::core("persistentvolumes").name(name)).await {
            Ok(object) if object.pointer("/spec/claimRef/uid").and_then(Value::as_str) == Some(uid) => {
                info!(target: "claim", claim_uid = %uid, volume = %name, "the creation of an earlier leader was finished");
                self.book.saved(uid, name);
                self.record_ended(&attempt.facts).await;
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) if error.kind == ApiErrorKind::NotFound => Ok(false),
            Err(error) => {
                warn!(target: "claim", claim_uid = %uid, %error, "cannot see yet whether a creation of an earlier leader was finished");
                Err(Next::after_failure(&error))
            }
        }
        .inspect(|_| {
            self.intents.adopted().remove(uid);
        })
    }

    /// Whether the claim's creation is open, or has a record that has to go. Its volume stays until then: whoever finds the
    /// record would make the volume anew.
    pub fn is_open(&self, uid: &str) -> bool {
        self.book.creation(uid).is_some() || self.book.is_record_due(uid)
    }

    /// A request that was taken over carries no secret: it is read before the request is repeated.
    pub(super) async fn with_secret(&self, uid: &str, attempt: Arc<Attempt>) -> Result<Arc<Attempt>, Next> {
        let Some(secret) = &attempt.facts.refs.provisioner else { return Ok(attempt) };
        if !attempt.request.secrets.reveal().is_empty() {
            return Ok(attempt);
        }
        match self.secrets.read(secret).await {
            Ok(secrets) => {
                let mut complete = attempt.as_ref().clone();
                complete.request.secrets = secrets;
                let complete = Arc::new(complete);
                self.book.set(uid, Creation::Unresolved(Arc::clone(&complete)));
                Ok(complete)
            }
            Err(problem) => {
                let refusal = Refusal::SecretUnreadable { secret: secret.clone(), why: problem.to_string() };
                let failure = Failure { facts: EventSubject::Facts(&attempt.facts), text: refusal.to_string() };
                if problem.kind.busy().is_some() {
                    self.report_busy(&failure);
                } else {
                    self.report_failure(&failure);
                }
                Err(Next::after_failure(&problem))
            }
        }
    }
}
