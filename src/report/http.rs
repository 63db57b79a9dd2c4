//! The HTTP endpoint: metrics, health of leader election, and where profiles would be.
//!
//! No TLS and no login, as in the Go sidecar, but with limits: a slow or greedy client cannot hold the process up.

use super::metrics::Metrics;
use crate::flags::config::HttpConfig;
use crate::kube_api::lease::LeaseHealth;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// Connections at once; more wait. A scraper and a kubelet need two.
const CONNECTIONS: usize = 32;
/// How long a client may take to send its request's header.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// How long a connection may live.
const CONNECTION_TIME: Duration = Duration::from_secs(120);

/// How long answers under way may take once the process ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted, usually for want of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// What is served where.
#[derive(Clone)]
pub struct Routes {
    metrics_path: String,
    metrics: Arc<Metrics>,
    /// Set once the election has begun; before that the path does not exist (provisioning.md 12.1).
    health: Option<Arc<OnceLock<LeaseHealth>>>,
    pprof: bool,
}

impl Routes {
    /// The routes of a configuration; `health` is filled when the election begins.
    pub fn new(config: &HttpConfig, metrics: Arc<Metrics>, health: Arc<OnceLock<LeaseHealth>>) -> Self {
        Self {
            metrics_path: config.metrics_path.clone(),
            metrics,
            health: config.leader_health.then_some(health),
            pprof: config.pprof,
        }
    }

    fn answer(&self, path: &str) -> (StatusCode, String) {
        if path == self.metrics_path {
            return (StatusCode::OK, self.metrics.render());
        }
        let health = self.health.as_ref().and_then(|health| health.get());
        match (path, health) {
            ("/healthz/leader-election", Some(health)) => match health.check() {
                Ok(()) => (StatusCode::OK, "ok".to_owned()),
                Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n")),
            },
            _ if self.pprof && path.starts_with("/debug/pprof") => {
                (StatusCode::NOT_FOUND, "this build has no profiles: use perf on the process\n".to_owned())
            }
            _ => (StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
        }
    }
}

/// Binds an address as Go writes it: an empty host means all interfaces.
pub async fn bind(address: &str) -> io::Result<TcpListener> {
    match address.strip_prefix(':') {
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            // A host without IPv6.
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    }
}

/// Serves until `stop`; answers under way are finished then, for at most [`LAST_ANSWERS`].
pub async fn serve(listener: TcpListener, routes: Routes, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            slot = Arc::clone(&slots).acquire_owned() => match slot {
                Ok(slot) => tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    accepted = listener.accept() => accepted.map(|(stream, _)| (stream, slot)),
                },
                Err(_) => break,
            },
        };
        let (stream, slot) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                debug!(target: "http", %error, "cannot accept a connection");
                tokio::time::sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        let connection = converse(stream, routes.clone(), stop.clone());
        connections.spawn(async move {
            let _slot = slot;
            connection.await;
        });
        while connections.try_join_next().is_some() {}
    }
    let all_ended = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(LAST_ANSWERS, all_ended).await.ok();
}

/// One connection from its beginning to its end.
async fn converse(stream: TcpStream, routes: Routes, stop: CancellationToken) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = respond(&routes, request.uri().path());
        async move { Ok::<_, Infallible>(response) }
    });
    let mut connection = pin!(
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .serve_connection(TokioIo::new(stream), service)
    );
    let served = async {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            end = connection.as_mut() => return end,
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    };
    match tokio::time::timeout(CONNECTION_TIME, served).await {
        Ok(Err(error)) => debug!(target: "http", %error, "a connection ended early"),
        Ok(Ok(())) | Err(_) => {}
    }
}

fn respond(routes: &Routes, path: &str) -> Response<Full<Bytes>> {
    let (status, text) = routes.answer(path);
    let kind = if path == routes.metrics_path {
        "text/plain; version=0.0.4; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests;
