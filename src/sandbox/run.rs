//! `csi-sandbox run`: files in, the way of each object on the screen, a summary at the end.
//!
//! Succeeds only if every claim of the files is Bound in time and, with `--delete`, if then every volume is gone from
//! API and driver.

use super::binder::objects::{claim_uid, is_deleting, key, name, phase, text, uid};
use super::console::{Console, say};
use super::direct::Feed;
use super::files::{self, Document};
use super::narrate::{self, Narrator};
use super::summary::{self, ClaimResult};
use super::world::{World, WorldOptions};
use super::{apiserver, interrupted};
use apiserver::DeleteOptions;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Name of the class that is made when the files have none for the driver.
const OWN_CLASS: &str = "csi-sandbox";

/// What to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// YAML files; `-` is standard input.
    pub files: Vec<String>,
    /// Delete the claims afterwards and watch the volumes go.
    pub delete: bool,
    /// One JSON document instead of lines.
    pub json: bool,
    /// Longest wait for the claims, and once more for the volumes.
    pub timeout: Duration,
    /// The world.
    pub world: WorldOptions,
}

/// Runs it; true if all went as wanted. An error is a mistake in files or arguments, or a world that cannot start.
pub async fn run(options: RunOptions) -> anyhow::Result<bool> {
    let json = options.json;
    let mut console = Console::new(json);
    let result = in_a_world(options, &mut console).await;
    let (claims, left, reason) = match &result {
        Ok(report) => (report.claims.as_slice(), report.volumes_left.as_slice(), report.reason.clone()),
        Err(error) => (&[][..], &[][..], Some(format!("{error:#}"))),
    };
    if json {
        say(&format!("{:#}", summary::document(reason.is_none(), reason.as_deref(), claims, left, console.timeline())));
    }
    let report = result?;
    if !json {
        say(&format!("\n{}\n", summary::table(&report.claims)));
    }
    if let Some(reason) = &report.reason {
        eprintln!("csi-sandbox: {reason}");
    } else {
        console.remark(&report.verdict);
    }
    Ok(report.reason.is_none())
}

/// How it ended.
struct Report {
    claims: Vec<ClaimResult>,
    volumes_left: Vec<String>,
    verdict: String,
    /// Why it is no success.
    reason: Option<String>,
}

async fn in_a_world(options: RunOptions, console: &mut Console) -> anyhow::Result<Report> {
    let mut documents = Vec::new();
    for file in &options.files {
        documents.extend(files::read(file)?);
    }
    if !documents.iter().any(|document| document.resource.plural == "persistentvolumeclaims") {
        anyhow::bail!(
            "{}: no PersistentVolumeClaim in it, so there is nothing to wait for; see examples/claim.yaml, or use \
             `csi-sandbox up` to serve the world only",
            options.files.join(", ")
        );
    }
    let world = World::start(options.world.clone()).await?;
    console.remark(&format!(
        "API server on http://{}, driver {}, node {}",
        world.address, world.facts.name, world.facts.node
    ));
    let mut show = Show::new(&world, console, options.timeout);
    let report = show.walk(&documents, options.delete).await;
    let stopped = world.stop().await;
    let report = report?;
    if report.reason.is_none() {
        stopped?;
    }
    Ok(report)
}

/// Why a wait ended.
enum Outcome {
    Done,
    Failed(String),
}

/// A world being watched.
struct Show<'a> {
    world: &'a World,
    console: &'a mut Console,
    feed: Feed,
    narrator: Narrator,
    steps: Option<(watch::Receiver<usize>, usize)>,
    timeout: Duration,
    /// Keys of the claims of the files to when they were Bound.
    wanted: BTreeMap<String, Option<Duration>>,
    created: Duration,
}

impl<'a> Show<'a> {
    fn new(world: &'a World, console: &'a mut Console, timeout: Duration) -> Self {
        Self {
            feed: Feed::new(&world.server, &narrate::KINDS),
            steps: world.driver.as_ref().map(|driver| (driver.script().subscribe(), 0)),
            created: console.elapsed(),
            world,
            console,
            narrator: Narrator::default(),
            timeout,
            wanted: BTreeMap::new(),
        }
    }

