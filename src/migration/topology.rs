//! Zones and regions of a volume object, between the Kubernetes keys and the key of a driver (migration.md 11.1 to 11.3).
//!
//! Promises that existing labels are never overwritten and labels are never changed on the way to CSI. An error on the
//! way back may come after earlier terms were changed, so the working copy is to be thrown away then.

use super::affinity;
use super::error::TranslateError;
use super::object::VolumeObject;
use super::region::RegionRule;
use super::tables::{BETA_REGION, BETA_ZONE, STABLE_REGION, STABLE_ZONE, ZONE_SEPARATOR};
use crate::model::class::TopologyTerm;
use std::collections::BTreeSet;

/// Which spelling of the Kubernetes keys a volume object uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// `topology.kubernetes.io`
    Stable,
    /// `failure-domain.beta.kubernetes.io`
    Beta,
}

impl Generation {
    /// The generation in use. Zone keys alone decide, the affinity before the labels (migration.md 11.1).
    pub fn of(pv: &VolumeObject) -> Self {
        let in_affinity = |key| affinity::has_key(pv, key);
        let in_labels = |key| pv.label(key).is_some();
        let only_beta_label = in_labels(BETA_ZONE) && !in_labels(STABLE_ZONE);
        let is_beta = !in_affinity(STABLE_ZONE) && (in_affinity(BETA_ZONE) || only_beta_label);
        if is_beta { Self::Beta } else { Self::Stable }
    }

    /// Zone key of this generation.
    pub fn zone(self) -> &'static str {
        match self {
            Self::Stable => STABLE_ZONE,
            Self::Beta => BETA_ZONE,
        }
    }

    /// Region key of this generation.
    pub fn region(self) -> &'static str {
        match self {
            Self::Stable => STABLE_REGION,
            Self::Beta => BETA_REGION,
        }
    }
}

/// Appends `zone_key In zones` to every term: zones trimmed, without blanks, sorted, distinct. Fails when none is left.
pub fn append_zones(pv: &mut VolumeObject, zone_key: &str, zones: &[&str]) -> Result<(), TranslateError> {
    let zones: BTreeSet<&str> = zones.iter().map(|zone| zone.trim()).filter(|zone| !zone.is_empty()).collect();
    if zones.is_empty() {
        return Err(TranslateError::ZonesMissing { object: pv.title().to_owned() });
    }
    let zones: Vec<String> = zones.into_iter().map(str::to_owned).collect();
    affinity::append(pv, zone_key, &zones);
    Ok(())
}

/// Appends the zones of a label. A blank label says nothing about zones and therefore adds nothing.
pub(super) fn append_label(pv: &mut VolumeObject, key: &str, zones: &[&str]) -> Result<(), TranslateError> {
    if zones.iter().all(|zone| zone.trim().is_empty()) { Ok(()) } else { append_zones(pv, key, zones) }
}

/// Kubernetes keys to the driver's key (migration.md 11.2). Region labels never become affinity.
pub fn to_csi(pv: &mut VolumeObject, zone_key: &str) -> Result<(), TranslateError> {
    let generation = Generation::of(pv);
    if !affinity::values_of(pv, generation.zone()).is_empty() {
        affinity::rename(pv, generation.zone(), zone_key);
    } else if let Some(label) = pv.label(generation.zone()).map(str::to_owned) {
        append_label(pv, zone_key, &label.split(ZONE_SEPARATOR).collect::<Vec<_>>())?;
    }
    match generation {
        Generation::Stable => {}
        Generation::Beta => affinity::rename(pv, BETA_REGION, STABLE_REGION),
    }
    Ok(())
}

/// The driver's key to Kubernetes keys and labels (migration.md 11.3). Without a rule no region is derived.
pub fn to_in_tree(pv: &mut VolumeObject, zone_key: &str, rule: Option<RegionRule>) -> Result<(), TranslateError> {
    let generation = Generation::of(pv);
    affinity::rename(pv, zone_key, generation.zone());
    if let Some(rule) = rule {
        add_regions(pv, generation, rule)?;
    }
    let zones: Vec<String> = affinity::values_of(pv, generation.zone()).into_iter().collect();
    if !zones.is_empty() {
        pv.add_label(generation.zone(), &zones.join(ZONE_SEPARATOR));
    }
    Ok(())
}

/// Gives every term without a region that of its zones, then the object the label if all terms share one region.
fn add_regions(pv: &mut VolumeObject, generation: Generation, rule: RegionRule) -> Result<(), TranslateError> {
    let title = pv.title().to_owned();
    for term in pv.terms_mut().into_iter().flatten() {
        if affinity::expressions(term).any(|expression| affinity::is_about(expression, generation.region())) {
            continue;
        }
        let about_zone = affinity::expressions(term).filter(|one| affinity::is_about(one, generation.zone()));
        let region = rule.region_of(about_zone.flat_map(affinity::values), &title)?;
        affinity::append_to_term(term, generation.region(), &[region]);
    }
    let mut regions = affinity::values_of(pv, generation.region()).into_iter();
    if let (Some(region), None) = (regions.next(), regions.next()) {
        pv.add_label(generation.region(), &region);
    }
    Ok(())
}

/// Allowed topologies of a class with both Kubernetes zone keys replaced by the driver's key; all else stays, equal keys
/// are not merged (migration.md 8).
pub fn allowed_topologies(terms: &[TopologyTerm], zone_key: &str) -> Vec<TopologyTerm> {
    let mut terms = terms.to_vec();
    for expression in terms.iter_mut().flat_map(|term| &mut term.match_label_expressions) {
        if expression.key == STABLE_ZONE || expression.key == BETA_ZONE {
            zone_key.clone_into(&mut expression.key);
        }
    }
    terms
}
