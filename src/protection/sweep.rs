//! Finds snapshots whose protection was left behind, for instance by a crash (provisioning.md 10.2).
//!
//! Promises: without a complete list of what is in use nothing is swept (weak point W10 a of the reference).

use super::{SourceKey, snapshot};
use crate::model::driver::Capabilities;
use crate::model::meta::MetaExt;
use crate::model::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::time::Duration;

/// Whether the sweep runs at all. `interval` is `--snapshot-orphan-sweep-interval`, absent when it is 0 or negative;
/// `api_listed` = discovery lists `VolumeSnapshot` now.
pub fn is_enabled(interval: Option<Duration>, api_listed: bool, can: Capabilities) -> bool {
    interval.is_some_and(|interval| !interval.is_zero()) && api_listed && can.create_delete_snapshot
}

/// Whether the snapshot's protection was left behind. `used` = every snapshot that an unfinished restore or unresolved
/// creation needs; `None` = it is not known completely.
///
/// Asked again right before the write, so that a restore that began meanwhile keeps its protection (W10 c).
pub fn is_orphan(object: &Snapshot, used: Option<&BTreeSet<SourceKey>>) -> bool {
    let key = SourceKey::new(object.metadata.namespace(), object.metadata.name());
    used.is_some_and(|used| snapshot::may_release(object, usize::from(used.contains(&key))))
}
