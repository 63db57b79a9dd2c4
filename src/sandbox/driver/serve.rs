//! Serves the driver on a unix socket.

use super::MockDriver;
use std::io;
use std::path::Path;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;

/// Why the driver cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket cannot be made.
    #[error("cannot listen on {path}: {reason}; give --socket a path in a directory that exists and is writable")]
    Listen {
        /// Socket path.
        path: String,
        /// Why not.
        reason: io::Error,
    },
    /// The server ended with an error.
    #[error("driver stopped serving: {0}")]
    Serve(#[from] tonic::transport::Error),
}

/// Listens on `socket` (a stale one is replaced) until `stop`. `ready` is called once calls are accepted.
pub async fn serve(
    driver: &MockDriver,
    socket: &Path,
    ready: impl FnOnce(),
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let refused = |reason| ServeError::Listen { path: socket.display().to_string(), reason };
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error)),
        _ => {}
    }
    let listener = UnixListener::bind(socket).map_err(refused)?;
    ready();
    let server = tonic::transport::Server::builder().add_routes(driver.routes());
    server.serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop.cancelled_owned()).await?;
    std::fs::remove_file(socket).ok();
    Ok(())
}