    async fn walk(&mut self, documents: &[Document], delete: bool) -> anyhow::Result<Report> {
        self.add_class(documents)?;
        files::check_classes(&self.world.server, documents, &self.world.facts.name)?;
        let stored = files::apply(&self.world.server, documents)?;
        let of_kind = |plural: &'static str| stored.iter().filter(move |(kind, _)| kind.plural == plural);
        self.created = self.console.elapsed();
        self.wanted = of_kind("persistentvolumeclaims").map(|(_, claim)| (key(claim), None)).collect();
        let bound = self.wait(|show| show.wanted.values().all(Option::is_some)).await;
        let mut report = self.report(bound);
        if delete && report.reason.is_none() {
            let pods: Vec<&Value> = of_kind("pods").map(|(_, pod)| pod).collect();
            self.take_down(&pods, &mut report).await;
        }
        Ok(report)
    }

    /// A class for the driver, unless a file has one: the default one if no other is.
    fn add_class(&mut self, documents: &[Document]) -> anyhow::Result<()> {
        let driver = &self.world.facts.name;
        let classes = || documents.iter().filter(|document| document.resource.plural == "storageclasses");
        if classes().any(|class| text(&class.object, "/provisioner") == *driver) {
            return Ok(());
        }
        let is_default = |class: &Document| {
            let pointer = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";
            text(&class.object, pointer) == "true"
        };
        let default = !classes().any(is_default);
        let class = json!({
            "metadata": {
                "name": OWN_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": default.to_string()},
            },
            "provisioner": driver, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
        });
        self.world.server.create("storageclasses", "", class)?;
        let what = if default { "claims without a class get it" } else { "name it in a claim to use it" };
        self.console.remark(&format!(
            "StorageClass {OWN_CLASS} added, because no file has a class of provisioner {driver}; {what}"
        ));
        Ok(())
    }

    /// Shows what happens until `done`, or until nothing good can come any more.
    async fn wait(&mut self, done: impl Fn(&Self) -> bool) -> Outcome {
        let deadline = Instant::now() + self.timeout;
        let interrupted = interrupted();
        tokio::pin!(interrupted);
        loop {
            self.catch_up();
            if done(self) {
                return Outcome::Done;
            }
            if let Some(lost) = self.lost() {
                return Outcome::Failed(lost);
            }
            if let Some(end) = self.world.seat.end() {
                let why = end.map_or_else(|ended| ended.line, |()| "it was stopped".to_owned());
                return Outcome::Failed(format!("the sidecar ended: {why}"));
            }
            // The driver's log and the sidecar's end are looked at this often; the API wakes by itself.
            let tick = Instant::now() + Duration::from_millis(200);
            tokio::select! {
                biased;
                () = &mut interrupted => return Outcome::Failed("interrupted".to_owned()),
                () = self.feed.wait() => {}
                () = stepped(&mut self.steps) => {}
                () = sleep_until(tick.min(deadline)) => {}
            }
            if Instant::now() >= deadline {
                self.catch_up();
                let waited = format!("not done after {} s (--timeout)", self.timeout.as_secs_f64());
                return if done(self) { Outcome::Done } else { Outcome::Failed(waited) };
            }
        }
    }

    /// Tells everything that is known and not told yet; driver first, because objects follow from its answers.
    fn catch_up(&mut self) {
        if let (Some(driver), Some((steps, seen))) = (&self.world.driver, &mut self.steps) {
            let total = *steps.borrow_and_update();
            for step in driver.script().steps_after(*seen) {
                *seen += 1;
                if let Some(line) = narrate::call_line(&step) {
                    self.console.line(&line);
                }
            }
            *seen = (*seen).max(total);
        }
        for news in self.feed.news() {
            for line in self.narrator.hears(news) {
                self.console.line(&line);
            }
        }
        for (key, bound) in &mut self.wanted {
            let is_bound = self.narrator.claims.get(key).is_some_and(|claim| phase(claim) == "Bound");
            if bound.is_none() && is_bound {
                *bound = Some(self.console.elapsed().saturating_sub(self.created));
            }
        }
    }

    fn lost(&self) -> Option<String> {
        let lost = |key: &String| self.narrator.claims.get(key).is_some_and(|claim| phase(claim) == "Lost");
        self.wanted.keys().find(|key| lost(key)).map(|key| format!("claim {key} has lost its volume"))
    }

