//! Turns the command line and the environment into one checked [`Config`].
//!
//! Promises:
//! - every flag of the Go sidecar is known, with its default, its syntax and its exit code (provisioning.md 1);
//! - whatever is wrong with a flag is said in one line that names the flag, the value, what is allowed and an
//!   example; nothing is printed here, the caller does that;
//! - the same input gives the same answer: environment and files come in as functions.
//!
//! The way through: [`raw`] holds one field per flag, `syntax` fills it, [`config`] applies environment, gates and
//! the rules between flags.

pub mod config;
pub mod duration;
pub mod gates;
mod help;
mod leader;
pub mod lists;
mod logging;
pub mod raw;
mod rules;
mod suggest;
mod syntax;
#[cfg(test)]
mod tests;
pub mod values;
mod work;

pub use config::{
    CapacityConfig, Config, ConnectConfig, DurableIntent, HttpConfig, LeaderConfig, Limit, NodeDeploymentConfig,
    OwnerConfig,
};

/// The program's name when the caller passes no arguments at all.
const DEFAULT_PROGRAM: &str = "csi-provisioner";

/// Where a pod finds the namespace of its own service account.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// Run with this configuration.
    Run(Box<Config>),
    /// Print this text on stdout and end with code 0. (The Go sidecar prints its usage on stderr.)
    Help(String),
    /// Print this line on stdout and end with code 0.
    Version(String),
}

/// Why the program cannot start: the exit code of the Go sidecar, and one line for stderr.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct Exit {
    /// 2 = flag refused, 1 = combination or logging option refused, 255 = gate or environment (provisioning.md 1.1).
    pub code: u8,
    /// What is wrong and what to do, without a line break.
    pub line: String,
}

impl Exit {
    /// A refused flag value: exit code 2, names flag, value, reason, allowed values and an example.
    fn bad_value(flag: &str, value: &str, why: &str, allowed: &str, example: &str) -> Self {
        Self::new(2, format!("--{flag}={value:?}: {why}; allowed: {allowed}; example: --{flag}={example}"))
    }

    fn new(code: u8, line: String) -> Self {
        // Values are escaped where they are written; this keeps the promise for any text that slips through.
        let line = if line.contains(char::is_control) { line.replace(char::is_control, " ") } else { line };
        Self { code, line }
    }
}

/// What the rules read besides the command line.
struct Surroundings<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    namespace_file: &'a dyn Fn() -> Option<String>,
}

impl Surroundings<'_> {
    /// An environment variable; an empty one counts as missing, as in Go.
    fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    /// The namespace this process lives in: `POD_NAMESPACE`, else the service account's file, else `default`.
    fn own_namespace(&self) -> String {
        self.variable("POD_NAMESPACE")
            .or_else(|| (self.namespace_file)().map(|text| text.trim().to_owned()).filter(|name| !name.is_empty()))
            .unwrap_or_else(|| "default".to_owned())
    }

    /// The namespace a flag names, else the one this process lives in.
    fn namespace_or_own(&self, flag: String) -> String {
        if flag.is_empty() { self.own_namespace() } else { flag }
    }
}

/// Reads the command line (the program's name first) and the environment.
///
/// # Errors
/// An [`Exit`] with the Go sidecar's code when a flag, a gate, a combination or a variable is wrong.
pub fn parse(args: &[String], env: &dyn Fn(&str) -> Option<String>) -> Result<Parsed, Exit> {
    parse_with(args, env, &|| std::fs::read_to_string(NAMESPACE_FILE).ok())
}

/// [`parse`] with the reader of the service account's namespace file handed in.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(
    args: &[String],
    env: &dyn Fn(&str) -> Option<String>,
    namespace_file: &dyn Fn() -> Option<String>,
) -> Result<Parsed, Exit> {
    let (program, rest) = match args.split_first() {
        Some((program, rest)) => (program.as_str(), rest),
        None => (DEFAULT_PROGRAM, args),
    };
    let arguments = match syntax::read(rest)? {
        syntax::Reading::Help => return Ok(Parsed::Help(help::text())),
        syntax::Reading::Flags(arguments) => arguments,
    };
    let version = format!("{program} {}", env!("CARGO_PKG_VERSION"));
    config::resolve(*arguments, version, &Surroundings { env, namespace_file })
}
