//! A proxy in front of the API server that stops a sidecar at chosen requests.
//!
//! It speaks plain HTTP to the sidecar and passes requests on with the sidecar's own rights. A request that is held
//! before the server never gets there; one that is held after it was done, but its answer is not told.

use super::plane::Plane;
use super::wait::{SOON, wait_until};
use super::world::World;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::convert::Infallible;
use std::fs;
use std::future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It waits for ever in front of the server.
    HoldBefore,
    /// The server does it, and the answer waits for ever.
    HoldAfter,
    /// The server does it, and the connection is cut instead of an answer.
    CutAfter,
    /// "Too many requests", with this many seconds to wait.
    Refuse(u32),
}

struct Rule {
    method: Method,
    /// What the path contains.
    path: String,
    fault: Fault,
    /// How many requests it still takes; the last ones pass.
    left: usize,
    met: usize,
}

#[derive(Default)]
struct Rules(Mutex<Vec<Rule>>);

impl Rules {
    fn lock(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut rules = self.lock();
        let rule = rules.iter_mut().find(|rule| rule.left > 0 && rule.method == method && path.contains(&rule.path))?;
        rule.left -= 1;
        rule.met += 1;
        Some(rule.fault)
    }
}

/// See above. It ends with the test process.
pub struct Proxy {
    rules: Arc<Rules>,
    kubeconfig: PathBuf,
}

impl Proxy {
    /// Listens at a free port, for one world's sidecar.
    pub fn start(world: &World) -> Self {
        let rules = Arc::new(Rules::default());
        let (listener, upstream) = (std::net::TcpListener::bind("127.0.0.1:0").expect("a port"), world.plane.sidecar());
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a socket");
        let kubeconfig = world.dir.join("proxy.kubeconfig");
        let text = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody", "namespace": "default"}}],
        });
        fs::write(&kubeconfig, text.to_string()).expect("a kubeconfig");
        let (served, plane) = (Arc::clone(&rules), Arc::clone(&world.plane));
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(serve(listener, upstream, served, plane));
        });
        Self { rules, kubeconfig }
    }

    /// For `--kubeconfig`.
    pub fn flag(&self) -> String {
        format!("--kubeconfig={}", self.kubeconfig.display())
    }

    /// From now on every request of this method whose path contains this meets the fault.
    pub fn meets(&self, method: &Method, path: &str, fault: Fault) {
        self.meets_first(usize::MAX, method, path, fault);
    }

    /// The same for the next requests only.
    pub fn meets_first(&self, count: usize, method: &Method, path: &str, fault: Fault) {
        let (method, path) = (method.clone(), path.to_owned());
        self.rules.lock().push(Rule { method, path, fault, left: count, met: 0 });
    }

    /// How many requests met a fault.
    pub fn met(&self) -> usize {
        self.rules.lock().iter().map(|rule| rule.met).sum()
    }

    /// Waits until a request has met a fault.
    #[track_caller]
    pub fn reached(&self) {
        wait_until("a request meets the fault", SOON, || self.met() > 0);
    }

    /// From now on everything passes. What is held stays so.
    pub fn clear(&self) {
        self.rules.lock().clear();
    }
}

async fn serve(listener: std::net::TcpListener, upstream: PathBuf, rules: Arc<Rules>, _plane: Arc<Plane>) {
    let file = Kubeconfig::read_from(upstream).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("a usable kubeconfig")).expect("a client");
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((stream, _)) = listener.accept().await {
        let (client, rules) = (client.clone(), Arc::clone(&rules));
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(request, client.clone(), Arc::clone(&rules)));
            // A cut connection is what some tests want.
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await.ok();
        });
    }
}

/// An answer, or an error that cuts the connection.
async fn answer(
    request: Request<Incoming>,
    client: Client,
    rules: Arc<Rules>,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let (mut head, body) = request.into_parts();
    let fault = rules.fault(&head.method, head.uri.path());
    match fault {
        Some(Fault::HoldBefore) => never(future::pending().await),
        Some(Fault::Refuse(seconds)) => {
            let status = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429}"#;
            let response = Response::builder().status(StatusCode::TOO_MANY_REQUESTS).header("Retry-After", seconds);
            return Ok(response.header("Content-Type", "application/json").body(status.as_bytes().to_vec().into())?);
        }
        Some(Fault::HoldAfter | Fault::CutAfter) | None => {}
    }
    for header in ["host", "connection", "authorization", "content-length", "transfer-encoding"] {
        head.headers.remove(header);
    }
    head.version = http::Version::default();
    let body = body.collect().await?.to_bytes();
    // Sent on even if the sidecar is killed meanwhile: what reached the proxy reached the server.
    let sent = tokio::spawn(async move { client.send(Request::from_parts(head, body.into())).await });
    let response = sent.await??;
    match fault {
        Some(Fault::HoldAfter) => never(future::pending().await),
        Some(Fault::CutAfter) => Err("cut".into()),
        Some(Fault::HoldBefore | Fault::Refuse(_)) | None => {
            let (mut head, body) = response.into_parts();
            for header in ["connection", "content-length", "transfer-encoding"] {
                head.headers.remove(header);
            }
            Ok(Response::from_parts(head, body))
        }
    }
}

fn never<T>(nothing: Infallible) -> T {
    match nothing {}
}
