//! A driver with one scripted answer, behind a proxy that can be cut or stopped.
//!
//! Client -> proxy socket -> driver socket, all real. Cutting the proxy looks like the death of the driver: what it wrote
//! before arrives, then the connection ends.

use axum::Router;
use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use csi_provisioner::csi::channel::{self, Connection};
use csi_provisioner::csi::proto::v1;
use csi_provisioner::csi::{CallObserver, Calls, CreateReply};
use csi_provisioner::model::{CallError, CreateRequest};
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the driver does with every call.
#[derive(Clone)]
pub enum Answer {
    /// These parts after the headers, then the end.
    Parts(Vec<Part>),
    /// These parts after the headers, then nothing, for ever.
    ThenSilence(Vec<Part>),
    /// Headers that end the call at once.
    HeadersOnly(Vec<(&'static str, &'static str)>),
    /// A plain HTTP status.
    Http(u16),
    /// Headers, then a reset of the stream.
    Reset,
    /// Not even headers.
    Silence,
}

/// Part of a body.
#[derive(Clone)]
pub enum Part {
    /// One gRPC message.
    Data(Bytes),
    /// The end of the call.
    Trailers(HeaderMap),
}

/// The encoded answer to `CreateVolume`.
pub fn reply() -> Vec<u8> {
    let volume = v1::Volume { volume_id: "vol-1".to_owned(), capacity_bytes: 7, ..v1::Volume::default() };
    v1::CreateVolumeResponse { volume: Some(volume) }.encode_to_vec()
}

pub fn data(message: &[u8]) -> Part {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).expect("small enough"));
    framed.put_slice(message);
    Part::Data(framed.freeze())
}

pub fn trailers(status: u16, message: &str) -> Part {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.into());
    trailers.insert("grpc-message", HeaderValue::from_str(message).expect("ASCII"));
    Part::Trailers(trailers)
}

async fn respond(answer: Answer) -> Response<Body> {
    let builder = Response::builder().header("content-type", "application/grpc");
    let frames = |parts: Vec<Part>| {
        futures::stream::iter(parts.into_iter().map(|part| match part {
            Part::Data(message) => Ok::<_, std::io::Error>(Frame::data(message)),
            Part::Trailers(trailers) => Ok(Frame::trailers(trailers)),
        }))
    };
    let answered = match answer {
        Answer::HeadersOnly(headers) => {
            headers.into_iter().fold(builder, |builder, (name, value)| builder.header(name, value)).body(Body::empty())
        }
        Answer::Http(status) => builder.status(status).body(Body::empty()),
        Answer::Silence => std::future::pending().await,
        Answer::Reset => {
            let broken = futures::stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::other("broken"))]);
            builder.body(Body::new(StreamBody::new(broken)))
        }
        Answer::Parts(parts) => builder.body(Body::new(StreamBody::new(frames(parts)))),
        Answer::ThenSilence(parts) => {
            builder.body(Body::new(StreamBody::new(frames(parts).chain(futures::stream::pending()))))
        }
    };
    answered.expect("a response")
}

