//! Which instance works on a claim (provisioning.md 8.1 and 8.2).
//!
//! Promises:
//! - a claim that names a node belongs to that node's instance alone, whatever its class says;
//! - an unassigned claim is nobody's unless its class binds immediately, this node may serve it and taking part is
//!   switched on; a class that is not known (yet) is nobody's business either, and nobody tells (field fault O05);
//! - only the stable annotation counts.

use crate::model::claim::SELECTED_NODE;
use crate::model::meta::MetaExt;
use crate::model::{Claim, Class};
use std::time::Duration;

/// Who may work on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The instance on this node.
    Ours,
    /// Another instance, or nobody.
    Others,
    /// Whoever is first to write its node on the claim.
    Open,
}

/// This node as a competitor.
#[derive(Clone, Copy, Debug)]
pub struct Contestant<'a> {
    /// Name of the node.
    pub node: &'a str,
    /// Whether it takes unassigned claims (`--node-deployment-immediate-binding`).
    pub immediate: bool,
}

/// Who may work on the claim. `allowed` says whether the class's topologies let this node serve it; it is asked only
/// if that matters.
pub fn standing(
    claim: &Claim,
    class: Option<&Class>,
    contestant: Contestant<'_>,
    allowed: impl FnOnce(&Class) -> bool,
) -> Standing {
    match claim.metadata.annotation(SELECTED_NODE).unwrap_or_default() {
        "" => {}
        node if node == contestant.node => return Standing::Ours,
        _ => return Standing::Others,
    }
    let binds_at_once = |class: &&Class| class.volume_binding_mode.as_deref() == Some("Immediate");
    match class.filter(binds_at_once) {
        Some(class) if contestant.immediate && allowed(class) => Standing::Open,
        Some(_) | None => Standing::Others,
    }
}

/// How long an instance holds back before it takes an unassigned claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// `--node-deployment-base-delay`: the first delay, and the width of the jitter.
    pub base: Duration,
    /// `--node-deployment-max-delay`.
    pub max: Duration,
}

impl Pace {
    /// The delay after `tries` tries in vain: the base doubled for each, capped, less the jitter, which is drawn from
    /// zero to the base. So the instances spread, and a lost race is entered again later than the first.
    pub fn delay(self, tries: u32, jitter: Duration) -> Duration {
        let doubled = self.base.saturating_mul(2_u32.saturating_pow(tries));
        doubled.min(self.max).saturating_sub(jitter.min(self.base))
    }
}

#[cfg(test)]
mod tests {
    use super::{Contestant, Pace, Standing, standing};
    use crate::model::{Claim, Class};
    use serde_json::json;
    use std::time::Duration;

    fn claim(node: Option<&str>) -> Claim {
        let annotations = node.map(|node| json!({ "volume.kubernetes.io/selected-node": node }));
        serde_json::from_value(json!({ "metadata": { "annotations": annotations } })).expect("a claim")
    }

    fn class(mode: &str) -> Class {
        serde_json::from_value(json!({ "volumeBindingMode": mode })).expect("a class")
    }

    fn on_n1(claim: &Claim, class: Option<&Class>, immediate: bool, allowed: bool) -> Standing {
        standing(claim, class, Contestant { node: "n1", immediate }, |_| allowed)
    }

    #[test]
    fn claim_with_a_node_is_that_nodes() {
        for class in [None, Some(&class("Immediate")), Some(&class("WaitForFirstConsumer"))] {
            assert_eq!(on_n1(&claim(Some("n1")), class, false, false), Standing::Ours);
            assert_eq!(on_n1(&claim(Some("n2")), class, true, true), Standing::Others);
        }
    }

    #[test]
    fn unassigned_claim_is_open_only_for_immediate_binding_where_this_node_may_serve() {
        let open = class("Immediate");
        assert_eq!(on_n1(&claim(None), Some(&open), true, true), Standing::Open);
        assert_eq!(on_n1(&claim(Some("")), Some(&open), true, true), Standing::Open);
        assert_eq!(on_n1(&claim(None), Some(&open), true, false), Standing::Others);
        assert_eq!(on_n1(&claim(None), Some(&open), false, true), Standing::Others);
        assert_eq!(on_n1(&claim(None), Some(&class("WaitForFirstConsumer")), true, true), Standing::Others);
        assert_eq!(on_n1(&claim(None), Some(&Class::default()), true, true), Standing::Others);
        assert_eq!(on_n1(&claim(None), None, true, true), Standing::Others);
    }

    #[test]
    fn delay_doubles_up_to_its_cap_and_spreads_over_the_base() {
        let secs = Duration::from_secs;
        let pace = Pace { base: secs(20), max: secs(60) };
        let spans: Vec<_> = (0..4).map(|tries| (pace.delay(tries, secs(20)), pace.delay(tries, secs(0)))).collect();
        let wanted = [(0, 20), (20, 40), (40, 60), (40, 60)].map(|(from, to)| (secs(from), secs(to)));
        assert_eq!(spans, wanted);
        assert_eq!(pace.delay(u32::MAX, secs(0)), secs(60));
    }

    #[test]
    fn cap_below_the_base_never_gives_a_negative_delay() {
        let pace = Pace { base: Duration::from_secs(20), max: Duration::from_secs(5) };
        assert_eq!(pace.delay(0, Duration::from_secs(12)), Duration::ZERO);
    }
}
