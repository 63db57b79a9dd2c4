//! Entry of the sandbox.
fn main() {}
