//! The words that `csi-sandbox` understands, and the options they stand for.

use super::driver::DriverOptions;
use super::run::RunOptions;
use super::world::{DriverChoice, WorldOptions};
use anyhow::{Context, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::collections::BTreeMap;
use std::time::Duration;

/// The whole command line.
pub fn command() -> Command {
    Command::new("csi-sandbox")
        .about("A whole storage control plane in one process: try a claim end to end without a cluster")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run_command())
        .subcommand(
            Command::new("up")
                .about("Serve the world until Ctrl-C, for kubectl and other clients")
                .arg(Arg::new("kubeconfig").long("kubeconfig").value_name("PATH").help("Write the kubeconfig here"))
                .arg(port())
                .args(world_arguments())
                .args(driver_arguments()),
        )
        .subcommand(
            Command::new("scenario")
                .about("Play scenario files, each in a fresh world with the mock driver, and say whether they hold")
                .arg(
                    Arg::new("file")
                        .value_name("FILE")
                        .required(true)
                        .num_args(1..)
                        .help("Scenario file, such as those in e2e/scenarios"),
                ),
        )
        .subcommand(
            Command::new("driver")
                .about("Serve only the mock CSI driver on a unix socket, until interrupted")
                .arg(Arg::new("socket").long("socket").required(true).help("Path of the socket to serve"))
                .args(driver_arguments()),
        )
}

fn run_command() -> Command {
    Command::new("run")
        .about("Apply YAML files in a fresh world and show the way of every claim until it is Bound")
        .after_help("Exit code 0 only if every claim is Bound in time and, with --delete, every volume is gone.")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .num_args(1..)
                .help("YAML file with claims, classes, pods and the like; - is standard input"),
        )
        .arg(
            Arg::new("delete")
                .long("delete")
                .action(ArgAction::SetTrue)
                .help("Then delete the claims and show the way back until the volumes are gone"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_parser(["text", "json"])
                .default_value("text")
                .help("json = one document on standard output and nothing else"),
        )
        .arg(Arg::new("timeout").long("timeout").default_value("60s").help("Longest wait, such as 500ms, 60s or 2m"))
        .arg(port())
        .args(world_arguments())
        .args(driver_arguments())
}

fn port() -> Arg {
    Arg::new("port")
        .long("port")
        .value_parser(clap::value_parser!(u16))
        .default_value("0")
        .help("TCP port of the API server on 127.0.0.1; 0 = any free one")
}

fn world_arguments() -> Vec<Arg> {
    vec![
        Arg::new("driver").long("driver").value_name("ADDRESS").help(
            "Use the CSI driver that runs at this address, such as unix:///tmp/csi.sock, instead of the mock one",
        ),
        Arg::new("select-node")
            .long("select-node")
            .action(ArgAction::SetTrue)
            .help("Choose the node at once for WaitForFirstConsumer claims that no pod uses"),
        Arg::new("sidecar-flag")
            .long("sidecar-flag")
            .action(ArgAction::Append)
            .allow_hyphen_values(true)
            .value_name("--FLAG=VALUE")
            .help("One more flag for the sidecar; repeat for several"),
        Arg::new("sidecar-log")
            .long("sidecar-log")
            .action(ArgAction::SetTrue)
            .help("Show the sidecar's log on standard error"),
    ]
}

/// The arguments that describe the mock driver.
fn driver_arguments() -> Vec<Arg> {
    vec![
        Arg::new("name").long("driver-name").default_value("sandbox.csi.dev").help("Name that the mock driver reports"),
        Arg::new("node").long("node").default_value("sandbox-node").help("Node that the mock driver runs on"),
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

/// Options of the mock driver.
pub fn driver_options(arguments: &ArgMatches) -> anyhow::Result<DriverOptions> {
    let all = arguments.get_flag("all");
    let text = |name: &str| arguments.get_one::<String>(name).cloned().unwrap_or_default();
    let mut segments = BTreeMap::new();
    for segment in arguments.get_many::<String>("segment").into_iter().flatten() {
        let Some((key, value)) = segment.split_once('=') else {
            bail!("--segment {segment:?} is not KEY=VALUE, for example topology.sandbox/zone=a");
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

/// Options of the world.
pub fn world_options(arguments: &ArgMatches) -> anyhow::Result<WorldOptions> {
    let driver = match arguments.get_one::<String>("driver") {
        Some(address) => DriverChoice::At(address.clone()),
        None => DriverChoice::Mock(driver_options(arguments)?),
    };
    Ok(WorldOptions {
        port: arguments.get_one::<u16>("port").copied().unwrap_or_default(),
        driver,
        select_without_pod: arguments.get_flag("select-node"),
        sidecar_flags: arguments.get_many::<String>("sidecar-flag").into_iter().flatten().cloned().collect(),
        sidecar_log: arguments.get_flag("sidecar-log"),
    })
}

/// Options of a run.
pub fn run_options(arguments: &ArgMatches) -> anyhow::Result<RunOptions> {
    let text = |name: &str| arguments.get_one::<String>(name).cloned().unwrap_or_default();
    Ok(RunOptions {
        files: arguments.get_many::<String>("file").into_iter().flatten().cloned().collect(),
        delete: arguments.get_flag("delete"),
        json: text("output") == "json",
        timeout: duration(&text("timeout")).context("--timeout")?,
        world: world_options(arguments)?,
    })
}

/// A duration such as `500ms`, `60s`, `2m`.
pub fn duration(text: &str) -> anyhow::Result<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => bail!("{text:?} is not a duration; write a whole number and ms, s or m, for example 60s"),
    };
    let number: u64 = number.parse().with_context(|| format!("{text:?} is not a duration; write for example 60s"))?;
    Ok(Duration::from_millis(number.saturating_mul(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_needs_a_unit() {
        assert_eq!(duration("500ms").ok(), Some(Duration::from_millis(500)));
        assert_eq!(duration("2m").ok(), Some(Duration::from_mins(2)));
        assert!(duration("60").is_err());
        assert!(duration("s").is_err());
    }

    #[test]
    fn command_line_is_consistent() {
        command().debug_assert();
    }
}
