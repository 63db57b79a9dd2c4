//! Configurations as people give them, and the requests that leave.

use super::*;
use std::io::Write as _;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn kubeconfig(text: &str) -> (tempfile::Dir, ConnectOptions) {
    let dir = tempfile::Dir::new();
    let path = dir.path().join("config");
    std::fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
    (dir, ConnectOptions { kubeconfig: Some(path), ..ConnectOptions::default() })
}

fn nobody() -> Arc<dyn ThrottleObserver> {
    Arc::new(())
}

/// A directory that goes away with the test.
mod tempfile {
    use std::path::{Path, PathBuf};

    pub(super) struct Dir(PathBuf);

    impl Dir {
        pub(super) fn new() -> Self {
            let dir = std::env::temp_dir().join(format!("kube-{}", crate::random::Random::from_os().uuid()));
            std::fs::create_dir(&dir).unwrap();
            Self(dir)
        }

        pub(super) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

const CONFIG: &str = "
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u, namespace: storage}}]
clusters: [{name: k, cluster: {server: 'https://10.0.0.1:6443', insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t0ken}}]
";

async fn failure(options: &ConnectOptions) -> String {
    connect(options, nobody()).await.map(|_| ()).unwrap_err().to_string()
}

#[tokio::test(flavor = "current_thread")]
async fn kubeconfig_gives_server_and_namespace() {
    let (_dir, options) = kubeconfig(CONFIG);
    let clients = connect(&options, nobody()).await.unwrap();
    assert_eq!(clients.main.default_namespace(), "storage");
}

#[tokio::test(flavor = "current_thread")]
async fn missing_kubeconfig_is_named_with_the_next_step() {
    let options = ConnectOptions { kubeconfig: Some("/nowhere/config".into()), ..ConnectOptions::default() };
    let text = failure(&options).await;
    assert!(text.starts_with("cannot use kubeconfig /nowhere/config: "), "{text}");
    assert!(text.contains("correct --kubeconfig") && !text.contains('\n'), "{text}");
}

#[tokio::test(flavor = "current_thread")]
async fn broken_kubeconfig_is_told_in_one_line_without_its_token() {
    let (_dir, options) = kubeconfig(&CONFIG.replace("clusters: [", "clusters: [[ {name: t0ken"));
    let text = failure(&options).await;
    assert!(!text.contains('\n') && !text.contains("t0ken"), "{text}");
}

#[tokio::test(flavor = "current_thread")]
async fn outside_of_a_pod_the_flags_are_named() {
    let text = failure(&ConnectOptions::default()).await;
    assert!(text.ends_with("outside of a pod give --kubeconfig or --master"), "{text}");
}

#[tokio::test(flavor = "current_thread")]
async fn proxy_is_refused() {
    let (_dir, options) = kubeconfig(&CONFIG.replace("cluster: {server", "cluster: {proxy-url: 'http://p:1', server"));
    assert!(failure(&options).await.starts_with("the API server is to be reached through the proxy http://p:1/"));
}

#[test]
fn master_without_scheme_is_plain_http() {
    assert_eq!(parse_master("localhost:8080").unwrap().to_string(), "http://localhost:8080/");
    assert_eq!(parse_master("https://h/prefix").unwrap().to_string(), "https://h/prefix");
}

#[test]
fn master_that_is_no_url_is_refused_with_an_example() {
    let text = parse_master("ftp://h").unwrap_err().to_string();
    assert!(text.contains("\"ftp://h\"") && text.contains("https://10.0.0.1:6443"), "{text}");
}

#[tokio::test(flavor = "current_thread")]
async fn master_wins_over_the_server_of_the_kubeconfig() {
    let (_dir, mut options) = kubeconfig(CONFIG);
    options.master = Some("https://other:1".to_owned());
    assert_eq!(read_config(&options).await.unwrap().0.cluster_url.to_string(), "https://other:1/");
}

#[tokio::test(flavor = "current_thread")]
async fn request_carries_user_agent_and_token() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (_dir, mut options) = kubeconfig(CONFIG);
    options.master = Some(format!("{}/prefix", listener.local_addr().unwrap()));
    let clients = connect(&options, nobody()).await.unwrap();
    let server = async {
        let (mut peer, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let read = peer.read(&mut head).await.unwrap();
        peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        String::from_utf8_lossy(&head[..read]).to_lowercase()
    };
    let objects = super::super::objects::Objects::new(clients.main);
    let path = super::super::objects::Path::core("nodes").name("n");
    let (head, answer) = tokio::join!(server, objects.get::<serde_json::Value>(&path));
    assert_eq!(answer.unwrap(), serde_json::json!({}));
    assert!(head.starts_with("get /prefix/api/v1/nodes/n http/1.1\r\n"), "{head}");
    assert!(head.contains(concat!("user-agent: csi-provisioner/", env!("CARGO_PKG_VERSION"))), "{head}");
    assert!(head.contains("authorization: bearer t0ken"), "{head}");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn each_class_of_traffic_has_its_own_bucket() {
    let sent = Arc::new(Mutex::new(0));
    let service = tower::service_fn({
        let sent = sent.clone();
        move |_: Request<Body>| {
            *sent.lock().unwrap() += 1;
            std::future::ready(Ok::<_, BoxError>(Response::new(Body::empty())))
        }
    });
    let clients = Clients::over(service, Rates::default(), &nobody());
    let call = |client: Client| async move { client.send(Request::get("/api").body(Body::empty()).unwrap()).await };
    let began = tokio::time::Instant::now();
    futures::future::join_all((0..10).map(|_| call(clients.main.clone()))).await;
    futures::future::join_all((0..10).map(|_| call(clients.events.clone()))).await;
    call(clients.lease.clone()).await.unwrap();
    futures::future::join_all((0..5).map(|_| call(clients.capacity.clone()))).await;
    assert_eq!((began.elapsed(), *sent.lock().unwrap()), (Duration::ZERO, 26));
    call(clients.main).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(200));
    call(clients.capacity).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(1));
}