    fn report(&self, outcome: Outcome) -> Report {
        let result = |(key, bound): (&String, &Option<Duration>)| {
            let gone = || Arc::new(json!({"metadata": {"name": key}}));
            let claim = self.narrator.claims.get(key).cloned().unwrap_or_else(gone);
            ClaimResult::new(&claim, bound.map(|time| time.as_secs_f64()), self.narrator.last_word(&claim))
        };
        let claims: Vec<ClaimResult> = self.wanted.iter().map(result).collect();
        let bound = claims.iter().filter(|claim| claim.is_bound()).count();
        let reason = match outcome {
            Outcome::Done => None,
            Outcome::Failed(why) => {
                Some(format!("{bound} of {} claims are Bound; {why}{}", claims.len(), open(&claims)))
            }
        };
        let seconds = self.console.elapsed().saturating_sub(self.created).as_secs_f64();
        let verdict = format!("{bound} of {} claims Bound in {seconds:.2} s", claims.len());
        Report { claims, volumes_left: self.volumes_left(), verdict, reason }
    }

    fn volumes_left(&self) -> Vec<String> {
        self.narrator.volumes.keys().cloned().collect()
    }

    /// Deletes pods and claims and follows their volumes until they are gone.
    async fn take_down(&mut self, pods: &[&Value], report: &mut Report) {
        let server = &self.world.server;
        let begun = self.console.elapsed();
        let claims: BTreeSet<String> = self
            .wanted
            .keys()
            .filter_map(|key| self.narrator.claims.get(key))
            .map(|claim| uid(claim).to_owned())
            .collect();
        let owned = |volume: &Value| claims.contains(claim_uid(volume));
        let handles: BTreeSet<String> = self
            .narrator
            .volumes
            .values()
            .filter(|volume| owned(volume))
            .map(|volume| text(volume, "/spec/csi/volumeHandle").to_owned())
            .collect();
        let options = DeleteOptions::default();
        for pod in pods {
            // A pod that is gone already is what was wanted; so below.
            let _gone = server.delete("pods", text(pod, "/metadata/namespace"), name(pod), &options);
        }
        for (namespace, name) in self.wanted.keys().filter_map(|key| key.split_once('/')) {
            let _gone = server.delete("persistentvolumeclaims", namespace, name, &options);
        }
        let kept = |volume: &Value| {
            phase(volume) == "Released"
                && text(volume, "/spec/persistentVolumeReclaimPolicy") == "Retain"
                && !is_deleting(volume)
        };
        let outcome = self
            .wait(|show| {
                let in_driver = show.world.driver.as_ref().is_some_and(|driver| {
                    let backend = driver.backend();
                    handles.iter().any(|handle| backend.volumes().contains_key(handle))
                });
                let mine: Vec<_> = show.narrator.volumes.values().filter(|volume| owned(volume)).collect();
                let claims_gone = !show.wanted.keys().any(|key| show.narrator.claims.contains_key(key));
                let only_kept = !mine.is_empty() && mine.iter().all(|volume| kept(volume));
                claims_gone && (only_kept || (mine.is_empty() && !in_driver))
            })
            .await;
        report.volumes_left = self.volumes_left();
        let seconds = self.console.elapsed().saturating_sub(begun).as_secs_f64();
        report.verdict = format!("{}, all volumes gone in {seconds:.2} s", report.verdict);
        let left = self.narrator.volumes.values().filter(|volume| owned(volume));
        let left: Vec<String> = left.map(|volume| format!("{} ({})", name(volume), self.why_left(volume))).collect();
        report.reason = match outcome {
            Outcome::Failed(why) => Some(format!("volumes left: {}; {why}", left.join(", "))),
            Outcome::Done if left.is_empty() => None,
            Outcome::Done => Some(format!("volumes left: {}", left.join(", "))),
        };
    }

    fn why_left(&self, volume: &Value) -> String {
        let said = self.narrator.last_word(volume);
        match text(volume, "/spec/persistentVolumeReclaimPolicy") {
            "Retain" => "its reclaim policy is Retain".to_owned(),
            _ => said.unwrap_or_else(|| phase(volume).to_owned()),
        }
    }
}

/// The claims that are not Bound, with what was said about them.
fn open(claims: &[ClaimResult]) -> String {
    let line = |claim: &ClaimResult| {
        let reason = claim.reason.as_deref().unwrap_or("nobody said why");
        format!("\n  {}/{} is {}: {reason}", claim.namespace, claim.name, claim.phase)
    };
    let lines: Vec<String> = claims.iter().filter(|claim| !claim.is_bound()).map(line).collect();
    lines.concat()
}

/// Resolves when the driver has done something.
async fn stepped(steps: &mut Option<(watch::Receiver<usize>, usize)>) {
    if let Some((steps, _)) = steps
        && steps.changed().await.is_ok()
    {
        return;
    }
    // There is no such driver, or it is gone, which other signs tell.
    std::future::pending::<()>().await;
}
