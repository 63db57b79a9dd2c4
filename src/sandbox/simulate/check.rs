//! What must hold in a world that has come to rest: nothing leaked, doubled, lost or stuck.
//!
//! It looks at the API server's objects and the driver's volumes only, never into a sidecar.

use super::World;
use super::calls::{Called, End};
use super::objects::{CLAIMS, VOLUMES, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Label of the records of open creations.
const RECORD_LABEL: &str = "csi-provisioner/intent-of";

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A volume in the backend that nothing in the cluster speaks of.
    Leaked {
        /// Volume id.
        id: String,
        /// Name of the request that made it.
        name: String,
    },
    /// Two volumes in the backend for one claim, or two volume objects for one volume.
    Doubled(String),
    /// A volume object without its volume.
    Lost(String),
    /// A claim or volume object that does not get on.
    Stuck(String),
    /// A rule about calls was broken.
    Call(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaked { id, name } => write!(to, "leaked: volume {id} of request {name}"),
            Self::Doubled(what) => write!(to, "doubled: {what}"),
            Self::Lost(what) => write!(to, "lost: {what}"),
            Self::Stuck(what) => write!(to, "stuck: {what}"),
            Self::Call(what) => write!(to, "call: {what}"),
        }
    }
}

impl World {
    /// Everything that is wrong with this world, taken as one that should be at rest.
    pub fn findings(&self) -> Vec<Finding> {
        let (claims, volumes) = (self.all(CLAIMS), self.all(VOLUMES));
        let mut found = self.storage_findings(&volumes);
        found.extend(claims.iter().filter_map(|claim| claim_finding(claim, &volumes)));
        found.extend(volumes.iter().filter_map(|volume| volume_finding(volume, &claims)));
        found.extend(self.record_findings());
        found.extend(self.call_findings());
        found
    }

    fn storage_findings(&self, volumes: &[Value]) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut of_handle: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for volume in volumes.iter().filter(|volume| text(volume, "/spec/csi/driver") == self.driver.name()) {
            let handle = text(volume, "/spec/csi/volumeHandle");
            of_handle.entry(handle).or_default().push(text(volume, "/metadata/name"));
        }
        let backend = self.driver.backend();
        let mut of_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (id, stored) in backend.volumes() {
            of_name.entry(&stored.name).or_default().push(id);
            if !of_handle.contains_key(id.as_str()) {
                found.push(Finding::Leaked { id: id.clone(), name: stored.name.clone() });
            }
        }
        let many = |(name, ids): (&&str, &Vec<&str>)| {
            (ids.len() > 1).then(|| Finding::Doubled(format!("{name}: {}", ids.join(", "))))
        };
        found.extend(of_name.iter().filter_map(many));
        found.extend(of_handle.iter().filter_map(many));
        let lost = of_handle.iter().filter(|(handle, _)| !backend.volumes().contains_key(**handle));
        found.extend(lost.map(|(handle, names)| Finding::Lost(format!("{} behind {}", handle, names.join(", ")))));
        found
    }

    fn record_findings(&self) -> Vec<Finding> {
        let records = self.all("configmaps").into_iter().filter(|map| {
            map.pointer("/metadata/labels").and_then(Value::as_object).is_some_and(|all| all.contains_key(RECORD_LABEL))
        });
        records
            .map(|map| Finding::Stuck(format!("record {} of an ended creation", text(&map, "/metadata/name"))))
            .collect()
    }

    /// One `DeleteVolume` that succeeds per volume object and sidecar; never two calls about one thing at once.
    fn call_findings(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = self.calls.overlaps().into_iter().map(Finding::Call).collect();
        let mut deleted: BTreeMap<(String, String), usize> = BTreeMap::new();
        for Called { who, subject, end, .. } in self.calls.of("DeleteVolume") {
            if matches!(end, Some((_, End::Code(0)))) {
                *deleted.entry((who, subject)).or_default() += 1;
            }
        }
        let twice = deleted.into_iter().filter(|((_, id), times)| *times > self.objects_ever(id).max(1));
        found.extend(twice.map(|((who, id), times)| Finding::Call(format!("{who} deleted {id} {times} times"))));
        found
    }
}

fn claim_finding(claim: &Value, volumes: &[Value]) -> Option<Finding> {
    let name = text(claim, "/metadata/name");
    let uid = text(claim, "/metadata/uid");
    if !text(claim, "/metadata/deletionTimestamp").is_empty() {
        return Some(Finding::Stuck(format!("claim {name} does not go away")));
    }
    if text(claim, "/status/phase") != "Bound" {
        return Some(Finding::Stuck(format!("claim {name} is {}", text(claim, "/status/phase"))));
    }
    let ours: Vec<&str> = volumes
        .iter()
        .filter(|volume| text(volume, "/spec/claimRef/uid") == uid)
        .map(|volume| text(volume, "/metadata/name"))
        .collect();
    match ours.as_slice() {
        [one] if *one == text(claim, "/spec/volumeName") => None,
        _ => Some(Finding::Doubled(format!("claim {name} has the volumes {ours:?}"))),
    }
}

fn volume_finding(volume: &Value, claims: &[Value]) -> Option<Finding> {
    let name = text(volume, "/metadata/name");
    if !text(volume, "/metadata/deletionTimestamp").is_empty() {
        return Some(Finding::Stuck(format!("volume object {name} does not go away")));
    }
    let owner = text(volume, "/spec/claimRef/uid");
    let has_claim = claims.iter().any(|claim| text(claim, "/metadata/uid") == owner);
    if !has_claim && text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete" {
        let phase = text(volume, "/status/phase");
        return Some(Finding::Stuck(format!("volume object {name} is {phase} and its claim is gone")));
    }
    None
}
