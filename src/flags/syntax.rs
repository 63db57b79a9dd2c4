//! Takes a command line apart as the Go sidecar does (provisioning.md 1.1): left to right, the first mistake or the
//! first request for help decides.

use super::Exit;
use super::raw::{Raw, Spec, find};
use super::suggest;

/// A command line without mistakes.
#[derive(Debug)]
pub(super) struct Arguments {
    /// The flags, defaults filled in.
    pub raw: Raw,
    /// Arguments that belong to no flag, in order.
    pub positional: Vec<String>,
}

/// What the command line is about.
#[derive(Debug)]
pub(super) enum Reading {
    /// `--help` or `-h` comes before any mistake.
    Help,
    /// Everything else.
    Flags(Box<Arguments>),
}

/// Reads the arguments behind the program's name.
pub(super) fn read(args: &[String]) -> Result<Reading, Exit> {
    let mut arguments = Arguments { raw: Raw::default(), positional: Vec::new() };
    let mut rest = args.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            arguments.positional.extend(rest.by_ref().cloned());
        } else if let Some(long) = argument.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let Some(spec) = find(name) else {
                if name == "help" {
                    return Ok(Reading::Help);
                }
                return Err(Exit::new(2, suggest::unknown_flag(argument, name)));
            };
            let value = match value {
                Some(value) => value,
                None if spec.switch => "true",
                None => rest.next().ok_or_else(|| missing_value(spec))?,
            };
            set(&mut arguments.raw, spec, value)?;
        } else if let Some(short) = argument.strip_prefix('-').filter(|short| !short.is_empty()) {
            if short.starts_with('h') && find(long_name(short)).is_none() {
                return Ok(Reading::Help);
            }
            let (Some(attached), Some(spec)) = (short.strip_prefix('v'), find("v")) else {
                return Err(Exit::new(2, suggest::unknown_short(argument, long_name(short))));
            };
            if find(long_name(short)).is_some_and(|spec| spec.name != "v") {
                return Err(Exit::new(2, suggest::unknown_short(argument, long_name(short))));
            }
            let value = match attached.strip_prefix('=').unwrap_or(attached) {
                "" if attached.is_empty() => rest.next().ok_or_else(|| missing_value(spec))?,
                value => value,
            };
            set(&mut arguments.raw, spec, value)?;
        } else {
            arguments.positional.push(argument.clone());
        }
    }
    Ok(Reading::Flags(Box::new(arguments)))
}

/// What a one-dash argument would name if it had two.
fn long_name(short: &str) -> &str {
    short.split_once('=').map_or(short, |(name, _)| name)
}

fn set(raw: &mut Raw, spec: &Spec, value: &str) -> Result<(), Exit> {
    (spec.set)(raw, value).map_err(|why| Exit::bad_value(spec.name, value, &why, spec.allowed, spec.example))
}

fn missing_value(spec: &Spec) -> Exit {
    let Spec { name, allowed, example, .. } = spec;
    Exit::new(2, format!("--{name} needs a value: {allowed}; example: --{name}={example}"))
}
