//! The command line as its users see it: arguments and environment in, configuration or exit out.

mod defaults;
mod exits;
mod properties;
mod rules;
mod syntax;
mod wording;

use super::{Config, Exit, Parsed, parse_with};

/// Parses arguments with an empty environment and no service account.
fn parse(args: &[&str]) -> Result<Parsed, Exit> {
    parse_in(args, &[])
}

/// Parses arguments with these variables and no service account.
fn parse_in(args: &[&str], variables: &[(&str, &str)]) -> Result<Parsed, Exit> {
    let env = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    parse_with(&command_line(args), &env, &|| None)
}

fn command_line(args: &[&str]) -> Vec<String> {
    std::iter::once(&"/bin/csi-provisioner").chain(args).map(|arg| (*arg).to_owned()).collect()
}

/// The configuration of arguments that must be right.
fn config(args: &[&str]) -> Config {
    config_in(args, &[])
}

fn config_in(args: &[&str], variables: &[(&str, &str)]) -> Config {
    match parse_in(args, variables) {
        Ok(Parsed::Run(config)) => *config,
        other => panic!("{args:?} gave {other:?}"),
    }
}

/// The exit of arguments that must be wrong.
fn exit(args: &[&str]) -> Exit {
    exit_in(args, &[])
}

fn exit_in(args: &[&str], variables: &[(&str, &str)]) -> Exit {
    match parse_in(args, variables) {
        Err(exit) => exit,
        other => panic!("{args:?} gave {other:?}"),
    }
}
