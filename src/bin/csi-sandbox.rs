//! Entry of the sandbox.

fn main() -> std::process::ExitCode {
    csi_provisioner::sandbox::cli::main()
}
