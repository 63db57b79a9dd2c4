//! What a claim costs the API server, from its audit log, ours and the Go sidecar in one run under the sample role.
//!
//! Ours is asserted to the last call; the Go sidecar's numbers are measured and printed, and go into docs/figures.md.

use crate::support::api::text;
use crate::support::audit::{Asked, asked};
use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::sidecar::Sidecar;
use crate::support::snapshot::{Snapshot, snapshot};
use crate::support::wait::{SOON, wait_until};
use crate::support::world::World;
use serde_json::json;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// How long ours uses a secret or a source without reading it again, and a second.
const STALE: Duration = Duration::from_secs(31);
/// Volumes that are deleted at once.
const DELETIONS: usize = 20;

/// Lines of the table: what was done, requests per claim.
type Table = Vec<(&'static str, f64)>;

/// One sidecar in a world of its own.
struct Side {
    world: World,
    driver: Driver,
    _sidecar: Sidecar,
    program: &'static str,
}

impl Side {
    fn new(name: &str, program: &'static str) -> Self {
        let world = World::new(name);
        let secrets = format!("/api/v1/namespaces/{name}/secrets");
        world.api.create(&secrets, &json!({"metadata": {"name": "account"}, "stringData": {"user": "u"}}));
        world.create(class("fast"));
        world.create(class("others").provisioner("somebody.else.test"));
        world.create(
            class("secret")
                .parameter("csi.storage.k8s.io/provisioner-secret-name", "account")
                .parameter("csi.storage.k8s.io/provisioner-secret-namespace", name),
        );
        let driver = Driver::bench(&world).flag("--clone").flag("--snapshots").started();
        let start = if program == "csi-provisioner-go" { Sidecar::go } else { Sidecar::ours };
        let sidecar = start(&world, "sidecar", &driver.socket()).started();
        Self { world, driver, _sidecar: sidecar, program }
    }

    /// Everything that this sidecar asked about this world's objects.
    fn requests(&self, more: &[String]) -> Vec<Asked> {
        let volumes: Vec<String> =
            self.world.volumes().iter().map(|one| text(one, "/metadata/name").to_owned()).collect();
        let names: Vec<&str> = volumes.iter().chain(more).map(String::as_str).collect();
        let mut requests = asked(&self.world, &names);
        requests.retain(|one| one.program.split('/').next() == Some(self.program));
        requests
    }

    /// What making one claim's volume costs, everything that follows it included.
    fn cost(&self, name: &str, wanted: crate::support::objects::Claim, around: &Snapshot<'_>) -> Vec<Asked> {
        let content = [around.content_name()];
        let before = self.requests(&content).len();
        self.world.create(wanted);
        self.world.bound(name);
        self.world.tells(name, "ProvisioningSucceeded", "");
        // What protects the source may come off after that.
        thread::sleep(Duration::from_millis(700));
        self.requests(&content).split_off(before)
    }

    /// Writes per volume for the end of many.
    fn deletions(&self) -> f64 {
        let names: Vec<String> = (0..DELETIONS).map(|number| format!("end-{number}")).collect();
        for name in &names {
            self.world.create(claim(name));
        }
        let volumes: Vec<String> =
            names.iter().map(|name| text(&self.world.bound(name), "/metadata/name").to_owned()).collect();
        for name in &names {
            self.world.tells(name, "ProvisioningSucceeded", "");
        }
        let before = self.requests(&volumes).len();
        let left = self.world.volumes().len() - DELETIONS;
        for name in &names {
            self.world.api.delete(&self.world.claim(name));
        }
        wait_until("the volumes are gone", SOON, || self.world.volumes().len() == left);
        // Nothing comes after that.
        thread::sleep(Duration::from_secs(2));
        let requests = self.requests(&volumes).split_off(before);
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        let (writes, all) = (requests.iter().filter(|one| one.is_write()).count() as f64, DELETIONS as f64);
        writes / all
    }
}

/// Requests by verb and kind, events apart from the rest.
fn counted(requests: &[Asked]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in requests {
        *counts.entry(format!("{} {}", one.verb, one.resource)).or_default() += 1;
    }
    counts
}

/// All kinds of claims on one side, in this order.
fn measured(side: &Side) -> Table {
    let world = &side.world;
    let monday = snapshot(world, "monday");
    world.create(claim("source"));
    world.bound("source");
    world.tells("source", "ProvisioningSucceeded", "");
    let mut table = Table::new();
    let mut line = |what, name: &str, wanted| {
        let requests = side.cost(name, wanted, &monday);
        eprintln!("{}: {what}: {} {:?}", side.program, requests.len(), counted(&requests));
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        table.push((what, requests.len() as f64));
    };
    line("plain", "plain", claim("plain"));
    line("with a secret, the first", "secret-1", claim("secret-1").class("secret"));
    line("with a secret, the next within 30 s", "secret-2", claim("secret-2").class("secret"));
    line("clone, the first of its source", "clone-1", claim("clone-1").clone_of("source"));
    line("clone, the next within 30 s", "clone-2", claim("clone-2").clone_of("source"));
    line("restore, alone", "restore-1", claim("restore-1").restored_from("monday"));
    // Nobody provisions this one, so that the snapshot stays in use from here on.
    world.create(claim("keeper").class("others").restored_from("monday"));
    line("restore, the first of several", "restore-2", claim("restore-2").restored_from("monday"));
    line("restore, the next within 30 s", "restore-3", claim("restore-3").restored_from("monday"));
    thread::sleep(STALE);
    line("with a secret, later", "secret-3", claim("secret-3").class("secret"));
    line("clone, later", "clone-3", claim("clone-3").clone_of("source"));
    line("restore, later", "restore-4", claim("restore-4").restored_from("monday"));
    world.delete_claim("keeper");
    wait_until("the snapshot is free", SOON, || !monday.is_protected());
    table.push(("deletion, writes", side.deletions()));
    world.settles_with(&side.driver, world.volumes().len());
    table
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_each_kind_of_claim_costs_exactly_these_calls() {
    let other = thread::spawn(|| measured(&Side::new("costs-go", "csi-provisioner-go")));
    let ours = measured(&Side::new("costs-ours", "csi-provisioner"));
    let go = other.join().expect("the Go sidecar's part");
    eprintln!("| API requests per claim | go | ours |\n|---|--:|--:|");
    for ((what, ours), (_, go)) in ours.iter().zip(&go) {
        eprintln!("| {what} | {go} | {ours} |");
    }
    let wanted: Table = vec![
        ("plain", 3.0),
        ("with a secret, the first", 4.0),
        ("with a secret, the next within 30 s", 3.0),
        ("clone, the first of its source", 6.0),
        ("clone, the next within 30 s", 3.0),
        ("restore, alone", 7.0),
        ("restore, the first of several", 6.0),
        ("restore, the next within 30 s", 3.0),
        ("with a secret, later", 4.0),
        ("clone, later", 5.0),
        ("restore, later", 5.0),
        ("deletion, writes", 2.0),
    ];
    assert_eq!(ours, wanted);
}
