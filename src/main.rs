//! Entry of the sidecar.
fn main() {}
