//! The command line of `csi-sandbox`.

use super::driver::serve::serve;
use super::driver::{DriverOptions, MockDriver};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// Runs the program with the process's arguments.
///
/// Exit codes: 0 done, 1 the run did not end as wanted, 2 wrong arguments.
pub fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            error.print().ok();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let done = match matches.subcommand() {
        Some(("driver", arguments)) => runtime.block_on(driver(arguments)),
        _ => unreachable_subcommand(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn unreachable_subcommand() -> anyhow::Result<()> {
    // clap demands one of the subcommands above.
    anyhow::bail!("no subcommand given")
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("csi-sandbox: {error}");
    ExitCode::FAILURE
}

fn command() -> Command {
    Command::new("csi-sandbox")
        .about("A whole storage control plane in one process: try a claim end to end without a cluster")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("driver")
                .about("Serve only the mock CSI driver on a unix socket, until interrupted")
                .arg(Arg::new("socket").long("socket").required(true).help("Path of the socket to serve"))
                .args(driver_arguments()),
        )
}

/// The arguments that describe the mock driver.
fn driver_arguments() -> Vec<Arg> {
    vec![
        Arg::new("name").long("driver-name").default_value("sandbox.csi.dev").help("Name that the driver reports"),
        Arg::new("node").long("node").default_value("sandbox-node").help("Node that the driver runs on"),
        Arg::new("segment")
            .long("segment")
            .action(ArgAction::Append)
            .value_name("KEY=VALUE")
            .help("Topology segment of the node; repeat for several. Without one the driver has no topology"),
        Arg::new("all")
            .long("all-capabilities")
            .action(ArgAction::SetTrue)
            .help("Announce every capability: snapshots, clones, attach, expand, modify, groups, health"),
    ]
}

fn driver_options(arguments: &ArgMatches) -> anyhow::Result<DriverOptions> {
    let all = arguments.get_flag("all");
    let text = |name: &str| arguments.get_one::<String>(name).cloned().unwrap_or_default();
    let mut segments = BTreeMap::new();
    for segment in arguments.get_many::<String>("segment").into_iter().flatten() {
        let Some((key, value)) = segment.split_once('=') else {
            anyhow::bail!("--segment {segment:?} is not KEY=VALUE, for example topology.sandbox/zone=a");
        };
        segments.insert(key.to_owned(), value.to_owned());
    }
    Ok(DriverOptions {
        name: text("name"),
        node: text("node"),
        segments,
        publish: all,
        all_capabilities: all,
        ..DriverOptions::default()
    })
}

async fn driver(arguments: &ArgMatches) -> anyhow::Result<()> {
    let driver = MockDriver::new(driver_options(arguments)?);
    let socket = arguments.get_one::<String>("socket").cloned().unwrap_or_default();
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    tokio::spawn(async move {
        interrupted().await;
        stopper.cancel();
    });
    serve(&driver, Path::new(&socket), || eprintln!("serving on {socket}; stop with Ctrl-C"), stop).await?;
    Ok(())
}

/// Resolves on Ctrl-C or SIGTERM.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                biased;
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(_) => {
            tokio::signal::ctrl_c().await.ok();
        }
    }
}
