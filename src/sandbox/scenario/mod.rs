//! Scenarios: what must be true, as data, so that the same file runs on the sandbox and on a real cluster.
//!
//! A file says what it proves, which objects are there, how the driver misbehaves, and step by step what is done and
//! waited for. [`runner`] walks the steps on a [`stage::Stage`]; [`condition`] says whether something holds.
//!
//! ```yaml
//! name: filesystem
//! proves: A claim gets a volume, and the volume goes with the claim.
//! objects: [ ... ]            # applied at the start
//! faults:                     # of the driver, in order
//! - {method: CreateVolume, times: 2, fail: Unavailable}
//! steps:
//! - wait-for: {claim: {name: default/data, phase: Bound}}
//! - delete: persistentvolumeclaims/default/data
//! - wait-for: {volumes-in-driver: 0}
//! ```

pub mod condition;
pub mod runner;
pub mod sandbox;
pub mod show;
pub mod stage;

use super::driver::script::{Fault, Rule};
use condition::Condition;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest wait for a condition, unless the file says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// One scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// Short name, equal to the file's.
    pub name: String,
    /// The rule that it shows, as a sentence.
    pub proves: String,
    /// Longest wait for each condition, such as `30s`.
    #[serde(default = "patience", deserialize_with = "duration")]
    pub patience: Duration,
    /// What the driver is like.
    #[serde(default)]
    pub driver: DriverTraits,
    /// Objects that are there before the first step.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// What goes wrong in the driver.
    #[serde(default)]
    pub faults: Vec<DriverFault>,
    /// What is done and waited for.
    pub steps: Vec<Step>,
}

/// What the driver is like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DriverTraits {
    /// Topology segments of its node; none = it has no topology.
    #[serde(default)]
    pub segments: BTreeMap<String, String>,
    /// It announces every optional capability.
    #[serde(default)]
    pub all_capabilities: bool,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DriverFault {
    /// Calls that it is about.
    pub method: Method,
    /// Only calls whose name or id contains this.
    #[serde(default)]
    pub subject: String,
    /// How many calls it hits.
    #[serde(default = "once")]
    pub times: u32,
    /// What happens.
    #[serde(flatten)]
    pub what: Misbehaviour,
}

/// The calls that can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Method {
    /// `CreateVolume`
    CreateVolume,
    /// `DeleteVolume`
    DeleteVolume,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misbehaviour {
    /// Nothing is done and this code is answered.
    Fail(Code),
    /// The work is done and this code is answered.
    FailAfterWork(Code),
    /// Nothing is done and nothing is answered.
    Hang(Empty),
    /// The work is done and nothing is answered.
    HangAfterWork(Empty),
    /// It is done and answered right, but so much later.
    Slow(#[serde(deserialize_with = "duration")] Duration),
}

/// The empty map, for variants without an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// The gRPC codes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the names are those of gRPC")]
pub enum Code {
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

/// One step.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Create these objects, or change those that exist (merge).
    Apply(Vec<Value>),
    /// Delete `plural/namespace/name` or `plural/name`.
    Delete(ObjectName),
    /// Wait until this holds.
    WaitFor(Condition),
    /// This holds now.
    Expect(Condition),
    /// This holds all the time for so long.
    Stays(Staying),
    /// Add a fault of the driver.
    Fault(DriverFault),
    /// Drop the faults that are left.
    ClearFaults,
    /// End the sidecar where it stands.
    KillSidecar,
    /// Start it again.
    StartSidecar,
    /// Cut all connections to the API server and refuse new ones for so long.
    RestartApiserver(#[serde(deserialize_with = "duration")] Duration),
    /// Cut the sidecar's watches.
    CutWatches,
    /// Do nothing for so long.
    Sleep(#[serde(deserialize_with = "duration")] Duration),
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Apply(objects) => write!(f, "apply {} objects", objects.len()),
            Self::Delete(object) => write!(f, "delete {object}"),
            Self::WaitFor(condition) => write!(f, "wait for {condition}"),
            Self::Expect(condition) => write!(f, "expect {condition}"),
            Self::Stays(staying) => write!(f, "for {} s stays {}", staying.time.as_secs_f64(), staying.that),
            Self::Fault(fault) => write!(f, "fault of the driver: {fault:?}"),
            Self::ClearFaults => write!(f, "clear faults"),
            Self::KillSidecar => write!(f, "kill the sidecar"),
            Self::StartSidecar => write!(f, "start the sidecar"),
            Self::RestartApiserver(away) => write!(f, "API server away for {} s", away.as_secs_f64()),
            Self::CutWatches => write!(f, "cut watches"),
            Self::Sleep(time) => write!(f, "sleep {} s", time.as_secs_f64()),
        }
    }
}

/// A condition that must not break.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Staying {
    /// How long.
    #[serde(rename = "for", deserialize_with = "duration")]
    pub time: Duration,
    /// What.
    pub that: Condition,
}

