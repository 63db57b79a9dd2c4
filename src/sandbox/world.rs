//! A world with everything that a claim meets: API server, binder, protection, scheduler stand-in, driver and sidecar.
//!
//! The sidecar is the program that ships, started as it starts in a pod: with flags, a kubeconfig for an API server on
//! a TCP port and the path of the driver's socket.

use super::apiserver::{self, ApiServer};
use super::direct::Ground;
use super::driver::serve::serve;
use super::driver::{DriverOptions, MockDriver};
use super::probe::{self, DriverFacts};
use super::sidecar::{self, Seat};
use super::{binder, protection, scheduler};
use crate::app::embedded::Sidecar;
use crate::clock::Clock;
use crate::random::Random;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Longest wait until the sandbox's own driver accepts calls.
const DRIVER_START: Duration = Duration::from_secs(10);

/// Which driver the world has.
#[derive(Clone, Debug)]
pub enum DriverChoice {
    /// The mock driver, in this process, over a unix socket.
    Mock(DriverOptions),
    /// A driver that runs already, at this address (`unix:///path` or `/path`).
    At(String),
}

/// How a world is made.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    /// TCP port of the API server; 0 = any free one.
    pub port: u16,
    /// The driver.
    pub driver: DriverChoice,
    /// Late-binding claims get a node without a pod.
    pub select_without_pod: bool,
    /// More flags for the sidecar.
    pub sidecar_flags: Vec<String>,
    /// Whether the sidecar's log goes to stderr.
    pub sidecar_log: bool,
}

/// A running world.
pub struct World {
    /// The API server.
    pub server: ApiServer,
    /// The mock driver; none if the driver runs elsewhere.
    pub driver: Option<MockDriver>,
    /// What the driver says about itself.
    pub facts: DriverFacts,
    /// Address of the API server.
    pub address: SocketAddr,
    /// The sidecar.
    pub seat: Seat,
    sidecar: Sidecar,
    kubeconfig: PathBuf,
    serving: CancellationToken,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    // Removed last.
    _scratch: Scratch,
}

impl World {
    /// Starts everything; the sidecar comes last.
    pub async fn start(options: WorldOptions) -> anyhow::Result<Self> {
        let (clock, random) = (Clock::system(), Random::from_os());
        let scratch = Scratch::new(&random)?;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (driver, socket) = start_driver(&options.driver, &scratch, &stop, &mut tasks).await?;
        let facts = probe::ask(&socket).await?;
        let ground = Ground { server: ApiServer::new(clock.clone(), random.clone()), clock, random };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))
            .await
            .with_context(|| format!("cannot listen on 127.0.0.1:{}; give --port another one or 0", options.port))?;
        let address = listener.local_addr().context("the API server's listener has no address")?;
        let serving = CancellationToken::new();
        serve_api(&ground.server, listener, &serving, &mut tasks);
        furnish(&ground.server, &facts)?;
        tasks.spawn(binder::worker::run(ground.clone(), stop.clone()));
        tasks.spawn(protection::worker::run(ground.clone(), stop.clone()));
        let settings =
            scheduler::worker::Settings { node: facts.node.clone(), select_without_pod: options.select_without_pod };
        tasks.spawn(scheduler::worker::run(ground.clone(), settings, stop.clone()));
        let kubeconfig = scratch.path("kubeconfig");
        write_kubeconfig(&kubeconfig, address)?;
        let sidecar = Sidecar::new(&sidecar_arguments(&options, &socket, &kubeconfig, &facts))?;
        if options.sidecar_log {
            sidecar.log();
        }
        let seat = Seat::default();
        seat.put(sidecar::start(sidecar.clone())?);
        let server = ground.server;
        Ok(Self { server, driver, facts, address, seat, sidecar, kubeconfig, serving, stop, tasks, _scratch: scratch })
    }

    /// The file by which kubectl and others reach the API server; gone when the world ends.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Ends the sidecar in the middle of whatever it does.
    pub async fn kill_sidecar(&self) {
        if let Some(running) = self.seat.take() {
            running.kill().await;
        }
    }

    /// Starts the sidecar again.
    pub fn start_sidecar(&self) -> anyhow::Result<()> {
        self.seat.put(sidecar::start(self.sidecar.clone())?);
        Ok(())
    }

    /// Cuts every connection to the API server and refuses new ones for a while; objects stay.
    pub async fn restart_api(&mut self, away: Duration) -> anyhow::Result<()> {
        self.serving.cancel();
        sleep(away).await;
        let listener = TcpListener::bind(self.address)
            .await
            .with_context(|| format!("the API server's port {} was taken meanwhile", self.address.port()))?;
        self.serving = CancellationToken::new();
        serve_api(&self.server, listener, &self.serving, &mut self.tasks);
        Ok(())
    }

    /// Stops everything: sidecar first, so that it can put its work away.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let ended = match self.seat.take() {
            Some(running) => running.stop().await,
            None => Ok(()),
        };
        self.serving.cancel();
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        Ok(ended?)
    }
}

