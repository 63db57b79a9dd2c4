//! The server on a real socket.
//!
//! Promises: a request that a fault cuts ends its connection without an answer; when cancelled, all connections end
//! at once, as with a server that dies.

use crate::sandbox::apiserver::ApiServer;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Pause after a failed accept (too many open files is the usual reason).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves HTTP/1.1 until cancelled.
pub async fn serve(server: ApiServer, listener: TcpListener, cancel: CancellationToken) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(_ended) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _peer)) => {
                    connections.spawn(connection(server.clone(), stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    connections.shutdown().await;
    Ok(())
}

async fn connection(server: ApiServer, stream: TcpStream) {
    // Only a matter of speed; a peer that is gone already shows below.
    let _set = stream.set_nodelay(true);
    let service = server.service();
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { service.answer::<hyper::body::Incoming>(request).await }
    });
    let outcome = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), answer).await;
    if let Err(error) = outcome {
        tracing::debug!(%error, "connection ended");
    }
}
