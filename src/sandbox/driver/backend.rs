//! What the driver keeps, and the answers that follow from it. No gRPC transport, no waiting.

use super::topology;
use crate::csi::proto::v1::volume_capability::access_mode::Mode;
use crate::csi::proto::v1::{
    CreateVolumeRequest, Topology, Volume, VolumeCapability, VolumeContentSource, volume_content_source,
};
use std::collections::BTreeMap;
use tonic::Status;

/// Size of a volume whose request names none.
const DEFAULT_SIZE: i64 = 1 << 30;
/// Volumes that one node can hold.
pub const MAX_VOLUMES_PER_NODE: i64 = 64;

/// A volume.
#[derive(Clone, Debug)]
pub struct StoredVolume {
    /// As returned to the caller.
    pub volume: Volume,
    /// Name of the request that made it.
    pub name: String,
    /// Capabilities it was made for.
    pub capabilities: Vec<VolumeCapability>,
    /// Class parameters.
    pub parameters: BTreeMap<String, String>,
    /// Attributes.
    pub mutable_parameters: BTreeMap<String, String>,
    /// Node id to (capability, readonly).
    pub published: BTreeMap<String, (Option<VolumeCapability>, bool)>,
    /// Target or staging path to what was asked.
    pub paths: BTreeMap<String, PathUse>,
}

/// How a path on the node is used.
#[derive(Clone, Debug, PartialEq)]
pub enum PathUse {
    /// Staged with this capability.
    Staged(VolumeCapability),
    /// Published with this capability, read-only or not.
    Published(VolumeCapability, bool),
}

/// A snapshot.
#[derive(Clone, Debug)]
pub struct StoredSnapshot {
    /// As returned to the caller.
    pub snapshot: crate::csi::proto::v1::Snapshot,
    /// Name of the request that made it.
    pub name: String,
}

/// All state of the driver.
#[derive(Debug, Default)]
pub struct Backend {
    pub(super) volumes: BTreeMap<String, StoredVolume>,
    pub(super) snapshots: BTreeMap<String, StoredSnapshot>,
    pub(super) groups: BTreeMap<String, super::snapshots::StoredGroup>,
    pub(super) capacity: i64,
    pub(super) own_place: BTreeMap<String, String>,
    next_id: u64,
    /// Volumes deleted so far.
    pub deleted: u64,
}

impl Backend {
    pub(super) fn new(capacity: i64, own_place: BTreeMap<String, String>) -> Self {
        Self { capacity, own_place, ..Self::default() }
    }

    /// All volumes by id.
    pub fn volumes(&self) -> &BTreeMap<String, StoredVolume> {
        &self.volumes
    }

    /// Forgets a volume, as a broken backend would.
    pub fn lose(&mut self, id: &str) {
        self.volumes.remove(id);
    }

    pub(super) fn fresh_id(&mut self, kind: &str) -> String {
        self.next_id += 1;
        format!("{kind}-{:06}", self.next_id)
    }

    /// Bytes not used by any volume.
    pub fn free(&self) -> i64 {
        self.volumes
            .values()
            .fold(self.capacity, |left, stored| left.saturating_sub(stored.volume.capacity_bytes))
            .max(0)
    }

    /// `CreateVolume`: by name first, then made (csi-rules.md 4.2).
    pub fn create(&mut self, request: &CreateVolumeRequest) -> Result<Volume, Status> {
        super::required(&request.name, "name")?;
        if request.volume_capabilities.is_empty() {
            return Err(Status::invalid_argument("volume_capabilities is required"));
        }
        for capability in &request.volume_capabilities {
            check_capability(capability)?;
        }
        check_mutable(&request.mutable_parameters)?;
        if let Some(existing) = self.volumes.values().find(|stored| stored.name == request.name) {
            return compatible(existing, request).map(|()| existing.volume.clone());
        }
        let smallest = self.source_size(request.volume_content_source.as_ref())?;
        let size = size_for(request, smallest)?;
        if size > self.free() {
            return Err(Status::out_of_range(format!("{size} bytes are asked for and {} are free", self.free())));
        }
        let places = topology::choose(request.accessibility_requirements.as_ref(), &self.own_place)?;
        let volume = Volume {
            capacity_bytes: size,
            volume_id: self.fresh_id("vol"),
            volume_context: BTreeMap::from([("name".to_owned(), request.name.clone())]),
            content_source: request.volume_content_source.clone(),
            accessible_topology: places,
        };
        self.volumes.insert(
            volume.volume_id.clone(),
            StoredVolume {
                volume: volume.clone(),
                name: request.name.clone(),
                capabilities: request.volume_capabilities.clone(),
                parameters: request.parameters.clone(),
                mutable_parameters: request.mutable_parameters.clone(),
                published: BTreeMap::new(),
                paths: BTreeMap::new(),
            },
        );
        Ok(volume)
    }

