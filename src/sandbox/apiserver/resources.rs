//! The kinds that the server serves: one line each.
//!
//! Adding a kind is adding a line to [`RESOURCES`]; discovery, storage, routes and tables follow from it.
//! What a kind needs beyond that (defaults, field rules) is looked up by plural in `defaults` and `validate`.

use super::table::{self, Columns};

/// How the `status` part of a kind is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRule {
    /// No `status` subresource: status is written like any field.
    None,
    /// Built-in kind: a status write may also change labels, annotations and finalizers.
    WithMetadata,
    /// Kind whose status write changes nothing but the status (custom resources, volume attachments).
    Alone,
}

/// One served kind.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent traits of a kind, a word each in the table")]
pub struct Resource {
    /// API group, empty for core.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural in the path; unique among all groups.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Short names for kubectl.
    pub short: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// How status is written.
    pub status: StatusRule,
    /// Subresources besides `status`.
    pub subresources: &'static [&'static str],
    /// PUT of an absent object creates it.
    pub create_on_update: bool,
    /// PUT without a resourceVersion overwrites.
    pub unconditional_update: bool,
    /// DELETE answers the deleted object instead of a `Status`.
    pub returns_deleted: bool,
    /// Custom resource: no strategic patch.
    pub custom: bool,
    /// `metadata.generation` counts changes outside metadata and status.
    pub generation: bool,
    /// Field selectors besides `metadata.name` and `metadata.namespace`.
    pub selectable: &'static [&'static str],
    /// Columns of the table answer.
    pub columns: &'static Columns,
}

impl Resource {
    const fn new(group: &'static str, version: &'static str, plural: &'static str, kind: &'static str) -> Self {
        Self {
            group,
            version,
            plural,
            kind,
            short: &[],
            namespaced: false,
            status: StatusRule::None,
            subresources: &[],
            create_on_update: false,
            unconditional_update: true,
            returns_deleted: false,
            custom: false,
            generation: false,
            selectable: &[],
            columns: &table::PLAIN,
        }
    }

    const fn core(plural: &'static str, kind: &'static str) -> Self {
        Self::new("", "v1", plural, kind)
    }

    const fn storage(plural: &'static str, kind: &'static str) -> Self {
        Self::new("storage.k8s.io", "v1", plural, kind)
    }

    const fn apps(plural: &'static str, kind: &'static str) -> Self {
        let mut it = Self::new("apps", "v1", plural, kind).namespaced().status(StatusRule::WithMetadata);
        it.generation = true;
        it
    }

    const fn custom(group: &'static str, version: &'static str, plural: &'static str, kind: &'static str) -> Self {
        let mut it = Self::new(group, version, plural, kind);
        it.custom = true;
        it.generation = true;
        it.unconditional_update = false;
        it
    }