/// `plural/namespace/name`, or `plural/name` for kinds without namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Plural of the kind.
    pub plural: String,
    /// Namespace, empty without one.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{}/{}{slash}{}", self.plural, self.namespace, self.name)
    }
}

impl<'de> Deserialize<'de> for ObjectName {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        let parts: Vec<&str> = text.split('/').collect();
        let (plural, namespace, name) = match parts.as_slice() {
            [plural, name] => (*plural, "", *name),
            [plural, namespace, name] => (*plural, *namespace, *name),
            _ => return Err(de::Error::custom(format!("{text:?} is neither plural/namespace/name nor plural/name"))),
        };
        Ok(Self { plural: plural.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl DriverFault {
    /// The rule for the driver's script.
    pub fn rule(&self) -> Rule {
        let method = match self.method {
            Method::CreateVolume => "CreateVolume",
            Method::DeleteVolume => "DeleteVolume",
        };
        let text = "asked for by the scenario".to_owned();
        let fault = match &self.what {
            Misbehaviour::Fail(code) => Fault::FailBefore(*code as i32, text),
            Misbehaviour::FailAfterWork(code) => Fault::FailAfter(*code as i32, text),
            Misbehaviour::Hang(Empty {}) => Fault::HangBefore,
            Misbehaviour::HangAfterWork(Empty {}) => Fault::HangAfter,
            Misbehaviour::Slow(time) => Fault::Slow(*time),
        };
        Rule { method, subject: self.subject.clone(), times: self.times, fault }
    }
}

/// Reads a scenario. The error names line and column where they are known.
pub fn parse(text: &str) -> Result<Scenario, String> {
    serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())
}

fn patience() -> Duration {
    PATIENCE
}

fn once() -> u32 {
    1
}

fn duration<'de, D: Deserializer<'de>>(source: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(source)?;
    super::arguments::duration(&text).map_err(|error| de::Error::custom(format!("{error:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = "name: a\nproves: b\nsteps:\n- kill-sidecar\n- restart-apiserver: 2s\n\
        - delete: persistentvolumeclaims/default/data\n- wait-for: {volumes-in-api: 0}\n\
        - stays: {for: 500ms, that: {claim: {name: default/data, phase: Pending}}}\n";

    #[test]
    fn steps_are_read_in_order() {
        let scenario = parse(SHORT).expect("valid");
        assert!(matches!(
            scenario.steps.as_slice(),
            [Step::KillSidecar, Step::RestartApiserver(_), Step::Delete(_), Step::WaitFor(_), Step::Stays(_)]
        ));
        assert_eq!(scenario.patience, PATIENCE);
    }

    #[test]
    fn fault_becomes_a_rule_of_the_driver() {
        let text = format!(
            "{SHORT}faults:\n- {{method: CreateVolume, times: 2, fail: Unavailable}}\n- {{method: DeleteVolume, hang-after-work: {{}}}}\n"
        );
        let scenario = parse(&text).expect("valid");
        let rules: Vec<Rule> = scenario.faults.iter().map(DriverFault::rule).collect();
        assert_eq!((rules[0].method, rules[0].times), ("CreateVolume", 2));
        assert!(matches!(rules[0].fault, Fault::FailBefore(14, _)));
        assert_eq!(rules[1].fault, Fault::HangAfter);
    }

    #[test]
    fn unknown_words_are_refused() {
        assert!(parse("name: a\nproves: b\nsteps: []\nsurprise: 1\n").is_err());
        assert!(parse("name: a\nproves: b\nsteps:\n- dance\n").is_err());
        assert!(parse("name: a\nproves: b\nsteps:\n- sleep: 3\n").is_err());
    }
}
