//! Connects to the API server.
//!
//! Promises:
//! - one pool of connections for everything; each class of traffic has its own bucket, so that nothing important waits
//!   behind events (design idea 5) and the lease never waits behind anything (provisioning.md W29);
//! - no retries below the callers, no proxies, a deadline for each call;
//! - a dead peer is noticed: idle connections are probed by TCP keep-alive, spare ones are closed after a while;
//! - an error names the file or URL and the next step, in one line.
//!
//! The stack is built here and not by `kube`, because its own keeps every connection of a burst for ever, sends no
//! keep-alive and no user agent. Its layers for addresses, credentials and TLS are used unchanged.

use super::limiter::{AnswerBody, Limit, LimitLayer, ThrottleObserver};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::BodyExt;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::config::{Cluster, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedCluster};
use kube::{Client, Config};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, Service, ServiceExt};

/// Longest time of one call, from leaving the queue of its bucket to the last byte of the answer.
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);
/// The lease needs one call per retry period; this only stops a loop that runs wild.
const LEASE_LIMIT: Limit = Limit { qps: 10.0, burst: 20 };
/// A connection without traffic is probed after this time, then twice at [`PROBE_INTERVAL`]: a dead peer is noticed
/// within a minute, as with client-go's HTTP/2 pings.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;
/// Spare connections: few, and not for long, because each costs buffers and TLS state (goal: 9 MiB resident).
const SPARE_CONNECTIONS: usize = 8;
const SPARE_TIME: Duration = Duration::from_secs(20);
/// Largest read buffer of a connection: a watch keeps for good what the burst of its first list made it grow to, by
/// default 400 KiB. Above the largest TLS record, so that reads stay whole.
const READ_BUFFER: usize = 32 << 10;
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Where the API server is and how fast it may be asked.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// `--master`: URL that wins over the kubeconfig's.
    pub master: Option<String>,
    /// `--kubeconfig` or the environment; without it and without a master URL: in-cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Rates of the buckets.
    pub rates: Rates,
}

/// Rates of the buckets that flags decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// `--kube-api-qps`, `--kube-api-burst`: the main bucket and, once more, the events' bucket.
    pub main: Limit,
    /// `--kube-api-capacity-qps`, `--kube-api-capacity-burst`.
    pub capacity: Limit,
    /// See [`CALL_DEADLINE`].
    pub deadline: Duration,
}

/// One client per class of traffic, all over the same connections. `default_namespace` of each is the namespace of the
/// pod or of the kubeconfig's context.
#[derive(Clone)]
pub struct Clients {
    /// Volume objects, finalizers, reads.
    pub main: Client,
    /// Events.
    pub events: Client,
    /// The leader's lease.
    pub lease: Client,
    /// Storage capacity objects.
    pub capacity: Client,
    /// Watches and their lists; unlimited.
    pub watch: Client,
}

/// Why no client could be built. Nothing is sent to the server yet.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is missing or wrong.
    #[error(
        "cannot use kubeconfig {file}: {reason}; correct --kubeconfig (or KUBECONFIG), or leave it out inside a pod"
    )]
    Kubeconfig {
        /// Path as given.
        file: String,
        /// What is wrong with it, without any of its content.
        reason: String,
    },
    /// Not inside a pod, and nothing else given.
    #[error("cannot use the pod's service account: {0}; outside of a pod give --kubeconfig or --master")]
    InCluster(#[from] InClusterError),
    /// `--master` is no URL.
    #[error("--master {url:?} is not a URL ({reason}); give one like https://10.0.0.1:6443")]
    Master {
        /// As given.
        url: String,
        /// Why not.
        reason: String,
    },
    /// A proxy is asked for.
    #[error(
        "the API server is to be reached through the proxy {0}, which is not supported; remove proxy-url from the kubeconfig and HTTPS_PROXY from the environment"
    )]
    Proxy(Uri),
    /// Credentials or certificates cannot be used.
    #[error("cannot set up the connection to {url}: {reason}; check certificates and credentials in {origin}")]
    Setup {
        /// API server.
        url: Uri,
        /// What is wrong.
        reason: Box<kube::Error>,
        /// Kubeconfig path, or the service account.
        origin: String,
    },
}

// === impl Rates ===

impl Default for Rates {
    fn default() -> Self {
        let (main, capacity) = (Limit { qps: 5.0, burst: 10 }, Limit { qps: 1.0, burst: 5 });
        Self { main, capacity, deadline: CALL_DEADLINE }
    }
}

// === impl Clients ===

