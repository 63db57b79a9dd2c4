//! The command line of `csi-sandbox`: words in, options out, exit code at the end.
//!
//! Exit codes: 0 done as wanted, 1 it did not end as wanted or could not start, 2 wrong arguments.

use super::arguments::{command, driver_options, run_options, world_options};
use super::driver::MockDriver;
use super::driver::serve::serve;
use super::scenario::show;
use super::{interrupted, run, up};
use clap::ArgMatches;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Nothing can be said any more if this fails.
            let _unprinted = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::from(error)),
    };
    match runtime.block_on(dispatch(&matches)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error),
    }
}

async fn dispatch(matches: &ArgMatches) -> anyhow::Result<bool> {
    match matches.subcommand() {
        Some(("run", arguments)) => run::run(run_options(arguments)?).await,
        Some(("up", arguments)) => {
            let kubeconfig = arguments.get_one::<String>("kubeconfig").map(PathBuf::from);
            up::up(world_options(arguments)?, kubeconfig).await
        }
        Some(("driver", arguments)) => driver(arguments).await,
        Some(("scenario", arguments)) => {
            let files: Vec<&String> = arguments.get_many("file").into_iter().flatten().collect();
            show::play_files(&files).await
        }
        // clap demands one of the subcommands above.
        _ => anyhow::bail!("no subcommand given; csi-sandbox --help shows them"),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("csi-sandbox: {error:#}");
    ExitCode::FAILURE
}

async fn driver(arguments: &ArgMatches) -> anyhow::Result<bool> {
    let driver = MockDriver::new(driver_options(arguments)?);
    let socket = arguments.get_one::<String>("socket").cloned().unwrap_or_default();
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    tokio::spawn(async move {
        interrupted().await;
        stopper.cancel();
    });
    serve(&driver, Path::new(&socket), || eprintln!("serving on {socket}; stop with Ctrl-C"), stop).await?;
    Ok(true)
}
