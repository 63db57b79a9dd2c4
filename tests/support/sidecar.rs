//! Sidecars: ours, and the Go one for comparison.

use super::plane;
use super::process::Process;
use super::wait::wait_until;
use super::world::World;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How to start a sidecar. The same program may be started again and again.
pub struct Sidecar {
    program: PathBuf,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    log: PathBuf,
    process: Option<Process>,
}

impl Sidecar {
    fn new(program: PathBuf, world: &World, name: &str, socket: &Path) -> Self {
        let flags = [
            format!("--csi-address={}", socket.display()),
            format!("--kubeconfig={}", world.plane.sidecar().display()),
            "--kube-api-qps=100".to_owned(),
            "--kube-api-burst=200".to_owned(),
            "--retry-interval-start=200ms".to_owned(),
            "--v=5".to_owned(),
        ];
        let log = world.dir.join(format!("{name}.log"));
        let environment = vec![("POD_NAMESPACE".to_owned(), "default".to_owned())];
        Self { program, flags: flags.to_vec(), environment, log, process: None }
    }

    /// Ours.
    pub fn ours(world: &World, name: &str, socket: &Path) -> Self {
        Self::new(PathBuf::from(env!("CARGO_BIN_EXE_csi-provisioner")), world, name, socket)
    }

    /// The Go one.
    pub fn go(world: &World, name: &str, socket: &Path) -> Self {
        Self::new(plane::tool("csi-provisioner-go"), world, name, socket)
    }

    /// With one more flag; later ones win.
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// With one more environment variable.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts it.
    pub fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Starts it, again.
    pub fn start(&mut self) {
        let mut command = Command::new(&self.program);
        command.args(&self.flags).env_clear().envs(self.environment.iter().cloned());
        self.process = Some(Process::start(command, &self.log));
    }

    /// Ends it without a chance to say goodbye.
    pub fn kill(&mut self) {
        self.process().kill();
    }

    /// Asks it to end.
    pub fn terminate(&mut self) {
        self.process().signal("TERM");
    }

    /// Waits for its end: the exit code, or minus the number of the signal that ended it.
    #[track_caller]
    pub fn ends_within(&mut self, limit: Duration) -> i32 {
        self.process().ends_within(limit)
    }

    /// Whether it has not ended yet.
    pub fn runs(&mut self) -> bool {
        self.process().runs()
    }

    /// What it said since its last start.
    pub fn said(&mut self) -> String {
        self.process().said()
    }

    /// Waits until it says something.
    #[track_caller]
    pub fn says(&mut self, text: &str, limit: Duration) {
        wait_until(&format!("the sidecar says {text:?}"), limit, || self.said().contains(text));
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("the sidecar was started")
    }
}
