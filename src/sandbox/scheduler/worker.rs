//! Acts for the scheduler stand-in, in the process of the API server.
//!
//! A claim whose node was taken back (the sidecar does that when a volume cannot be made there) gets it again after a
//! second, twice as late each time up to 30 s, so that a failing driver is not asked without pause.

use super::{Step, next_step, waits_for_node};
use crate::sandbox::binder::names::SELECTED_NODE;
use crate::sandbox::binder::objects::{annotate, key, name, text, uid};
use crate::sandbox::binder::plan::{Objects, reference};
use crate::sandbox::direct::{Direct, Feed, Ground, Refused};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

const CLAIMS: &str = "persistentvolumeclaims";
const CLASSES: &str = "storageclasses";
const PODS: &str = "pods";
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// When nothing is due, it is looked again after this time all the same.
const IDLE: Duration = Duration::from_secs(15);

/// How the stand-in works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The one node.
    pub node: String,
    /// Late-binding claims get the node without a pod.
    pub select_without_pod: bool,
}

/// Schedules until `stop`.
pub async fn run(ground: Ground, settings: Settings, stop: CancellationToken) {
    let mut feed = Feed::new(&ground.server, &[PODS, CLAIMS, CLASSES]);
    let mut scheduler =
        Scheduler { direct: Direct::new(&ground, "default-scheduler"), settings, chosen: BTreeMap::new() };
    loop {
        // What happens during the turn is news for the next one.
        let _seen = feed.news();
        let due = scheduler.turn(Instant::now());
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = feed.wait() => {}
            () = sleep_until(due) => {}
        }
    }
}

struct Scheduler {
    direct: Direct,
    settings: Settings,
    /// Claim UID to how often it got the node, and when it may get it again.
    chosen: BTreeMap<String, (u32, Instant)>,
}

impl Scheduler {
    /// Looks at every pod once; returns when to look again at the latest.
    fn turn(&mut self, now: Instant) -> Instant {
        let shared = |objects: Vec<Value>, key: fn(&Value) -> String| -> Objects {
            objects.into_iter().map(|object| (key(&object), Arc::new(object))).collect()
        };
        let claims = shared(self.direct.list(CLAIMS), key);
        let classes = shared(self.direct.list(CLASSES), |class| name(class).to_owned());
        let mut due = now + IDLE;
        for pod in self.direct.list(PODS) {
            // A refused write means that the object changed: the change brings the next turn.
            let _refused = match next_step(&pod, &claims, &classes) {
                Step::Wait => Ok(()),
                Step::SelectNode(waiting) => {
                    due =
                        due.min(self.select(waiting.iter().filter_map(|key| claims.get(key).map(AsRef::as_ref)), now));
                    Ok(())
                }
                Step::Place => self.place(&pod),
                Step::Run => self.set_running(&pod),
                Step::End => self.direct.delete(PODS, &pod, Some(0)).map(drop),
            };
        }
        if self.settings.select_without_pod {
            let waiting = claims.values().map(AsRef::as_ref).filter(|claim| waits_for_node(claim, &classes));
            due = due.min(self.select(waiting, now));
        }
        due
    }

    /// Gives claims the node; returns when the next one may get it.
    fn select<'a>(&mut self, claims: impl Iterator<Item = &'a Value>, now: Instant) -> Instant {
        let mut next = now + IDLE;
        for claim in claims {
            let (times, not_before) = self.chosen.get(uid(claim)).copied().unwrap_or((0, now));
            if not_before > now {
                next = next.min(not_before);
                continue;
            }
            let mut chosen = claim.clone();
            annotate(&mut chosen, SELECTED_NODE, &self.settings.node);
            if self.direct.write(CLAIMS, chosen).is_ok() {
                let delay = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(times)).min(LONGEST_DELAY);
                self.chosen.insert(uid(claim).to_owned(), (times + 1, now + delay));
            }
        }
        next
    }

    fn place(&self, pod: &Value) -> Result<(), Refused> {
        let mut placed = pod.clone();
        if let Some(spec) = placed.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("nodeName".to_owned(), json!(self.settings.node));
        }
        self.direct.write(PODS, placed)?;
        let message = format!("Successfully assigned {} to {}", key(pod), self.settings.node);
        self.direct.tell(&reference("Pod", pod), false, "Scheduled", &message);
        Ok(())
    }

    fn set_running(&self, pod: &Value) -> Result<(), Refused> {
        let mut running = pod.clone();
        let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
        let statuses = containers.into_iter().flatten().map(|container| {
            json!({
                "name": text(container, "/name"), "image": text(container, "/image"), "imageID": "",
                "ready": true, "started": true, "restartCount": 0, "state": {"running": {}},
            })
        });
        let status = json!({
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": statuses.collect::<Vec<_>>(),
        });
        if let Some(object) = running.as_object_mut() {
            object.insert("status".to_owned(), status);
        }
        self.direct.write_status(PODS, running).map(drop)
    }
}
