//! Snapshots as a snapshot controller would leave them: bound to their content, cut by the world's driver. No such
//! controller runs here.

use super::world::World;
use serde_json::{Value, json};

const GROUP: &str = "/apis/snapshot.storage.k8s.io/v1";
/// Name of the finalizer that keeps a snapshot while it is restored.
pub const PROTECTION: &str = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";

/// A snapshot and its content.
pub struct Snapshot<'a> {
    world: &'a World,
    namespace: String,
    name: String,
}

/// A snapshot of 1 Gi in the world's namespace, ready to use.
pub fn snapshot<'a>(world: &'a World, name: &str) -> Snapshot<'a> {
    let cut = unbound(world, &world.name, name);
    cut.bind(true);
    cut
}

/// A snapshot in this namespace that has no status yet; its content waits.
pub fn unbound<'a>(world: &'a World, namespace: &str, name: &str) -> Snapshot<'a> {
    let cut = Snapshot { world, namespace: namespace.to_owned(), name: name.to_owned() };
    let version = "snapshot.storage.k8s.io/v1";
    let spec = json!({"source": {"volumeSnapshotContentName": cut.content_name()}});
    world.api.create(
        &format!("{GROUP}/namespaces/{namespace}/volumesnapshots"),
        &json!({"apiVersion": version, "kind": "VolumeSnapshot", "metadata": {"name": name}, "spec": spec}),
    );
    let uid = cut.object()["metadata"]["uid"].clone();
    let spec = json!({
        "driver": world.driver_name(),
        "deletionPolicy": "Retain",
        "source": {"snapshotHandle": cut.handle()},
        "sourceVolumeMode": "Filesystem",
        "volumeSnapshotRef": {"namespace": namespace, "name": name, "uid": uid},
    });
    let metadata = json!({"name": cut.content_name()});
    world.api.create(
        &format!("{GROUP}/volumesnapshotcontents"),
        &json!({"apiVersion": version, "kind": "VolumeSnapshotContent", "metadata": metadata, "spec": spec}),
    );
    let status = json!({"snapshotHandle": cut.handle(), "readyToUse": true, "restoreSize": 1 << 30});
    world.api.merge(&format!("{}/status", cut.content_path()), &json!({"status": status}));
    cut
}

impl Snapshot<'_> {
    /// Binds it to its content, ready to use or not yet.
    pub fn bind(&self, ready: bool) {
        let name = self.content_name();
        let status = json!({"boundVolumeSnapshotContentName": name, "readyToUse": ready, "restoreSize": "1Gi"});
        self.world.api.merge(&format!("{}/status", self.path()), &json!({"status": status}));
    }

    /// What the driver calls it.
    pub fn handle(&self) -> String {
        format!("snap-{}", self.name)
    }

    /// Name of its content.
    pub fn content_name(&self) -> String {
        format!("content-{}-{}", self.namespace, self.name)
    }

    /// Its path.
    pub fn path(&self) -> String {
        format!("{GROUP}/namespaces/{}/volumesnapshots/{}", self.namespace, self.name)
    }

    /// Path of its content.
    pub fn content_path(&self) -> String {
        format!("{GROUP}/volumesnapshotcontents/{}", self.content_name())
    }

    /// As it is now.
    #[track_caller]
    pub fn object(&self) -> Value {
        self.world.api.get(&self.path())
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.world.api.find(&self.path()).is_some()
    }

    /// Whether it is kept for a restore.
    #[track_caller]
    pub fn is_protected(&self) -> bool {
        has_finalizer(&self.object(), PROTECTION)
    }
}

/// Whether an object carries a finalizer.
pub fn has_finalizer(object: &Value, name: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}
