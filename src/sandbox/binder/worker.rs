//! Carries the binder's plans out against the API server of its own process.
//!
//! Promises: one object at a time, claims before volumes; a failed plan is tried again after 5 ms, doubling to 1000 s; a
//! failed operation waits 0.5 s, doubling to 122 s; every object is looked at again each 15 s
//! (cluster-volume-controllers.md A.2, A.4). No randomness, tokio time only.

use super::claim::sync_claim;
use super::objects::{child, claim_key, key, name, text, uid};
use super::plan::{Action, Objects, Plan, View, about_claim};
use super::{provision, reclaim, volume::sync_volume};
use crate::sandbox::direct::{Direct, Feed, Ground, News, Refused};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Source of the binder's events.
pub const COMPONENT: &str = "persistentvolume-controller";
const RESYNC: Duration = Duration::from_secs(15);
const RETRY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1000));
const OPERATION_RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(122));
const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";
const CLASSES: &str = "storageclasses";
const PODS: &str = "pods";

/// One piece of work; claims sort before volumes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Claim(String),
    Volume(String),
}

/// Binds until `stop`.
pub async fn run(ground: Ground, stop: CancellationToken) {
    // Classes and pods first: claims are decided by them.
    let mut feed = Feed::new(&ground.server, &[CLASSES, PODS, VOLUMES, CLAIMS]);
    let mut binder = Binder {
        direct: Direct::new(&ground, COMPONENT),
        view: View::default(),
        queue: VecDeque::new(),
        waiting: BTreeSet::new(),
        failures: BTreeMap::new(),
        operations: BTreeMap::new(),
    };
    let mut resync = Instant::now() + RESYNC;
    loop {
        for news in feed.news() {
            binder.hears(news);
        }
        if let Some(item) = binder.next(Instant::now()) {
            binder.work(&item);
            tokio::task::yield_now().await;
            continue;
        }
        let due = binder.waiting.first().map_or(resync, |(time, _)| resync.min(*time));
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = feed.wait() => {}
            () = sleep_until(due) => {}
        }
        if Instant::now() >= resync {
            resync = Instant::now() + RESYNC;
            binder.resync();
        }
    }
}

struct Binder {
    direct: Direct,
    view: View,
    queue: VecDeque<Item>,
    waiting: BTreeSet<(Instant, Item)>,
    failures: BTreeMap<Item, u32>,
    /// Failed operations: how often, and until when they are not tried again.
    operations: BTreeMap<String, (u32, Instant)>,
}

impl Binder {
    fn resync(&mut self) {
        let claims = self.view.claims.keys().cloned().map(Item::Claim);
        let items: Vec<Item> = claims.chain(self.view.volumes.keys().cloned().map(Item::Volume)).collect();
        for item in items {
            self.enqueue(item);
        }
    }

    fn enqueue(&mut self, item: Item) {
        if !self.queue.contains(&item) {
            self.queue.push_back(item);
        }
    }

    fn hears(&mut self, news: News) {
        match news {
            News::Relisted(plural) => self.view_of(plural).clear(),
            News::Gone(plural, object) => self.forgets(plural, &object),
            News::Changed(plural, object) => {
                let key = cache_key(plural, &object);
                if !self.learns(plural, &key, object) {
                    return;
                }
                match plural {
                    CLAIMS => self.enqueue(Item::Claim(key)),
                    VOLUMES => self.enqueue(Item::Volume(key)),
                    _ => {}
                }
            }
        }
    }

    /// An object is gone: the other side is looked at at once.
    fn forgets(&mut self, plural: &str, object: &Value) {
        self.view_of(plural).remove(&cache_key(plural, object));
        let volume = text(object, "/spec/volumeName");
        match plural {
            VOLUMES => claim_key(object).into_iter().for_each(|claim| self.enqueue(Item::Claim(claim))),
            CLAIMS if !volume.is_empty() => self.enqueue(Item::Volume(volume.to_owned())),
            _ => {}
        }
    }

    /// Keeps an object unless a newer version is held.
    fn learns(&mut self, plural: &str, key: &str, object: Arc<Value>) -> bool {
        let objects = self.view_of(plural);
        if objects.get(key).is_some_and(|held| version(held) > version(&object)) {
            return false;
        }
        objects.insert(key.to_owned(), object);
        true
    }

    fn view_of(&mut self, plural: &str) -> &mut Objects {
        match plural {
            VOLUMES => &mut self.view.volumes,
            CLAIMS => &mut self.view.claims,
            CLASSES => &mut self.view.classes,
            _ => &mut self.view.pods,
        }
    }