    const fn namespaced(mut self) -> Self {
        self.namespaced = true;
        self
    }

    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short = names;
        self
    }

    const fn status(mut self, rule: StatusRule) -> Self {
        self.status = rule;
        self
    }

    const fn subresources(mut self, names: &'static [&'static str]) -> Self {
        self.subresources = names;
        self
    }

    const fn selectable(mut self, fields: &'static [&'static str]) -> Self {
        self.selectable = fields;
        self
    }

    const fn columns(mut self, columns: &'static Columns) -> Self {
        self.columns = columns;
        self
    }

    const fn put_creates(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    const fn put_needs_version(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    const fn returns_deleted(mut self) -> Self {
        self.returns_deleted = true;
        self
    }

    /// `group/version`, or only the version for core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Plural with its group, as error texts write it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether a `status` subresource exists.
    pub fn has_status(&self) -> bool {
        self.status != StatusRule::None
    }

    /// Whether the path may end in this subresource.
    pub fn has_subresource(&self, name: &str) -> bool {
        (name == "status" && self.has_status()) || self.subresources.contains(&name)
    }
}

const SNAPSHOT: &str = "snapshot.storage.k8s.io";
const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

/// All served kinds, core first.
pub static RESOURCES: &[Resource] = &[
    Resource::core("configmaps", "ConfigMap").namespaced().short(&["cm"]).columns(&table::core::CONFIG_MAPS),
    Resource::core("events", "Event")
        .namespaced()
        .short(&["ev"])
        .put_creates()
        .selectable(EVENT_FIELDS)
        .columns(&table::core::EVENTS),
    Resource::core("namespaces", "Namespace")
        .short(&["ns"])
        .status(StatusRule::WithMetadata)
        .subresources(&["finalize"])
        .selectable(&["status.phase"])
        .returns_deleted()
        .columns(&table::core::NAMESPACES),
    Resource::core("nodes", "Node")
        .short(&["no"])
        .status(StatusRule::WithMetadata)
        .selectable(&["spec.unschedulable"])
        .columns(&table::core::NODES),
    Resource::core("persistentvolumeclaims", "PersistentVolumeClaim")
        .namespaced()
        .short(&["pvc"])
        .status(StatusRule::WithMetadata)
        .returns_deleted()
        .columns(&table::storage::CLAIMS),
    Resource::core("persistentvolumes", "PersistentVolume")
        .short(&["pv"])
        .status(StatusRule::WithMetadata)
        .returns_deleted()
        .columns(&table::storage::VOLUMES),
    Resource::core("pods", "Pod")
        .namespaced()
        .short(&["po"])
        .status(StatusRule::WithMetadata)
        .subresources(&["binding"])
        .selectable(POD_FIELDS)
        .returns_deleted()
        .columns(&table::core::PODS),
    Resource::core("secrets", "Secret").namespaced().selectable(&["type"]).columns(&table::core::SECRETS),
    Resource::core("serviceaccounts", "ServiceAccount")
        .namespaced()
        .short(&["sa"])
        .returns_deleted()
        .columns(&table::core::SERVICE_ACCOUNTS),
    Resource::apps("daemonsets", "DaemonSet").short(&["ds"]).columns(&table::apps::DAEMON_SETS),
    Resource::apps("deployments", "Deployment").short(&["deploy"]).columns(&table::apps::DEPLOYMENTS),
    Resource::apps("replicasets", "ReplicaSet").short(&["rs"]).columns(&table::apps::REPLICA_SETS),
    Resource::apps("statefulsets", "StatefulSet").short(&["sts"]).columns(&table::apps::STATEFUL_SETS),
    Resource::new("coordination.k8s.io", "v1", "leases", "Lease")
        .namespaced()
        .put_creates()
        .put_needs_version()
        .columns(&table::core::LEASES),
    Resource::custom("gateway.networking.k8s.io", "v1beta1", "referencegrants", "ReferenceGrant")
        .namespaced()
        .short(&["refgrant"]),
    Resource::custom(SNAPSHOT, "v1", "volumesnapshotclasses", "VolumeSnapshotClass")
        .short(&["vsclass", "vsclasses"])
        .columns(&table::snapshot::CLASSES),
    Resource::custom(SNAPSHOT, "v1", "volumesnapshotcontents", "VolumeSnapshotContent")
        .short(&["vsc", "vscs"])
        .status(StatusRule::Alone)
        .columns(&table::snapshot::CONTENTS),
    Resource::custom(SNAPSHOT, "v1", "volumesnapshots", "VolumeSnapshot")
        .namespaced()
        .short(&["vs"])
        .status(StatusRule::Alone)
        .columns(&table::snapshot::SNAPSHOTS),
    Resource::storage("csidrivers", "CSIDriver")
        .put_needs_version()
        .returns_deleted()
        .columns(&table::storage::DRIVERS),
    Resource::storage("csinodes", "CSINode").put_needs_version().returns_deleted().columns(&table::storage::CSI_NODES),
    Resource::storage("csistoragecapacities", "CSIStorageCapacity")
        .namespaced()
        .put_needs_version()
        .columns(&table::storage::CAPACITIES),
    Resource::storage("storageclasses", "StorageClass")
        .short(&["sc"])
        .returns_deleted()
        .columns(&table::storage::CLASSES),
    Resource::storage("volumeattachments", "VolumeAttachment")
        .status(StatusRule::Alone)
        .put_needs_version()
        .returns_deleted()
        .columns(&table::storage::ATTACHMENTS),
    Resource::storage("volumeattributesclasses", "VolumeAttributesClass")
        .short(&["vac"])
        .returns_deleted()
        .columns(&table::storage::ATTRIBUTES_CLASSES),
];

/// Finds a kind by its plural.
pub fn by_plural(plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| resource.plural == plural)
}

/// Finds a kind by its place in the API.
pub fn by_path(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|it| it.group == group && it.version == version && it.plural == plural)
}

/// The served groups with their version, core first and left out of none.
pub fn groups() -> Vec<(&'static str, &'static str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for resource in RESOURCES {
        if !found.contains(&(resource.group, resource.version)) {
            found.push((resource.group, resource.version));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn plurals_are_unique_because_direct_access_names_a_kind_by_plural() {
        let plurals: BTreeSet<&str> = RESOURCES.iter().map(|resource| resource.plural).collect();
        assert_eq!(plurals.len(), RESOURCES.len());
    }

    #[test]
    fn a_group_has_one_version_because_nothing_is_converted() {
        let names: BTreeSet<&str> = groups().into_iter().map(|(group, _)| group).collect();
        assert_eq!(names.len(), groups().len());
    }
}
