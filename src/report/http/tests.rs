//! The endpoint over real sockets.

use super::{Routes, bind, serve};
use crate::clock::Clock;
use crate::flags::config::HttpConfig;
use crate::kube_api::lease::{Candidate, LeaseConfig, LeaseHealth};
use crate::random::Random;
use crate::report::metrics::Metrics;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

struct Server {
    address: SocketAddr,
    health: Arc<OnceLock<LeaseHealth>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

async fn server(pprof: bool) -> Server {
    let listener = bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config =
        HttpConfig { address: address.to_string(), metrics_path: "/numbers".to_owned(), leader_health: true, pprof };
    let health = Arc::default();
    let routes = Routes::new(&config, Metrics::register(true).unwrap(), Arc::clone(&health));
    let stop = CancellationToken::new();
    let task = tokio::spawn(serve(listener, routes, stop.clone()));
    Server { address, health, stop, task }
}

impl Server {
    /// The whole answer to a GET.
    async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

#[tokio::test]
async fn metrics_are_served_on_their_path_as_prometheus_text() {
    let answer = server(false).await.get("/numbers").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{answer}");
    assert!(answer.contains("\n# TYPE csi_provisioner_build_info gauge\n"), "{answer}");
}

#[tokio::test]
async fn health_exists_from_the_beginning_of_the_election_on() {
    let server = server(false).await;
    assert!(server.get("/healthz/leader-election").await.starts_with("HTTP/1.1 404"));
    let client = kube::Client::new(
        tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, std::io::Error>(std::io::ErrorKind::NotConnected.into())
        }),
        "default",
    );
    let config = LeaseConfig::new("lock", "ns", "me");
    let candidate = Candidate::new(client, config, Clock::system(), Random::seeded(1));
    server.health.set(candidate.health()).unwrap();
    let answer = server.get("/healthz/leader-election").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[tokio::test]
async fn profiles_are_refused_with_a_hint() {
    let answer = server(true).await.get("/debug/pprof/heap").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("this build has no profiles"), "{answer}");
}

#[tokio::test]
async fn unknown_path_is_not_found() {
    let answer = server(false).await.get("/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.ends_with("404 page not found\n"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn connection_that_sends_no_request_is_closed_after_ten_seconds() {
    let server = server(false).await;
    let began = Instant::now();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /numbers HTTP/1.1\r\n").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn idle_connection_does_not_hold_up_the_end() {
    let server = server(false).await;
    let _idle = TcpStream::connect(server.address).await.unwrap();
    server.get("/numbers").await;
    let began = Instant::now();
    server.stop.cancel();
    server.task.await.unwrap();
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn taken_port_is_an_error_and_not_a_crash() {
    let taken = bind("127.0.0.1:0").await.unwrap();
    let again = bind(&taken.local_addr().unwrap().to_string()).await;
    assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}
