//! This node's instance: asks the driver once where it is, then tells whose turn each claim is.

use super::fixed;
use super::race::Races;
use super::turn::{Contestant, Pace, Standing, standing};
use crate::csi::Calls;
use crate::model::meta::MetaExt;
use crate::model::node::{CsiNode, Node};
use crate::model::{CallError, Claim, Class, Segments, Turn};
use crate::random::Random;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The settings of this instance.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `NODE_NAME`.
    pub node: String,
    /// Whether it takes unassigned claims.
    pub immediate: bool,
    /// How long it holds back before.
    pub pace: Pace,
}

/// The driver did not say where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the CSI driver did not tell about its node (NodeGetInfo), which --node-deployment needs; run the sidecar beside \
     a driver that serves its Node service, one on each node"
)]
pub struct NodeInfoFault(#[source] pub CallError);

/// This node's instance; clones share its races.
#[derive(Clone)]
pub struct Instance {
    settings: Arc<Settings>,
    segments: Arc<Segments>,
    races: Arc<Mutex<Races>>,
    random: Random,
}

impl Instance {
    /// Asks the driver about its node. What it says is not asked again until the next start (5.1 point 1).
    ///
    /// # Errors
    /// The call failed: without the answer nobody knows which volumes are this node's.
    pub async fn introduce(calls: &Calls, settings: Settings, random: Random) -> Result<Self, NodeInfoFault> {
        let info = calls.node_info().await.map_err(NodeInfoFault)?;
        let (settings, segments) = (Arc::new(settings), Arc::new(info.segments));
        Ok(Self { settings, segments, races: Arc::default(), random })
    }

    /// Name of the node.
    pub fn name(&self) -> &str {
        &self.settings.node
    }

    /// Where the node is, in the driver's words; may be empty.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The node as the topology rules read it.
    pub fn objects(&self, driver: &str) -> (Node, CsiNode) {
        (fixed::node(self.name(), &self.segments), fixed::csi_node(self.name(), driver, &self.segments))
    }

    /// Whose turn the claim is. `allowed` says whether the class's topologies let this node serve it.
    pub fn turn(
        &self,
        claim: &Claim,
        class: Option<&Class>,
        allowed: impl FnOnce(&Class) -> bool,
        now: Instant,
    ) -> Turn {
        let Settings { node, immediate, pace } = &*self.settings;
        let uid = claim.metadata.uid();
        match standing(claim, class, Contestant { node, immediate: *immediate }, allowed) {
            Standing::Ours => {
                self.races().over(uid);
                Turn::Ours
            }
            Standing::Others => {
                self.races().over(uid);
                Turn::Others
            }
            Standing::Open => self.races().turn(uid, *pace, || self.jitter(), now),
        }
    }

    /// Taking the claim was in vain; how long to hold back until the next try.
    pub fn try_later(&self, uid: &str, now: Instant) -> Duration {
        let jitter = self.jitter();
        self.races().again(uid, self.settings.pace, jitter, now)
    }

    fn jitter(&self) -> Duration {
        self.random.duration_below(self.settings.pace.base)
    }

    fn races(&self) -> MutexGuard<'_, Races> {
        self.races.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
