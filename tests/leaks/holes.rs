//! The holes that are known to remain, each with its reason. A finding outside of them fails the hunt, and so does a
//! hole that no schedule falls into any more.

use crate::schedule::{Intent, is_killed};
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::objects::VOLUMES;
use csi_provisioner::sandbox::simulate::seat::Outcome;

/// What was so when the first sidecar ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one flag per fact")]
pub struct Facts {
    /// It was killed.
    pub killed: bool,
    /// It ended at all.
    pub ended: bool,
    /// The driver had been asked for a volume whose object did not exist.
    pub creation_open: bool,
    /// A record of it existed.
    pub recorded: bool,
    /// The claim was gone before the next one started.
    pub claim_deleted: bool,
}

impl Facts {
    pub fn of(world: &World, outcome: Option<&Outcome>, claim_deleted: bool) -> Self {
        let asked = world.calls.of("CreateVolume");
        Self {
            killed: is_killed(outcome),
            ended: outcome.is_some(),
            creation_open: !asked.is_empty() && world.all(VOLUMES).is_empty(),
            recorded: world.all("configmaps").iter().any(|map| map.pointer("/data/attempt").is_some()),
            claim_deleted,
        }
    }
}

/// A known way to leak a volume.
pub struct Hole {
    pub intent: Intent,
    pub reason: &'static str,
    pub is: fn(Facts) -> bool,
}

pub const HOLES: [Hole; 3] = [
    Hole {
        intent: Intent::Off,
        reason: "SIGKILL while a volume exists or may appear whose object is not saved, and the claim is deleted before \
                 the next start: what was asked is known to nobody (external-provisioner#486; the Go sidecar has it too)",
        is: |facts| facts.killed && facts.creation_open && facts.claim_deleted,
    },
    Hole {
        intent: Intent::Off,
        reason: "SIGTERM while the driver has not settled what was asked within the time for running calls, or an unusable \
                 volume is not deleted yet, and the claim is deleted before the next start (the Go sidecar does not wait \
                 at all)",
        is: |facts| facts.ended && !facts.killed && facts.creation_open && facts.claim_deleted,
    },
    Hole {
        intent: Intent::Uncertain,
        reason: "SIGKILL before an open answer was recorded, and the claim is deleted before the next start; \
                 --durable-intent=always records before it asks",
        is: |facts| facts.killed && facts.creation_open && !facts.recorded && facts.claim_deleted,
    },
];

/// Number of the hole that explains a finding.
pub fn hole_of(intent: Intent, facts: Facts) -> Option<usize> {
    HOLES.iter().position(|hole| hole.intent == intent && (hole.is)(facts))
}
