//! The scenarios of e2e/scenarios hold on a real cluster exactly as they do in the sandbox: same files, same runner.
//!
//! They name their objects as users do, so that they play one after the other in a cluster of their own.
#![cfg(feature = "sandbox")]

use crate::support::api::{Remote, text};
use crate::support::guard;
use crate::support::plane::{self, Plane};
use crate::support::process::Process;
use crate::support::sidecar::Sidecar;
use crate::support::wait::SOON;
use crate::support::world::World;
use anyhow::Context;
use csi_provisioner::sandbox::apiserver::resources::{RESOURCES, Resource};
use csi_provisioner::sandbox::driver::{DriverOptions, MockDriver, serve};
use csi_provisioner::sandbox::scenario::stage::Stage;
use csi_provisioner::sandbox::scenario::{ObjectName, Scenario, parse, runner};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What the scenarios' objects call the node that the driver runs on.
const NODE: &str = "sandbox-node";
/// Kinds that a scenario may leave behind, in the order in which they can go.
const LEFT_BEHIND: [&str; 7] =
    ["pods", "persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes", "nodes", "events"];

/// A real control plane, our sidecar's program, and the sandbox's driver on a socket.
struct Cluster {
    remote: Remote,
    plane: Arc<Plane>,
    driver: MockDriver,
    sidecar: Sidecar,
}

fn served(plural: &str) -> anyhow::Result<&'static Resource> {
    RESOURCES.iter().find(|one| one.plural == plural).with_context(|| format!("{plural} are not known"))
}

