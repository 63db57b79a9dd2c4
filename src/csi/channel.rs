//! The way to the driver: a Unix socket that is dialled when needed, and again when the driver comes back.
//!
//! Promises:
//! - connecting never fails and never blocks a start: each dial that fails is an Unavailable of our side;
//! - the end of a working connection is counted in [`Connection::losses`], once, at that moment, even if nobody calls.
//!   Upstream ends the process then (provisioning.md 2.3); here the composition root probes and asks the name and
//!   capabilities again, because another driver may listen now.

use http::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::transport::Endpoint;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service};
use tracing::{info, warn};

/// Longest path that a Unix socket address holds on Linux: 108 bytes with the final zero.
const LONGEST_PATH: usize = 107;
/// Most bytes of headers or trailers that are read, as in Go. The HTTP library's own 16 KiB would turn a wordy refusal of
/// the driver into a failure of our side, and a final answer into an open one.
const LARGEST_HEADERS_BYTES: u32 = 16 * 1024 * 1024;

/// Pause between two lines about lost connections: who closes each one at once must not fill the log.
const LINE_PAUSE: Duration = Duration::from_secs(10);

type Inner = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// Any service that speaks gRPC to the driver; cheap to clone.
#[derive(Clone, Debug)]
pub struct Transport(Inner);

impl Transport {
    /// Wraps a tonic channel, or the driver's own service when it lives in this process.
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        let service = tower::util::MapErr::new(service, Into::into);
        Self(BoxCloneSyncService::new(service))
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = <Inner as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.call(request)
    }
}

/// A Unix socket with redial.
#[derive(Clone, Debug)]
pub struct Connection {
    /// For [`super::Calls`].
    pub transport: Transport,
    /// How often a working connection was lost so far.
    pub losses: watch::Receiver<u64>,
}

/// Why an address cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Only Unix sockets tell when the driver goes away.
    #[error(
        "the CSI address {0:?} is no Unix socket: give an absolute path (/run/csi/socket) or unix:///run/csi/socket"
    )]
    NotUnix(String),
    /// Nothing after the scheme.
    #[error("the CSI address {0:?} names no socket: give an absolute path (/run/csi/socket) or unix:///run/csi/socket")]
    Empty(String),
    /// The operating system's limit.
    #[error(
        "the path of the CSI address {0:?} is longer than the {LONGEST_PATH} bytes of a Unix socket address: mount the socket's directory at a shorter path"
    )]
    TooLong(String),
}

/// The socket's path in `address`: an absolute path or `unix://` and a path (provisioning.md 1.2).
pub fn parse_address(address: &str) -> Result<PathBuf, AddressError> {
    let path = match address.strip_prefix("unix://") {
        Some(path) => path,
        None if address.starts_with('/') => address,
        None => return Err(AddressError::NotUnix(address.to_owned())),
    };
    if path.is_empty() || path.contains('\0') {
        return Err(AddressError::Empty(address.to_owned()));
    }
    if path.len() > LONGEST_PATH {
        return Err(AddressError::TooLong(address.to_owned()));
    }
    Ok(PathBuf::from(path))
}

/// A connection that is dialled by the first call.
pub fn connect_lazily(path: PathBuf) -> Connection {
    let (losses, watcher) = watch::channel(0);
    let link = Link { connected: false, loss_told: true, next_line: Instant::now() };
    let dialler = Dialler { path: path.into(), losses: Arc::new(losses), link: Arc::new(Mutex::new(link)) };
    // The authority that Go clients send over Unix sockets; some servers check it.
    let endpoint = Endpoint::from_static("http://localhost").http2_max_header_list_size(LARGEST_HEADERS_BYTES);
    let channel = endpoint.connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
        let dialler = dialler.clone();
        async move { dialler.dial().await.map(TokioIo::new) }
    }));
    Connection { transport: Transport::new(channel), losses: watcher }
}

/// Dials, and knows whether the dial before this one worked.
#[derive(Clone)]
struct Dialler {
    path: Arc<Path>,
    losses: Arc<watch::Sender<u64>>,
    link: Arc<Mutex<Link>>,
}

/// The state of the connection, and what the log knows of it.
struct Link {
    connected: bool,
    loss_told: bool,
    next_line: Instant,
}

impl Dialler {
    async fn dial(&self) -> io::Result<Watched> {
        // The end of the last connection may have gone unseen, if our side closed it.
        self.lost();
        let stream = UnixStream::connect(&self.path).await?;
        let mut link = self.link();
        link.connected = true;
        if link.loss_told {
            info!(target: "csi", address = %self.path.display(), "connected to the CSI driver");
        }
        Ok(Watched { stream, dialler: self.clone() })
    }

    fn lost(&self) {
        let mut link = self.link();
        if !std::mem::replace(&mut link.connected, false) {
            return;
        }
        let now = Instant::now();
        link.loss_told = now >= link.next_line;
        if link.loss_told {
            link.next_line = now + LINE_PAUSE;
            warn!(target: "csi", address = %self.path.display(), "lost the connection to the CSI driver");
        }
        drop(link);
        self.losses.send_modify(|count| *count += 1);
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that tells its end: the HTTP library keeps it to itself until the next call.
struct Watched {
    stream: UnixStream,
    dialler: Dialler,
}

impl Watched {
    fn seen<T>(&self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(_)) = outcome {
            self.dialler.lost();
        }
        outcome
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (filled, room) = (buffer.filled().len(), buffer.remaining());
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        if matches!(outcome, Poll::Ready(Ok(()))) && buffer.filled().len() == filled && room > 0 {
            self.dialler.lost();
        }
        self.seen(outcome)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.seen(outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.seen(outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.seen(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_path_is_an_address() {
        assert_eq!(parse_address("/run/csi/socket"), Ok(PathBuf::from("/run/csi/socket")));
    }

    #[test]
    fn unix_scheme_is_an_address() {
        assert_eq!(parse_address("unix:///run/csi/socket"), Ok(PathBuf::from("/run/csi/socket")));
    }

    #[test]
    fn other_schemes_are_refused_with_the_fix() {
        for address in ["tcp://10.0.0.1:9000", "dns:///driver", "run/csi/socket", "unix:/run/csi/socket", ""] {
            let error = parse_address(address).expect_err(address);
            assert_eq!(error, AddressError::NotUnix(address.to_owned()));
            assert!(error.to_string().contains("unix:///run/csi/socket"), "{error}");
        }
    }

    #[test]
    fn scheme_without_a_path_is_refused() {
        assert_eq!(parse_address("unix://"), Err(AddressError::Empty("unix://".to_owned())));
    }

    #[test]
    fn path_beyond_the_systems_limit_is_refused_at_start() {
        let longest = format!("/{}", "x".repeat(LONGEST_PATH - 1));
        assert!(parse_address(&longest).is_ok());
        let longer = format!("{longest}x");
        assert_eq!(parse_address(&longer), Err(AddressError::TooLong(longer)));
    }
}
