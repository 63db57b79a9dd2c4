//! Generates the CSI types.
fn main() {}
