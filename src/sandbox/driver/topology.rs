//! Where a volume is reachable from (csi-rules.md 4.3, one place per volume).

use crate::csi::proto::v1::{Topology, TopologyRequirement};
use std::collections::BTreeMap;
use tonic::Status;

/// The first preferred place, else the first requisite one, else the driver's own.
pub(super) fn choose(
    wanted: Option<&TopologyRequirement>,
    own: &BTreeMap<String, String>,
) -> Result<Vec<Topology>, Status> {
    if own.is_empty() {
        return Ok(Vec::new());
    }
    let Some(wanted) = wanted else { return Ok(vec![Topology { segments: own.clone() }]) };
    let place = wanted.preferred.first().or(wanted.requisite.first());
    let place = place.ok_or_else(|| {
        Status::invalid_argument("accessibility_requirements needs at least one requisite or preferred topology")
    })?;
    if place.segments.is_empty() {
        return Err(Status::invalid_argument("a topology of accessibility_requirements has no segments"));
    }
    Ok(vec![place.clone()])
}

/// Whether a volume at `places` satisfies a requirement.
pub(super) fn satisfies(places: &[Topology], wanted: Option<&TopologyRequirement>) -> bool {
    match wanted {
        Some(wanted) if !places.is_empty() && !wanted.requisite.is_empty() => {
            places.iter().any(|place| wanted.requisite.contains(place))
        }
        _ => true,
    }
}
