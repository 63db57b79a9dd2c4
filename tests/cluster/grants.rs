//! Sources in other namespaces: only with the gate, and only with a `ReferenceGrant` that fits (provisioning.md 4.8, X04).

use crate::support::api::text;
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::plane::Plane;
use crate::support::sidecar::Sidecar;
use crate::support::snapshot::{has_finalizer, unbound};
use crate::support::wait::{SOON, holds_for, wait_until};
use crate::support::world::World;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const OWNER: &str = "owner";
const CLAIM: &str = "PersistentVolumeClaim";
const SNAPSHOT: &str = "VolumeSnapshot";
const CLONE_PROTECTION: &str = "provisioner.storage.kubernetes.io/cloning-protection";
/// The first try's successor comes that late: what wakes a claim earlier is the grant.
const BACKOFF: Duration = Duration::from_secs(40);

/// A source kind's grant for claims of a namespace.
fn grant(world: &World, name: &str, from: &str, kind: &str, source: Option<&str>) {
    let group = if kind == SNAPSHOT { "snapshot.storage.k8s.io" } else { "" };
    let mut to = json!({"group": group, "kind": kind});
    if let Some(source) = source {
        to["name"] = source.into();
    }
    world.api.create(
        &format!("/apis/gateway.networking.k8s.io/v1beta1/namespaces/{OWNER}/referencegrants"),
        &json!({"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant", "metadata": {"name": name},
            "spec": {"from": [{"group": "", "kind": CLAIM, "namespace": from}], "to": [to]}}),
    );
}

/// What the driver was asked to fill the claim's volume from.
fn source_of(world: &World, driver: &Driver, claim: &str) -> Value {
    let volume = text(&world.bound(claim), "/metadata/name").to_owned();
    let calls = driver.calls("CreateVolume");
    calls.iter().find(|call| call.key == volume).expect("the driver made it").request["volumeContentSource"].clone()
}

/// A bound claim in the owner's namespace: path, and handle of its volume.
fn source_claim(world: &World) -> (String, String) {
    let claims = format!("/api/v1/namespaces/{OWNER}/persistentvolumeclaims");
    let spec = json!({"storageClassName": world.class_name("fast"), "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}});
    world.api.create(&claims, &json!({"metadata": {"name": "source"}, "spec": spec}));
    let path = format!("{claims}/source");
    wait_until("the source is bound", SOON, || text(&world.api.get(&path), "/status/phase") == "Bound");
    let handle = text(&world.volumes()[0], "/spec/csi/volumeHandle").to_owned();
    (path, handle)
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_source_of_another_namespace_needs_gate_and_grant() {
    let gate = [("FEATURE_GATES", "CrossNamespaceVolumeDataSource=true")];
    let world = World::on(Arc::new(Plane::start("grants-plane", &gate)), "grants");
    world.api.create("/api/v1/namespaces", &json!({"metadata": {"name": OWNER}}));
    world.create(class("fast"));
    let driver = Driver::bench(&world).flag("--clone").flag("--snapshots").started();
    let mut ungated = world.sidecar(&driver);
    let (source, handle) = source_claim(&world);
    let monday = unbound(&world, OWNER, "monday");
    monday.bind(true);

    // Without the gate of the sidecar: refused, never an empty volume.
    world.create(claim("ungated").source_in(OWNER, CLAIM, "source"));
    world.tells("ungated", "ProvisioningFailed", "CrossNamespaceVolumeDataSource");
    ungated.kill();
    world.delete_claim("ungated");

    let _sidecar = Sidecar::ours(&world, "gated", &driver.socket())
        .flag("--feature-gates=CrossNamespaceVolumeDataSource=true")
        .flag(&format!("--retry-interval-start={}s", BACKOFF.as_secs()))
        .started();
    // Grants that do not fit: of another kind, for another namespace, for another name, in the wrong place.
    grant(&world, "other-kind", "grants", "Secret", None);
    grant(&world, "other-namespace", "elsewhere", CLAIM, None);
    grant(&world, "other-name", "grants", CLAIM, Some("another"));
    grant(&world, "other-snapshot", "grants", SNAPSHOT, Some("tuesday"));
    world.create(claim("copy").source_in(OWNER, CLAIM, "source"));
    world.create(claim("restored").source_in(OWNER, SNAPSHOT, "monday"));
    for name in ["copy", "restored"] {
        world.tells(name, "ProvisioningFailed", "no ReferenceGrant in namespace \"owner\"");
    }
    holds_for("nothing is made", Duration::from_secs(2), || driver.calls("CreateVolume").len() == 1);
    assert!(!has_finalizer(&world.api.get(&source), CLONE_PROTECTION), "nothing was written to what is not granted");
    assert!(!monday.is_protected(), "nothing was written to what is not granted");

    let begun = Instant::now();
    grant(&world, "claims", "grants", CLAIM, Some("source"));
    assert_eq!(source_of(&world, &driver, "copy"), json!({"volume": {"volumeId": handle}}));
    grant(&world, "snapshots", "grants", SNAPSHOT, None);
    assert_eq!(source_of(&world, &driver, "restored"), json!({"snapshot": {"snapshotId": monday.handle()}}));
    assert!(begun.elapsed() < BACKOFF / 2, "the grant wakes them: {:?}", begun.elapsed());
    wait_until("the snapshot is free again", SOON, || !monday.is_protected());
    assert!(has_finalizer(&world.api.get(&source), CLONE_PROTECTION), "a copied claim is protected in its namespace");

    // With the grant already there it goes at once; a grant that was taken away counts no more.
    world.create(claim("second").source_in(OWNER, CLAIM, "source"));
    world.bound("second");
    world.api.delete(&format!("/apis/gateway.networking.k8s.io/v1beta1/namespaces/{OWNER}/referencegrants/claims"));
    std::thread::sleep(Duration::from_millis(500));
    world.create(claim("third").source_in(OWNER, CLAIM, "source"));
    world.tells("third", "ProvisioningFailed", "no ReferenceGrant");
    holds_for("nothing is made", Duration::from_secs(1), || driver.calls("CreateVolume").len() == 4);
    world.settles_with(&driver, 4);
}
