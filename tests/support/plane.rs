//! Control planes: one for most tests of a run, others for tests that break it or need another API server.

use super::guard;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Folder of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The script that starts and stops control planes.
pub fn script() -> PathBuf {
    repository().join("e2e/control-plane")
}

/// One of the programs that e2e/tools/build makes.
pub fn tool(name: &str) -> PathBuf {
    let path = repository().join("e2e/tools/bin").join(name);
    assert!(path.exists(), "e2e/tools/bin/{name} is missing; build it with: e2e/tools/build {name}");
    path
}

/// etcd, kube-apiserver and kube-controller-manager. Ends when dropped.
pub struct Plane {
    dir: PathBuf,
}

static SHARED: LazyLock<Arc<Plane>> = LazyLock::new(|| Arc::new(Plane::start("plane", &[])));

impl Plane {
    /// The one that tests share. It lives as long as the test process.
    pub fn shared() -> Arc<Self> {
        Arc::clone(&SHARED)
    }

    /// An own one, with more environment for e2e/control-plane.
    pub fn start(name: &str, environment: &[(&str, &str)]) -> Self {
        for name in ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"] {
            tool(name);
        }
        let dir = guard::folder().join(name);
        guard::tell(&format!("plane {}", dir.display()));
        let mut all = BTreeMap::from([("AUDIT", "1")]);
        all.extend(environment.iter().copied());
        let plane = Self { dir };
        plane.command("up", &all);
        plane
    }

    /// Kills the API server and starts it again at the same port.
    pub fn restart_apiserver_hard(&self) {
        self.command("restart-apiserver", &BTreeMap::from([("HARD", "1")]));
    }

    /// Kills the API server.
    pub fn stop_apiserver(&self) {
        self.command("stop-apiserver", &BTreeMap::from([("HARD", "1")]));
    }

    /// Starts it again.
    pub fn start_apiserver(&self) {
        self.command("start-apiserver", &BTreeMap::new());
    }

    /// Rights of everything.
    pub fn admin(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// Rights of e2e/role.yaml.
    pub fn sidecar(&self) -> PathBuf {
        self.dir.join("sidecar.kubeconfig")
    }

    /// Every finished request, one JSON line each.
    pub fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    /// Creates what a file of the repository holds.
    pub fn apply(&self, file: &str) {
        // Two at once may both find that it is missing, and the second creation fails.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let output = Command::new(tool("kubectl"))
            .arg("--kubeconfig")
            .arg(self.admin())
            .args(["apply", "-f"])
            .arg(repository().join(file))
            .output()
            .expect("kubectl starts");
        assert!(output.status.success(), "kubectl apply -f {file}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn command(&self, command: &str, environment: &BTreeMap<&str, &str>) {
        let output = Command::new(script()).arg(command).arg(&self.dir).envs(environment).output();
        let output = output.expect("e2e/control-plane starts");
        assert!(output.status.success(), "e2e/control-plane {command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        Command::new(script()).arg("down").arg(&self.dir).output().ok();
    }
}
