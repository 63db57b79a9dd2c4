//! Entry of the sidecar: parse, log, run, exit code.

use csi_provisioner::app::start;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    ExitCode::from(start::main(&args))
}