/// Reads the configuration and builds the clients; connections are opened by the first call.
///
/// Must run inside a tokio runtime.
pub async fn connect(options: &ConnectOptions, observer: Arc<dyn ThrottleObserver>) -> Result<Clients, ConnectError> {
    let (config, origin) = read_config(options).await?;
    if let Some(proxy) = &config.proxy_url {
        return Err(ConnectError::Proxy(proxy.clone()));
    }
    let service = service(&config).map_err(|reason| ConnectError::Setup {
        url: config.cluster_url.clone(),
        reason: Box::new(reason),
        origin,
    })?;
    Ok(Clients::build(&service, &config.default_namespace, options.rates, &observer))
}

impl Clients {
    /// Clients over any service that speaks the Kubernetes API, such as one in this process.
    pub fn over<S, B>(service: S, rates: Rates, observer: &Arc<dyn ThrottleObserver>) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::build(&boxed(service), "default", rates, observer)
    }

    fn build(service: &Inner, namespace: &str, rates: Rates, observer: &Arc<dyn ThrottleObserver>) -> Self {
        let client = |name, limit| {
            let layer = LimitLayer::new(name, limit, rates.deadline, observer.clone());
            Client::new(layer.layer(service.clone()), namespace)
        };
        Self {
            main: client("main", Some(rates.main)),
            events: client("events", Some(rates.main)),
            lease: client("lease", Some(LEASE_LIMIT)),
            capacity: client("capacity", Some(rates.capacity)),
            watch: client("watch", None),
        }
    }
}

type Inner = BoxCloneService<Request<Body>, Response<AnswerBody>, BoxError>;

fn boxed<S, B>(service: S) -> Inner
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    service
        .map_err(Into::into)
        .map_response(|answer: Response<B>| answer.map(|body| body.map_err(Into::into).boxed_unsync()))
        .boxed_clone()
}

/// The configuration and where it came from.
async fn read_config(options: &ConnectOptions) -> Result<(Config, String), ConnectError> {
    let master = options.master.as_deref().filter(|url| !url.is_empty()).map(parse_master).transpose()?;
    let file = options.kubeconfig.as_ref().filter(|path| !path.as_os_str().is_empty());
    match (file, master) {
        (Some(path), master) => {
            let origin = path.display().to_string();
            let wrong = |error| ConnectError::Kubeconfig { file: origin.clone(), reason: what_is_wrong(&error) };
            let mut kubeconfig = Kubeconfig::read_from(path).map_err(wrong)?;
            if let Some(url) = master {
                set_server(&mut kubeconfig, &url);
            }
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
            Ok((config.map_err(wrong)?, origin))
        }
        (None, Some(url)) => Ok((Config::new(url), "--master".to_owned())),
        (None, None) => Ok((Config::incluster()?, "the service account".to_owned())),
    }
}

/// The YAML parser's text quotes lines of the file, and with them tokens: only the place is told.
fn what_is_wrong(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(parse) => parse.location().map_or_else(
            || "it is not a kubeconfig".to_owned(),
            |place| format!("it is not a kubeconfig, see line {}, column {}", place.line(), place.column()),
        ),
        other => other.to_string(),
    }
}

/// As client-go reads it: without a scheme it is plain HTTP.
fn parse_master(text: &str) -> Result<Uri, ConnectError> {
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let wrong = |reason: String| ConnectError::Master { url: text.to_owned(), reason };
    let parsed: Uri = url.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
    match parsed.scheme_str() {
        Some("http" | "https") if parsed.host().is_some_and(|host| !host.is_empty()) => Ok(parsed),
        Some(_) | None => Err(wrong("it needs http or https and a host".to_owned())),
    }
}

/// Replaces the server of all clusters, so that also the current context's is replaced.
fn set_server(kubeconfig: &mut Kubeconfig, url: &Uri) {
    for NamedCluster { cluster, .. } in &mut kubeconfig.clusters {
        cluster.get_or_insert_with(Cluster::default).server = Some(url.to_string());
    }
}

/// Connections, TLS, address and credentials.
fn service(config: &Config) -> Result<Inner, kube::Error> {
    let mut config = config.clone();
    let agent = HeaderValue::from_static(concat!("csi-provisioner/", env!("CARGO_PKG_VERSION")));
    config.headers.push((header::USER_AGENT, agent));
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_DEADLINE));
    tcp.set_keepalive(Some(PROBE_AFTER));
    tcp.set_keepalive_interval(Some(PROBE_INTERVAL));
    tcp.set_keepalive_retries(Some(PROBES));
    let connections = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(SPARE_TIME)
        .pool_max_idle_per_host(SPARE_CONNECTIONS)
        .http1_max_buf_size(READ_BUFFER)
        .build::<_, Body>(config.rustls_https_connector_with_connector(tcp)?)
        .map_err(BoxError::from);
    let with_headers = config.extra_headers_layer()?.layer(connections);
    let address = config.base_uri_layer();
    match config.auth_layer()? {
        Some(credentials) => Ok(boxed(address.layer(credentials.layer(with_headers)))),
        None => Ok(boxed(address.layer(with_headers))),
    }
}

#[cfg(test)]
mod tests;
