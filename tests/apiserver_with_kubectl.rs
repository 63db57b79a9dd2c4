//! The sandbox's API server as the real kubectl sees it.
//!
//! Needs the tools of `e2e/tools/build`; `KUBECTL` names another kubectl.
#![cfg(feature = "sandbox")]

use csi_provisioner::clock::Clock;
use csi_provisioner::random::Random;
use csi_provisioner::sandbox::apiserver::{ApiServer, serve};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tokio_util::sync::CancellationToken;

const MANIFEST: &str = r"
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: driver.example.org
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  resources: {requests: {storage: 1024Mi}}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: snap}
spec: {source: {persistentVolumeClaimName: data}}
";

struct Kubectl {
    program: PathBuf,
    home: PathBuf,
    address: String,
    _stop: tokio_util::sync::DropGuard,
}

impl Kubectl {
    async fn with_server(server: &ApiServer, test: &str) -> Self {
        let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("e2e/tools/bin/kubectl");
        let program = std::env::var_os("KUBECTL").map_or(built, PathBuf::from);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let stop = CancellationToken::new();
        tokio::spawn(serve(server.clone(), listener, stop.clone()));
        let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("kubectl-{test}"));
        std::fs::create_dir_all(&home).expect("a folder");
        Self { program, home, address, _stop: stop.drop_guard() }
    }

    /// Runs kubectl and returns its output, with what it said on stderr behind it.
    fn run(&self, arguments: &[&str], input: &str) -> String {
        tokio::task::block_in_place(|| {
            let mut child = Command::new(&self.program)
                .args(["--server", &self.address, "--kubeconfig", "/dev/null"])
                .args(arguments)
                .env("HOME", &self.home)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("kubectl starts");
            child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("kubectl reads");
            let output = child.wait_with_output().expect("kubectl ends");
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
        })
    }
}

fn server() -> ApiServer {
    ApiServer::new(Clock::system(), Random::seeded(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs kubectl from e2e/tools"]
async fn cluster_kubectl_applies_twice_and_shows_what_there_is() {
    let kubectl = Kubectl::with_server(&server(), "apply").await;
    let first = kubectl.run(&["apply", "-f", "-"], MANIFEST);
    assert_eq!(first.matches(" created").count(), 3, "{first}");
    let second = kubectl.run(&["apply", "-f", "-"], &MANIFEST.replace("{name: fast}", "{name: fast, labels: {a: b}}"));
    assert!(second.contains("storageclass.storage.k8s.io/fast configured"), "{second}");
    let claims = kubectl.run(&["get", "pvc", "data", "--no-headers"], "");
    assert_eq!(claims.split_whitespace().take(4).collect::<Vec<_>>(), ["data", "Pending", "fast", "<unset>"]);
    let size = kubectl.run(&["get", "pvc", "data", "-o", "jsonpath={.spec.resources.requests.storage}"], "");
    assert_eq!(size, "1Gi");
    let described = kubectl.run(&["describe", "pvc", "data"], "");
    assert!(described.contains("Finalizers:    [kubernetes.io/pvc-protection]"), "{described}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs kubectl from e2e/tools"]
async fn cluster_kubectl_creates_what_it_sends_as_protobuf() {
    let server = server();
    let kubectl = Kubectl::with_server(&server, "create").await;
    assert_eq!(kubectl.run(&["create", "namespace", "shop"], ""), "namespace/shop created\n");
    let secret = kubectl.run(&["create", "-n", "shop", "secret", "generic", "s", "--from-literal=a=b"], "");
    assert_eq!(secret, "secret/s created\n");
    assert_eq!(server.get("secrets", "shop", "s").expect("stored")["data"]["a"], "Yg==");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs kubectl from e2e/tools"]
async fn cluster_kubectl_waits_for_a_namespace_to_go() {
    let server = server();
    let kubectl = Kubectl::with_server(&server, "delete").await;
    server.ensure_namespace("shop");
    kubectl.run(&["create", "-n", "shop", "configmap", "c"], "");
    let deleted = kubectl.run(&["delete", "namespace", "shop", "--timeout=20s"], "");
    assert_eq!(deleted, "namespace \"shop\" deleted\n");
    assert_eq!(server.get("namespaces", "", "shop").map_err(|refusal| refusal.code()).err(), Some(404));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs kubectl from e2e/tools"]
async fn cluster_kubectl_tells_every_wrong_field() {
    let kubectl = Kubectl::with_server(&server(), "wrong").await;
    let bad = r#"{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"capacity": {"storage": "0"}}}"#;
    let told = kubectl.run(&["create", "-f", "-"], bad);
    for field in [
        "* spec.accessModes: Required value",
        "* spec.capacity[storage]: Invalid value",
        "* spec: Required value: must specify a volume type",
    ] {
        assert!(told.contains(field), "{field} in {told}");
    }
}

/// Stops the controller manager at the end, however the test ends.
struct Stopped(std::process::Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        // Already dead is as good.
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs kube-controller-manager from e2e/tools"]
async fn cluster_controller_manager_binds_and_protects_on_the_sandbox() {
    let server = server();
    server.namespace_sweep(false);
    let kubectl = Kubectl::with_server(&server, "controllers").await;
    let kubeconfig = kubectl.home.join("kubeconfig");
    let cluster = format!("clusters: [{{name: s, cluster: {{server: \"{}\"}}}}]", kubectl.address);
    let context =
        "contexts: [{name: s, context: {cluster: s, user: s}}]\ncurrent-context: s\nusers: [{name: s, user: {}}]";
    std::fs::write(&kubeconfig, format!("apiVersion: v1\nkind: Config\n{cluster}\n{context}\n")).expect("written");
    let manager = Command::new(kubectl.program.with_file_name("kube-controller-manager"))
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args(["--kube-api-content-type=application/json", "--leader-elect=false", "--secure-port=0"])
        .arg("--controllers=persistentvolume-binder-controller,persistentvolumeclaim-protection-controller")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _manager = Stopped(manager.expect("kube-controller-manager starts"));
    let spec = serde_json::json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "capacity": {"storage": "1Gi"},
        "csi": {"driver": "driver.example.org", "volumeHandle": "h"},
    });
    let volume = serde_json::json!({"metadata": {"name": "v"}, "spec": spec});
    server.create("persistentvolumes", "", volume).expect("created");
    wait_for(&server, ("persistentvolumes", "", "v"), "Available").await;
    let spec = serde_json::json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}},
    });
    let claim = serde_json::json!({"metadata": {"name": "c"}, "spec": spec});
    server.create("persistentvolumeclaims", "default", claim).expect("created");
    wait_for(&server, ("persistentvolumeclaims", "default", "c"), "Bound").await;
    let deleted = kubectl.run(&["delete", "pvc", "c", "--timeout=30s"], "");
    assert_eq!(deleted, "persistentvolumeclaim \"c\" deleted from default namespace\n");
    wait_for(&server, ("persistentvolumes", "", "v"), "Released").await;
}

async fn wait_for(server: &ApiServer, (plural, namespace, name): (&str, &str, &str), phase: &str) {
    let mut watch = server.watch(plural, namespace).expect("served");
    let reached = async {
        while let Ok(event) = watch.next().await {
            if event.object["metadata"]["name"] == name && event.object["status"]["phase"] == phase {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), reached).await.expect("in time");
}