    fn next(&mut self, now: Instant) -> Option<Item> {
        while self.waiting.first().is_some_and(|(time, _)| *time <= now) {
            if let Some((_, item)) = self.waiting.pop_first() {
                self.enqueue(item);
            }
        }
        let claim = self.queue.iter().position(|item| matches!(item, Item::Claim(_)));
        self.queue.remove(claim.unwrap_or(0))
    }

    fn work(&mut self, item: &Item) {
        let plan = match item {
            Item::Claim(claim) => sync_claim(&self.view, claim),
            Item::Volume(volume) => sync_volume(&self.view, volume),
        };
        if self.carry_out(plan).is_ok() {
            self.failures.remove(item);
            return;
        }
        let failed = self.failures.entry(item.clone()).or_default();
        let delay = backoff(RETRY, *failed);
        *failed += 1;
        self.waiting.insert((Instant::now() + delay, item.clone()));
    }

    /// Does what the plan says up to the first failure.
    fn carry_out(&mut self, plan: Plan) -> Result<(), String> {
        // Later writes of one plan build on the versions that the earlier ones made.
        let mut versions = BTreeMap::new();
        for action in plan.actions {
            match action {
                Action::WriteVolume(object) => self.write(VOLUMES, Direct::write, object, &mut versions)?,
                Action::WriteVolumeStatus(object) => {
                    self.write(VOLUMES, Direct::write_status, object, &mut versions)?;
                }
                Action::WriteClaim(object) => self.write(CLAIMS, Direct::write, object, &mut versions)?,
                Action::WriteClaimStatus(object) => self.write(CLAIMS, Direct::write_status, object, &mut versions)?,
                Action::Tell(note) => self.direct.tell(&note.regarding, note.warning, note.reason, &note.message),
                Action::WakeClaim(claim) => self.enqueue(Item::Claim(claim)),
                Action::Provision(claim) => self.provision(&claim),
                Action::Delete(volume) => self.reclaim("delete", &volume, reclaim::delete),
                Action::Recycle(volume) => self.reclaim("recycle", &volume, reclaim::recycle),
            }
        }
        plan.error.map_or(Ok(()), Err)
    }

    fn write(
        &mut self,
        plural: &'static str,
        write: fn(&Direct, &str, Value) -> Result<Value, Refused>,
        mut object: Value,
        versions: &mut BTreeMap<(&'static str, String), Value>,
    ) -> Result<(), String> {
        let key = cache_key(plural, &object);
        let place = (plural, key.clone());
        if let (Some(version), Some(metadata)) = (versions.get(&place), child(&mut object, "metadata")) {
            metadata.insert("resourceVersion".to_owned(), version.clone());
        }
        let written = write(&self.direct, plural, object).map_err(|refusal| refusal.to_string())?;
        versions.insert(place, written.pointer("/metadata/resourceVersion").cloned().unwrap_or(json!("")));
        self.learns(plural, &key, Arc::new(written));
        Ok(())
    }

    fn provision(&mut self, claim: &str) {
        let Some(held) = self.view.claims.get(claim).cloned() else { return };
        let name = format!("provision-{}[{}]", key(&held), uid(&held));
        self.operate(&name, |binder| {
            let plan = provision::provision(&binder.view, claim);
            binder.carry_out(plan).inspect_err(|error| {
                let message = format!("Error saving claim: {error}");
                binder.direct.tell(&about_claim(&held), true, "ProvisioningFailed", &message);
            })
        });
    }

    fn reclaim(&mut self, what: &str, volume: &str, decide: fn(&View, &str) -> Plan) {
        let Some(held) = self.view.volumes.get(volume) else { return };
        let name = format!("{what}-{volume}[{}]", uid(held));
        self.operate(&name, |binder| {
            let plan = decide(&binder.view, volume);
            binder.carry_out(plan)
        });
    }

    /// Runs an operation unless it failed a short while ago.
    fn operate(&mut self, name: &str, operation: impl FnOnce(&mut Self) -> Result<(), String>) {
        let now = Instant::now();
        if self.operations.get(name).is_some_and(|(_, until)| *until > now) {
            return;
        }
        if operation(self).is_ok() {
            self.operations.remove(name);
            return;
        }
        let (failed, until) = self.operations.entry(name.to_owned()).or_insert((0, now));
        *until = now + backoff(OPERATION_RETRY, *failed);
        *failed += 1;
    }
}

fn cache_key(plural: &str, object: &Value) -> String {
    match plural {
        CLAIMS | PODS => key(object),
        _ => name(object).to_owned(),
    }
}

fn version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or(0)
}

/// The base, doubled for each failure so far, up to the limit.
fn backoff((base, limit): (Duration, Duration), failures: u32) -> Duration {
    base.saturating_mul(2_u32.saturating_pow(failures)).min(limit)
}
