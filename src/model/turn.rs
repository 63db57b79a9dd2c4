//! Whose turn a claim is.

use std::time::Duration;

/// Which instance of the sidecar works on a claim. With one instance for the whole cluster it is always its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This one.
    Ours,
    /// Another one, or none: nothing to do here.
    Others,
    /// Nobody's yet; this one looks again after that time.
    Later(Duration),
    /// Nobody's yet, and this one may take it now.
    Take,
}
