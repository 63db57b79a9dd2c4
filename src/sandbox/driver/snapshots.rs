//! Snapshots and groups of them (csi-rules.md 8, 9).

use super::backend::{Backend, StoredSnapshot};
use super::topology;
use crate::csi::proto::v1::{
    CreateSnapshotRequest, CreateVolumeGroupSnapshotRequest, ListSnapshotsRequest, Snapshot, VolumeGroupSnapshot,
};
use prost_types::Timestamp;
use tonic::Status;

/// A group of snapshots cut at one point in time.
#[derive(Clone, Debug)]
pub struct StoredGroup {
    /// Name of the request that made it.
    pub name: String,
    /// Source volumes, in the order of the request.
    pub sources: Vec<String>,
    /// As returned to the caller.
    pub group: VolumeGroupSnapshot,
}

impl Backend {
    /// `CreateSnapshot`: by name first, then cut (csi-rules.md 8).
    pub fn create_snapshot(&mut self, request: &CreateSnapshotRequest) -> Result<Snapshot, Status> {
        super::required(&request.name, "name")?;
        super::required(&request.source_volume_id, "source_volume_id")?;
        if let Some(had) = self.snapshots.values().find(|stored| stored.name == request.name) {
            return if had.snapshot.source_volume_id == request.source_volume_id {
                Ok(had.snapshot.clone())
            } else {
                Err(Status::already_exists(format!("snapshot {} is of another volume", request.name)))
            };
        }
        let size = self.existing(&request.source_volume_id)?.volume.capacity_bytes;
        // Snapshots here are usable from everywhere, so that any requirement is met; a malformed one is still refused.
        topology::choose(request.accessibility_requirements.as_ref(), &self.own_place)?;
        Ok(self.cut(&request.name, &request.source_volume_id, size, String::new()))
    }

    fn cut(&mut self, name: &str, source: &str, size_bytes: i64, group_snapshot_id: String) -> Snapshot {
        let snapshot = Snapshot {
            size_bytes,
            snapshot_id: self.fresh_id("snap"),
            source_volume_id: source.to_owned(),
            // A fixed point after the epoch: an unset time would count as missing, and a clock would not replay.
            creation_time: Some(Timestamp { seconds: 1, nanos: 0 }),
            ready_to_use: true,
            group_snapshot_id,
            accessible_topology: Vec::new(),
        };
        self.snapshots
            .insert(snapshot.snapshot_id.clone(), StoredSnapshot { snapshot: snapshot.clone(), name: name.to_owned() });
        snapshot
    }

    pub(super) fn delete_snapshot(&mut self, id: &str) -> Result<(), Status> {
        super::required(id, "snapshot_id")?;
        match self.snapshots.get(id) {
            Some(stored) if !stored.snapshot.group_snapshot_id.is_empty() => {
                Err(Status::invalid_argument(format!("snapshot {id} belongs to a group: delete the group")))
            }
            _ => {
                self.snapshots.remove(id);
                Ok(())
            }
        }
    }

    pub(super) fn get_snapshot(&self, id: &str) -> Result<Snapshot, Status> {
        super::required(id, "snapshot_id")?;
        let stored = self.snapshots.get(id);
        stored.map(|one| one.snapshot.clone()).ok_or_else(|| Status::not_found(format!("snapshot {id} does not exist")))
    }

    pub(super) fn find_snapshots(&self, request: &ListSnapshotsRequest) -> Vec<Snapshot> {
        let wanted = |one: &&StoredSnapshot| {
            (request.snapshot_id.is_empty() || one.snapshot.snapshot_id == request.snapshot_id)
                && (request.source_volume_id.is_empty() || one.snapshot.source_volume_id == request.source_volume_id)
        };
        self.snapshots.values().filter(wanted).map(|one| one.snapshot.clone()).collect()
    }

    pub(super) fn create_group(
        &mut self,
        request: &CreateVolumeGroupSnapshotRequest,
    ) -> Result<VolumeGroupSnapshot, Status> {
        super::required(&request.name, "name")?;
        if request.source_volume_ids.is_empty() {
            return Err(Status::invalid_argument("source_volume_ids is required"));
        }
        if let Some(had) = self.groups.values().find(|stored| stored.name == request.name) {
            return if had.sources == request.source_volume_ids {
                Ok(had.group.clone())
            } else {
                Err(Status::already_exists(format!("group {} is of other volumes", request.name)))
            };
        }
        let mut sizes = Vec::new();
        for source in &request.source_volume_ids {
            sizes.push(self.existing(source)?.volume.capacity_bytes);
        }
        let id = self.fresh_id("group");
        let snapshots = std::iter::zip(&request.source_volume_ids, sizes)
            .map(|(source, size)| self.cut(&format!("{}-{source}", request.name), source, size, id.clone()))
            .collect();
        let group = VolumeGroupSnapshot {
            group_snapshot_id: id.clone(),
            snapshots,
            creation_time: Some(Timestamp { seconds: 1, nanos: 0 }),
            ready_to_use: true,
        };
        let stored = StoredGroup {
            name: request.name.clone(),
            sources: request.source_volume_ids.clone(),
            group: group.clone(),
        };
        self.groups.insert(id, stored);
        Ok(group)
    }

    pub(super) fn delete_group(&mut self, id: &str, members: &[String]) -> Result<(), Status> {
        super::required(id, "group_snapshot_id")?;
        if !self.groups.contains_key(id) {
            return Ok(());
        }
        self.check_members(id, members)?;
        self.groups.remove(id);
        self.snapshots.retain(|_, stored| stored.snapshot.group_snapshot_id != id);
        Ok(())
    }

    pub(super) fn get_group(&self, id: &str, members: &[String]) -> Result<VolumeGroupSnapshot, Status> {
        super::required(id, "group_snapshot_id")?;
        self.check_members(id, members)?;
        let stored = self.groups.get(id);
        stored.map(|one| one.group.clone()).ok_or_else(|| Status::not_found(format!("group {id} does not exist")))
    }

    fn check_members(&self, id: &str, members: &[String]) -> Result<(), Status> {
        let Some(stored) = self.groups.get(id) else {
            return Err(Status::not_found(format!("group {id} does not exist")));
        };
        let own = stored.group.snapshots.iter().all(|one| members.contains(&one.snapshot_id));
        if members.is_empty() || own && members.len() == stored.group.snapshots.len() {
            Ok(())
        } else {
            Err(Status::invalid_argument(format!("snapshot_ids are not the members of group {id}")))
        }
    }
}