/// What the observer was told: driver, method, code, migrated.
pub type Told = (String, &'static str, String, Option<bool>);

#[derive(Default)]
pub struct Seen(Mutex<Vec<Told>>);

impl CallObserver for Seen {
    fn call_ended(&self, driver: &str, method: &'static str, code: &str, migrated: Option<bool>, _seconds: f64) {
        self.0.lock().expect("lock").push((driver.to_owned(), method, code.to_owned(), migrated));
    }
}

pub fn calls(connection: &Connection, seen: &Arc<Seen>) -> Calls {
    Calls::new(connection.transport.clone(), World::TIMEOUT, seen.clone())
}

/// Authority and deadline that the driver was told.
pub type Head = (String, String);

pub struct World {
    pub connection: Connection,
    pub proxy: Proxy,
    calls: Calls,
    seen: Arc<Seen>,
    called: watch::Receiver<u32>,
    last: Arc<Mutex<Option<Head>>>,
    directory: PathBuf,
    end: CancellationToken,
}

impl World {
    /// Deadline of each call; only tests with a paused clock reach it.
    pub const TIMEOUT: Duration = Duration::from_secs(20);

    /// Needs a runtime around it.
    pub fn start(answer: Answer) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("csi-calls-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).expect("a directory of our own");
        let (count, called) = watch::channel(0);
        let end = CancellationToken::new();
        let last: Arc<Mutex<Option<Head>>> = Arc::default();
        let noted = last.clone();
        let driver = Router::new().fallback(move |request: Request<Body>| {
            let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
            let deadline = request.headers().get("grpc-timeout").and_then(|value| value.to_str().ok());
            let authority = request.uri().authority().map(http::uri::Authority::as_str);
            *noted.lock().expect("lock") = Some((text(authority), text(deadline)));
            count.send_modify(|count| *count += 1);
            respond(answer.clone())
        });
        let listener = UnixListener::bind(directory.join("driver.sock")).expect("bind");
        let ended = end.clone();
        tokio::spawn(async move {
            tokio::select! { biased; () = ended.cancelled() => {}, _ = axum::serve(listener, driver) => {} }
        });

        let proxy = Proxy::new(directory.clone());
        proxy.start();
        let connection = channel::connect_lazily(directory.join("proxy.sock"));
        let seen = Arc::default();
        let calls = calls(&connection, &seen);
        calls.set_driver_name("drv", true);
        Self { connection, proxy, calls, seen, called, last, directory, end }
    }

    pub async fn create(&self) -> Result<CreateReply, CallError> {
        self.calls.create_volume(&CreateRequest { name: "pvc-1".to_owned(), ..CreateRequest::default() }, true).await
    }

    pub async fn create_error(&self) -> CallError {
        self.create().await.expect_err("the call fails")
    }

    pub fn seen(&self) -> Vec<Told> {
        self.seen.0.lock().expect("lock").clone()
    }

    /// Of the last call that reached the driver.
    pub fn last_head(&self) -> Option<Head> {
        self.last.lock().expect("lock").clone()
    }

    /// Until the driver has got a call.
    pub async fn called(&self) {
        self.called.clone().wait_for(|count| *count > 0).await.expect("the driver lives");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.end.cancel();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub struct Proxy {
    directory: PathBuf,
    /// HEADERS and DATA frames that went from the driver to the client.
    passed: Arc<watch::Sender<u32>>,
    /// Ends the connections.
    cut: Mutex<CancellationToken>,
    /// Ends the listener.
    stop: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Proxy {
    fn new(directory: PathBuf) -> Self {
        let cut = Mutex::new(CancellationToken::new());
        Self { directory, passed: Arc::new(watch::channel(0).0), cut, stop: Mutex::new(None) }
    }

    pub fn start(&self) {
        let cut = CancellationToken::new();
        *self.cut.lock().expect("lock") = cut.clone();
        let listener = UnixListener::bind(self.directory.join("proxy.sock")).expect("bind");
        let (driver, passed) = (self.directory.join("driver.sock"), self.passed.clone());
        let accept = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let driver = UnixStream::connect(&driver).await.expect("the driver listens");
                let (cut, passed) = (cut.clone(), passed.clone());
                tokio::spawn(async move {
                    tokio::select! { biased; () = cut.cancelled() => {}, () = carry(client, driver, &passed) => {} }
                });
            }
        });
        *self.stop.lock().expect("lock") = Some(accept);
    }

    /// Ends all connections; new ones are accepted.
    pub fn cut(&self) {
        self.cut.lock().expect("lock").cancel();
    }

    /// Ends the connections and the listener, and takes the socket away.
    pub async fn stop(&self) {
        self.cut();
        let accept = self.stop.lock().expect("lock").take().expect("it runs");
        accept.abort();
        let _ = accept.await;
        std::fs::remove_file(self.directory.join("proxy.sock")).expect("the socket's file");
    }

    /// Until so many HEADERS and DATA frames of the driver have reached the client's socket.
    pub async fn frames_passed(&self, count: u32) {
        self.passed.subscribe().wait_for(|passed| *passed >= count).await.expect("the proxy lives");
    }
}

async fn carry(client: UnixStream, driver: UnixStream, passed: &watch::Sender<u32>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_driver, mut to_driver) = driver.into_split();
    let upwards = async {
        let _ = tokio::io::copy(&mut from_client, &mut to_driver).await;
    };
    let downwards = async {
        // Whole frames: nine bytes of header, of which three are the length and the fourth the type.
        let mut header = [0; 9];
        while from_driver.read_exact(&mut header).await.is_ok() {
            let [a, b, c, kind, ..] = header;
            let mut payload = vec![0; usize::try_from(u32::from_be_bytes([0, a, b, c])).expect("24 bits")];
            let read = from_driver.read_exact(&mut payload).await;
            if read.is_err() || to_client.write_all(&[&header[..], &payload].concat()).await.is_err() {
                return;
            }
            if matches!(kind, 0 | 1) {
                passed.send_modify(|passed| *passed += 1);
            }
        }
    };
    tokio::select! { biased; () = downwards => {}, () = upwards => {} }
}