    /// `DeleteVolume`: unknown is fine, published is not (csi-rules.md 5).
    pub fn delete(&mut self, id: &str) -> Result<(), Status> {
        super::required(id, "volume_id")?;
        if let Some(stored) = self.volumes.get(id)
            && let Some(node) = stored.published.keys().next()
        {
            return Err(Status::failed_precondition(format!("volume {id} is published on node {node}")));
        }
        if self.volumes.remove(id).is_some() {
            self.deleted += 1;
        }
        Ok(())
    }

    /// A volume that must exist.
    pub(super) fn existing(&mut self, id: &str) -> Result<&mut StoredVolume, Status> {
        super::required(id, "volume_id")?;
        self.volumes.get_mut(id).ok_or_else(|| Status::not_found(format!("volume {id} does not exist")))
    }

    fn source_size(&self, source: Option<&VolumeContentSource>) -> Result<i64, Status> {
        use volume_content_source::Type;
        let Some(source) = source else { return Ok(0) };
        match &source.r#type {
            Some(Type::Snapshot(from)) => self
                .snapshots
                .get(&from.snapshot_id)
                .map(|stored| stored.snapshot.size_bytes)
                .ok_or_else(|| Status::not_found(format!("snapshot {} does not exist", from.snapshot_id))),
            Some(Type::Volume(from)) => self
                .volumes
                .get(&from.volume_id)
                .map(|stored| stored.volume.capacity_bytes)
                .ok_or_else(|| Status::not_found(format!("source volume {} does not exist", from.volume_id))),
            None => Err(Status::invalid_argument("volume_content_source names neither a snapshot nor a volume")),
        }
    }
}

fn size_for(request: &CreateVolumeRequest, smallest: i64) -> Result<i64, Status> {
    let (wanted, limit) =
        request.capacity_range.as_ref().map_or((0, 0), |range| (range.required_bytes, range.limit_bytes));
    if wanted < 0 || limit < 0 {
        return Err(Status::invalid_argument("capacity_range must not be negative"));
    }
    if limit > 0 && wanted > limit {
        return Err(Status::invalid_argument("required_bytes is larger than limit_bytes"));
    }
    let size = if wanted > 0 { wanted } else { DEFAULT_SIZE.min(if limit > 0 { limit } else { DEFAULT_SIZE }) };
    let size = size.max(smallest);
    if limit > 0 && size > limit {
        return Err(Status::out_of_range(format!("the source needs {size} bytes and the limit is {limit}")));
    }
    Ok(size)
}

fn compatible(existing: &StoredVolume, request: &CreateVolumeRequest) -> Result<(), Status> {
    let range = request.capacity_range.unwrap_or_default();
    let size = existing.volume.capacity_bytes;
    let fits = size >= range.required_bytes && (range.limit_bytes == 0 || size <= range.limit_bytes);
    let same = existing.capabilities == request.volume_capabilities
        && existing.parameters == request.parameters
        && existing.mutable_parameters == request.mutable_parameters
        && existing.volume.content_source == request.volume_content_source;
    let places: &[Topology] = &existing.volume.accessible_topology;
    if fits && same && topology::satisfies(places, request.accessibility_requirements.as_ref()) {
        return Ok(());
    }
    Err(Status::already_exists(format!("volume {} exists and does not fit the request", request.name)))
}

/// A capability needs a known access mode and one access type.
pub(super) fn check_capability(capability: &VolumeCapability) -> Result<(), Status> {
    let mode = capability.access_mode.as_ref().map_or(Ok(Mode::Unknown), |mode| Mode::try_from(mode.mode));
    match mode {
        Ok(Mode::Unknown) => return Err(Status::invalid_argument("access_mode is required")),
        Ok(_) => {}
        Err(_) => return Err(Status::invalid_argument("access_mode is not known")),
    }
    if capability.access_type.is_none() {
        return Err(Status::invalid_argument("access_type is required: block or mount"));
    }
    Ok(())
}

/// The attributes that volumes of this driver have.
const ATTRIBUTES: [&str; 3] = ["iops", "throughput", "tier"];

/// Unknown attributes are refused and nothing is applied (csi-rules.md 7).
pub(super) fn check_mutable(parameters: &BTreeMap<String, String>) -> Result<(), Status> {
    match parameters.keys().find(|key| !ATTRIBUTES.contains(&key.as_str())) {
        Some(key) => Err(Status::invalid_argument(format!(
            "attribute {key} is not known; volumes have {}",
            ATTRIBUTES.join(", ")
        ))),
        None => Ok(()),
    }
}