/// Path of a kind, in a namespace unless that is empty.
fn path(resource: &Resource, namespace: &str) -> String {
    let group = match resource.group {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let inside = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    format!("{group}{inside}/{}", resource.plural)
}

fn path_of(object: &ObjectName) -> anyhow::Result<String> {
    Ok(format!("{}/{}", path(served(&object.plural)?, &object.namespace), object.name))
}

impl Stage for Cluster {
    async fn apply(&mut self, object: &Value) -> anyhow::Result<()> {
        let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        let resource = RESOURCES.iter().find(|known| known.kind == kind && known.api_version() == version);
        let resource = resource.with_context(|| format!("{kind} of {version} is not known"))?;
        let namespace = match text(object, "/metadata/namespace") {
            _ if !resource.namespaced => "",
            "" => "default",
            namespace => namespace,
        };
        if !namespace.is_empty() {
            self.remote.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        }
        let collection = path(resource, namespace);
        if self.remote.create(&collection, object).await.is_none() {
            self.remote.merge(&format!("{collection}/{}", text(object, "/metadata/name")), object).await;
        }
        Ok(())
    }

    async fn delete(&mut self, object: &ObjectName) -> anyhow::Result<()> {
        self.remote.delete(&path_of(object)?).await;
        Ok(())
    }

    async fn get(&mut self, object: &ObjectName) -> anyhow::Result<Option<Value>> {
        Ok(self.remote.find(&path_of(object)?).await)
    }

    async fn list(&mut self, plural: &str) -> anyhow::Result<Vec<Value>> {
        let list = self.remote.find(&path(served(plural)?, "")).await;
        Ok(list.and_then(|list| list["items"].as_array().cloned()).unwrap_or_default())
    }

    fn driver(&self) -> &MockDriver {
        &self.driver
    }

    async fn kill_sidecar(&mut self) -> anyhow::Result<()> {
        self.sidecar.kill();
        Ok(())
    }

    async fn start_sidecar(&mut self) -> anyhow::Result<()> {
        self.sidecar.start();
        Ok(())
    }

    async fn restart_api(&mut self, away: Duration) -> anyhow::Result<()> {
        self.plane.stop_apiserver();
        sleep(away).await;
        self.plane.start_apiserver();
        Ok(())
    }

    /// Cuts everybody's.
    async fn cut_watches(&mut self) -> anyhow::Result<()> {
        self.restart_api(Duration::ZERO).await
    }
}

impl Cluster {
    /// The node that the driver runs on, as kubelet and the driver's registration would show it.
    async fn add_node(&self, scenario: &Scenario) {
        let segments = &scenario.driver.segments;
        let keys: Vec<&String> = segments.keys().collect();
        let node = json!({"metadata": {"name": NODE, "labels": segments}});
        self.remote.create("/api/v1/nodes", &node).await;
        // Nobody here finds out that it is ready.
        let path = format!("/api/v1/nodes/{NODE}");
        self.remote.merge(&path, &json!({"spec": {"taints": null}})).await;
        let room = json!({"pods": "100", "cpu": "8", "memory": "8Gi"});
        self.remote.merge(&format!("{path}/status"), &json!({"status": {"allocatable": room, "capacity": room}})).await;
        let registration = json!({"name": "sandbox.csi.dev", "nodeID": NODE, "topologyKeys": keys});
        let csi_node = json!({"metadata": {"name": NODE}, "spec": {"drivers": [registration]}});
        self.remote.create("/apis/storage.k8s.io/v1/csinodes", &csi_node).await;
    }

    /// Leaves nothing for the next scenario, whatever state this one ended in.
    async fn clean_up(&mut self) {
        self.sidecar.kill();
        let start = Instant::now();
        for plural in LEFT_BEHIND {
            loop {
                let objects = self.list(plural).await.expect("a known kind");
                if objects.is_empty() {
                    break;
                }
                assert!(start.elapsed() < SOON, "{plural} stay: {objects:?}");
                for object in objects {
                    let collection = path(served(plural).expect("a known kind"), text(&object, "/metadata/namespace"));
                    let path = format!("{collection}/{}", text(&object, "/metadata/name"));
                    self.remote.delete(&path).await;
                    self.remote.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
                }
            }
        }
    }
}

/// Plays one scenario; the answer is what went wrong.
fn play(plane: &Arc<Plane>, scenario: &Scenario) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let world = World::on(Arc::clone(plane), &format!("scenario-{}", scenario.name));
    let socket = world.dir.join("csi.sock");
    let options = DriverOptions {
        segments: scenario.driver.segments.clone(),
        all_capabilities: scenario.driver.all_capabilities,
        publish: scenario.driver.all_capabilities,
        ..DriverOptions::default()
    };
    let sidecar = Sidecar::ours(&world, "sidecar", &socket);
    let played = runtime.block_on(async {
        let (driver, stop) = (MockDriver::new(options), CancellationToken::new());
        let serving = tokio::spawn({
            let (driver, socket, stop) = (driver.clone(), socket.clone(), stop.clone());
            async move { serve::serve(&driver, &socket, || (), stop).await }
        });
        let remote = Remote::new(&plane.admin()).await;
        let mut cluster = Cluster { remote, plane: Arc::clone(plane), driver, sidecar };
        cluster.add_node(scenario).await;
        cluster.sidecar.start();
        let played = runner::play(&mut cluster, scenario, |_, _| {}).await;
        cluster.clean_up().await;
        stop.cancel();
        serving.abort();
        played
    });
    played.map_err(|failure| format!("{failure}\n  files in {}", world.dir.display()))
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_every_scenario_holds_on_a_real_cluster() {
    let plane = Arc::new(Plane::start("scenarios-plane", &[]));
    let mut scheduler = Command::new(plane::tool("kube-scheduler"));
    scheduler.arg(format!("--kubeconfig={}", plane.admin().display()));
    scheduler.args(["--leader-elect=false", "--secure-port=0"]);
    let _scheduler = Process::start(scheduler, &guard::folder().join("scheduler.log"));
    let mut files: Vec<_> = fs::read_dir(plane::repository().join("e2e/scenarios"))
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("an entry").path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut failures = Vec::new();
    for file in files {
        let scenario = parse(&fs::read_to_string(&file).expect("readable")).expect("valid");
        let begun = Instant::now();
        let played = play(&plane, &scenario);
        eprintln!("{}: {:.1} s", scenario.name, begun.elapsed().as_secs_f64());
        failures.extend(played.err());
    }
    if !failures.is_empty() {
        guard::tell("keep");
        panic!("{} scenarios fail:\n{}", failures.len(), failures.join("\n\n"));
    }
}