async fn start_driver(
    choice: &DriverChoice,
    scratch: &Scratch,
    stop: &CancellationToken,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<(Option<MockDriver>, String)> {
    let options = match choice {
        DriverChoice::At(address) => return Ok((None, address.clone())),
        DriverChoice::Mock(options) => options,
    };
    let driver = MockDriver::new(options.clone());
    let socket = scratch.path("csi.sock");
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (served, at, stop) = (driver.clone(), socket.clone(), stop.clone());
    tasks.spawn(async move {
        // Nobody listens any more only if the start was given up.
        let told = || if ready.send(()).is_err() {};
        if let Err(error) = serve(&served, &at, told, stop).await {
            eprintln!("csi-sandbox: {error}");
        }
    });
    match timeout(DRIVER_START, is_ready).await {
        Ok(Ok(())) => Ok((Some(driver), format!("unix://{}", socket.display()))),
        Ok(Err(_)) | Err(_) => bail!("the mock driver did not start; the line above says why"),
    }
}

fn serve_api(server: &ApiServer, listener: TcpListener, serving: &CancellationToken, tasks: &mut JoinSet<()>) {
    let (server, serving) = (server.clone(), serving.clone());
    tasks.spawn(async move {
        if let Err(error) = apiserver::serve(server, listener, serving).await {
            eprintln!("csi-sandbox: the API server stopped: {error}");
        }
    });
}

/// The objects that every cluster with this driver has: the node, what the driver registered on it, the driver.
fn furnish(server: &ApiServer, facts: &DriverFacts) -> anyhow::Result<()> {
    let mut labels = serde_json::Map::from_iter([("kubernetes.io/hostname".to_owned(), json!(facts.node))]);
    labels.extend(facts.segments.iter().map(|(key, value)| (key.clone(), json!(value))));
    let keys: Vec<&String> = facts.segments.keys().collect();
    let ready = json!({"type": "Ready", "status": "True", "reason": "Sandbox", "message": "the sandbox's only node"});
    let driver = json!({"name": facts.name, "nodeID": facts.node, "topologyKeys": keys});
    let objects: [(&str, Value); 3] = [
        ("nodes", json!({"metadata": {"name": facts.node, "labels": labels}, "status": {"conditions": [ready]}})),
        ("csinodes", json!({"metadata": {"name": facts.node}, "spec": {"drivers": [driver]}})),
        ("csidrivers", json!({"metadata": {"name": facts.name}, "spec": {"attachRequired": false}})),
    ];
    for (plural, object) in objects {
        server.create(plural, "", object).with_context(|| {
            format!("the driver's name {:?} or node {:?} cannot be used in {plural}", facts.name, facts.node)
        })?;
    }
    Ok(())
}

fn sidecar_arguments(options: &WorldOptions, socket: &str, kubeconfig: &Path, facts: &DriverFacts) -> Vec<String> {
    let mut arguments = vec![
        "csi-provisioner".to_owned(),
        format!("--csi-address={socket}"),
        format!("--kubeconfig={}", kubeconfig.display()),
        // The defaults spare a busy cluster; here nobody else is served.
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        format!("--feature-gates=Topology={}", facts.has_topology),
    ];
    arguments.extend(options.sidecar_flags.iter().cloned());
    arguments
}

/// Writes a kubeconfig for a server without credentials.
pub fn write_kubeconfig(path: &Path, address: SocketAddr) -> anyhow::Result<()> {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: csi-sandbox\n\
         clusters:\n- name: csi-sandbox\n  cluster:\n    server: http://{address}\n\
         users:\n- name: csi-sandbox\n  user: {{}}\n\
         contexts:\n- name: csi-sandbox\n  context:\n    cluster: csi-sandbox\n    user: csi-sandbox\n"
    );
    fs::write(path, text)
        .with_context(|| format!("cannot write the kubeconfig {}; give --kubeconfig a writable path", path.display()))
}

/// A directory of this run, removed with its content at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(random: &Random) -> anyhow::Result<Self> {
        // Socket paths are limited to 107 bytes, so the name is short.
        let path = std::env::temp_dir().join(format!("csi-sandbox-{:08x}", random.below(1 << 32)));
        fs::create_dir(&path)
            .with_context(|| format!("cannot make the directory {}; set TMPDIR to a writable one", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind is small and in the directory for temporary files.
        let _left = fs::remove_dir_all(&self.0);
    }
}
