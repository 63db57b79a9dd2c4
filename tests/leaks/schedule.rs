//! One schedule: a claim, a driver in some mood, and one incident.

use crate::holes::Facts;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::driver::script::{Fault, Rule};
use csi_provisioner::sandbox::simulate::cable::{Incident, Side};
use csi_provisioner::sandbox::simulate::check::Finding;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, VOLUMES, text};
use csi_provisioner::sandbox::simulate::seat::{Outcome, Running};
use csi_provisioner::sandbox::simulate::socket::Break;
use csi_provisioner::sandbox::simulate::{Options, World};
use std::time::Duration;
use tokio::time::sleep;

/// `--durable-intent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    Off,
    Uncertain,
    Always,
}

/// What the driver (or the API server, when the volume is to be saved) does at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Answers at once.
    Prompt,
    /// Finishes long after the caller gave up.
    Late,
    /// Makes the volume and answers that it is not available.
    Unclear,
    /// Refuses once.
    Refusing,
    /// Its connection breaks after it made the volume.
    Breaking,
    /// Has forgotten, at the restart, every volume that was not saved.
    Forgetful,
    /// The volume object is refused for good, and the volume cannot be deleted for a while.
    Unwanted,
}

pub const MOODS: [Mood; 7] =
    [Mood::Prompt, Mood::Late, Mood::Unclear, Mood::Refusing, Mood::Breaking, Mood::Forgetful, Mood::Unwanted];

#[derive(Clone, Debug)]
pub struct Schedule {
    pub intent: Intent,
    pub mood: Mood,
    pub incident: Option<Incident>,
    /// The claim is deleted as soon as the incident has ended the sidecar, before another one starts.
    pub claim_deleted: bool,
}

/// How a schedule went.
pub struct Verdict {
    pub findings: Vec<Finding>,
    pub facts: Facts,
    /// Points and requests of the first sidecar.
    pub counted: (u64, u64),
    pub trace: String,
}

pub fn flags(intent: Intent) -> Vec<String> {
    let intent = match intent {
        Intent::Off => "off",
        Intent::Uncertain => "uncertain",
        Intent::Always => "always",
    };
    let flags = ["--kube-api-qps=1000", "--kube-api-burst=1000", "--durable-intent-namespace=kube-system"];
    flags.iter().map(|flag| (*flag).to_owned()).chain([format!("--durable-intent={intent}")]).collect()
}

/// A runtime whose time jumps.
pub fn in_paused_time<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("builds");
    runtime.block_on(work)
}

impl Schedule {
    pub fn play(&self) -> Verdict {
        in_paused_time(self.acts())
    }

    async fn acts(&self) -> Verdict {
        let world =
            World::new(Options { seed: 3, driver: DriverOptions::default(), flags: flags(self.intent), alone: false });
        world.add_class("fast");
        self.mood.sets_in(&world);
        let first = world.start_with(self.incident.into_iter().collect());
        world.add_claim("data", "fast");
        world.until(secs(60), |world| first.outcome().is_some() || world.is_bound("data")).await;
        if first.outcome().is_none() {
            // The rest of the life of the claim, for incidents that come later.
            world.remove(CLAIMS, "data");
            world.until(secs(60), |world| first.outcome().is_some() || at_end(world)).await;
        }
        let facts = Facts::of(&world, first.outcome().as_ref(), self.claim_deleted || world.claim("data").is_none());
        let counted = first.counted();
        let findings = self.aftermath(&world, first).await;
        Verdict { findings, facts, counted, trace: world.trace.text() }
    }

    async fn aftermath(&self, world: &World, first: Running) -> Vec<Finding> {
        let _living = if first.outcome().is_some() {
            if self.claim_deleted {
                world.remove(CLAIMS, "data");
            }
            if self.mood == Mood::Forgetful {
                forget_unsaved(world);
            }
            sleep(secs(2)).await;
            world.start()
        } else {
            first
        };
        let mut findings = rest(world).await;
        world.remove(CLAIMS, "data");
        findings.extend(rest(world).await);
        if findings.is_empty() && !at_end(world) {
            findings.push(Finding::Stuck("something is left after the claim is gone".to_owned()));
        }
        findings
    }
}

impl Mood {
    fn sets_in(self, world: &World) {
        let script = |method, times, fault| {
            world.driver.script().add(Rule { method, subject: String::new(), times, fault });
        };
        match self {
            Self::Prompt | Self::Forgetful => {}
            Self::Late => script("CreateVolume", 1, Fault::Slow(secs(25))),
            Self::Unclear => script("CreateVolume", 1, Fault::FailAfter(14, "not now".to_owned())),
            Self::Refusing => script("CreateVolume", 1, Fault::FailBefore(13, "no".to_owned())),
            Self::Breaking => {
                let side = Side::After;
                world.socket.break_next(Break { method: "CreateVolume", subject: String::new(), times: 1, side });
            }
            Self::Unwanted => {
                let effect = Effect::Refuse { code: 422, retry_after_secs: None };
                world.server.faults().add_times(Match::any().verb("create").resource(VOLUMES), effect, 1);
                script("DeleteVolume", 3, Fault::FailBefore(14, "not now".to_owned()));
            }
        }
    }
}

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Neither claim nor volume object nor volume is left.
pub fn at_end(world: &World) -> bool {
    world.all(CLAIMS).is_empty() && world.all(VOLUMES).is_empty() && world.volumes_in_backend() == 0
}

/// What is still wrong when late calls have ended and every back-off had its turn.
pub async fn rest(world: &World) -> Vec<Finding> {
    sleep(secs(45)).await;
    world.until(secs(15 * 60), |world| world.findings().is_empty()).await;
    world.findings()
}

fn forget_unsaved(world: &World) {
    let saved: Vec<String> =
        world.all(VOLUMES).iter().map(|volume| text(volume, "/spec/csi/volumeHandle").to_owned()).collect();
    let mut backend = world.driver.backend();
    let unsaved: Vec<String> = backend.volumes().keys().filter(|id| !saved.contains(id)).cloned().collect();
    for id in &unsaved {
        backend.lose(id);
    }
}

/// Whether an ending was SIGKILL.
pub fn is_killed(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Killed))
}
