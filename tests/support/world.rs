//! What one test has for itself inside a control plane: a namespace, a driver name, classes, a folder.

use super::api::{Api, VOLUMES, text};
use super::driver::{self, Driver};
use super::guard;
use super::objects::Object;
use super::plane::Plane;
use super::sidecar::Sidecar;
use super::wait::{SOON, eventually, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// See above. Tells what happened when its test fails.
pub struct World {
    /// Namespace, and part of all other names.
    pub name: String,
    /// Rights of everything.
    pub api: Api,
    /// Files of the test.
    pub dir: PathBuf,
    /// The control plane.
    pub plane: Arc<Plane>,
}

impl World {
    /// In the shared control plane.
    pub fn new(name: &str) -> Self {
        Self::on(Plane::shared(), name)
    }

    /// In this control plane.
    pub fn on(plane: Arc<Plane>, name: &str) -> Self {
        let dir = guard::folder().join(name);
        fs::create_dir_all(&dir).expect("a folder for the test");
        let api = Api::new(&plane.admin());
        api.create("/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        Self { name: name.to_owned(), api, dir, plane }
    }

    /// The one driver of this world.
    pub fn driver_name(&self) -> String {
        format!("{}.csi.test", self.name)
    }

    /// Our sidecar beside this driver, started.
    pub fn sidecar(&self, driver: &Driver) -> Sidecar {
        Sidecar::ours(self, "sidecar", &driver.socket()).started()
    }

    /// Classes belong to the whole cluster, so that their names tell the world.
    pub fn class_name(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// Path of the claims.
    pub fn claims(&self) -> String {
        format!("/api/v1/namespaces/{}/persistentvolumeclaims", self.name)
    }

    /// Path of one claim.
    pub fn claim(&self, name: &str) -> String {
        format!("{}/{name}", self.claims())
    }

    /// Creates an object.
    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "reads as a sentence")]
    pub fn create(&self, object: impl Object) {
        let (path, manifest) = object.manifest(self);
        self.api.create(&path, &manifest);
    }

    /// Waits until a claim is bound: its volume.
    #[track_caller]
    pub fn bound(&self, claim: &str) -> Value {
        let path = self.claim(claim);
        let found = eventually(&format!("claim {claim} is bound"), SOON, || {
            self.api.find(&path).filter(|claim| text(claim, "/status/phase") == "Bound")
        });
        self.api.get(&format!("{VOLUMES}/{}", text(&found, "/spec/volumeName")))
    }

    /// Deletes a claim and waits until it is gone.
    #[track_caller]
    pub fn delete_claim(&self, name: &str) {
        self.api.delete(&self.claim(name));
        wait_until(&format!("claim {name} is gone"), SOON, || self.api.find(&self.claim(name)).is_none());
    }

    /// The volumes of this world's driver.
    pub fn volumes(&self) -> Vec<Value> {
        let mut volumes = self.api.list(VOLUMES);
        volumes.retain(|one| text(one, "/spec/csi/driver") == self.driver_name());
        volumes
    }

    /// Waits until the driver has exactly the volumes that the API server knows, that many: nothing lost, none doubled.
    #[track_caller]
    pub fn settles_with(&self, driver: &Driver, count: usize) {
        let start = Instant::now();
        loop {
            let known: BTreeSet<String> =
                self.volumes().iter().map(|one| text(one, "/spec/csi/volumeHandle").to_owned()).collect();
            let made = driver.volumes();
            if known == made && made.len() == count {
                return;
            }
            assert!(start.elapsed() < SOON, "expected {count} volumes; API server: {known:#?}, driver: {made:#?}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Events in this world about an object: reason and message.
    pub fn events(&self, about: &str) -> Vec<(String, String)> {
        self.all_events()
            .iter()
            .filter(|event| text(event, "/involvedObject/name") == about)
            .map(|event| (text(event, "/reason").to_owned(), text(event, "/message").to_owned()))
            .collect()
    }

    /// Waits until an event with this reason tells something.
    #[track_caller]
    pub fn tells(&self, about: &str, reason: &str, words: &str) {
        wait_until(&format!("{about} has an event {reason} with {words:?}"), SOON, || {
            self.events(about).iter().any(|(one, message)| one == reason && message.contains(words))
        });
    }

    fn all_events(&self) -> Vec<Value> {
        // Those about volumes are in the default namespace.
        let mut events = self.api.list(&format!("/api/v1/namespaces/{}/events", self.name));
        events.extend(self.api.list("/api/v1/namespaces/default/events"));
        events
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        guard::tell("keep");
        eprintln!("=== files in {}", self.dir.display());
        eprintln!("=== last calls\n{}", last(&driver::log_of(&self.dir), 15));
        for file in fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|one| one.path()) {
            if file.extension().is_some_and(|one| one == "log") {
                let log = fs::read(&file).unwrap_or_default();
                eprintln!("=== end of {}\n{}", file.display(), last(&String::from_utf8_lossy(&log), 25));
            }
        }
    }
}

fn last(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let cut: Vec<String> =
        all[all.len().saturating_sub(lines)..].iter().map(|line| line.chars().take(300).collect()).collect();
    cut.join("\n")
}
