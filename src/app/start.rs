//! From the command line to a running sidecar on a real machine.

use super::{World, driver, run};
use crate::clock::Clock;
use crate::csi::channel;
use crate::flags::{self, Config, Parsed};
use crate::kube_api::client::{self, ConnectOptions, Rates};
use crate::kube_api::limiter::Limit;
use crate::random::Random;
use crate::report::log;
use crate::report::metrics::Metrics;
use std::process;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// Runs the sidecar with these arguments (the first is the program's name) and returns its exit code.
pub fn main(args: &[String]) -> u8 {
    let config = match flags::parse(args, &|name| std::env::var(name).ok()) {
        Ok(Parsed::Run(config)) => *config,
        Ok(Parsed::Help(text) | Parsed::Version(text)) => {
            println!("{}", text.trim_end());
            return 0;
        }
        Err(exit) => {
            eprintln!("{}", exit.line);
            return exit.code;
        }
    };
    if let Err(error) = log::init(&config.log, Clock::system()) {
        eprintln!("cannot set up the log: {error}");
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            error!(target: "app", %error, "cannot start the runtime");
            return 255;
        }
    };
    runtime.block_on(serve(Arc::new(config)))
}

async fn serve(config: Arc<Config>) -> u8 {
    for warning in &config.warnings {
        warn!(target: "app", "{warning}");
    }
    for flag in &config.not_yet {
        warn!(target: "app", flag, "this flag is accepted, but what it switches on is not part of this version yet");
    }
    let world = match world_of(&config).await {
        Ok(world) => world,
        Err((code, line)) => {
            error!(target: "app", "{line}");
            return code;
        }
    };
    let stop = CancellationToken::new();
    tokio::spawn(signals(stop.clone(), config.release_on_stop));
    match Box::pin(run(config, world, stop)).await {
        Ok(()) => {
            info!(target: "app", "stopped");
            0
        }
        Err(failure) => {
            error!(target: "app", "{}", driver::with_causes(&failure));
            failure.exit_code()
        }
    }
}

/// The real API server and the real driver of a configuration; else the exit code and what is wrong.
pub(super) async fn world_of(config: &Config) -> Result<World, (u8, String)> {
    let metrics = Metrics::register(config.leader.is_some())
        .map_err(|failure| (255, format!("cannot set up metrics: {failure}")))?;
    let clients = client::connect(&connect_options(config), metrics.clone())
        .await
        .map_err(|failure| (255, driver::with_causes(&failure)))?;
    let path = channel::parse_address(&config.csi_address).map_err(|failure| (1, driver::with_causes(&failure)))?;
    let connection = channel::connect_lazily(path);
    Ok(World {
        clients,
        transport: connection.transport,
        losses: connection.losses,
        clock: Clock::system(),
        random: Random::from_os(),
        hostname: hostname(),
        metrics,
    })
}

fn connect_options(config: &Config) -> ConnectOptions {
    let connect = &config.connect;
    ConnectOptions { master: connect.master.clone(), kubeconfig: connect.kubeconfig.clone(), rates: rates(config) }
}

/// How fast the API server may be asked.
pub(super) fn rates(config: &Config) -> Rates {
    let limit = |limit: flags::config::Limit| Limit { qps: limit.qps, burst: i64::from(limit.burst) };
    let connect = &config.connect;
    Rates { main: limit(connect.limit), capacity: limit(connect.capacity_limit), ..Rates::default() }
}

/// The first signal asks for an orderly stop, the second ends the process. Without release the first one ends it, as in
/// the Go sidecar.
async fn signals(stop: CancellationToken, release_on_stop: bool) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    for nth in 0.. {
        let code = tokio::select! {
            biased;
            _ = terminate.recv() => 143,
            _ = interrupt.recv() => 130,
        };
        if !release_on_stop {
            process::exit(code);
        }
        if nth > 0 {
            warn!(target: "app", "second signal: ending at once");
            process::exit(1);
        }
        info!(target: "app", "signal received: no new work is taken, running calls end");
        stop.cancel();
    }
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "unknown-host".to_owned(),
        name => name.to_owned(),
    }
}
