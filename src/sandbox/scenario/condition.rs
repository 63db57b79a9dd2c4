//! What a scenario can wait for: a question to the API and the driver, answered with yes, or with what is there instead.

use super::{Method, ObjectName};
use crate::csi::proto::v1::volume_capability::AccessType;
use crate::csi::proto::v1::volume_capability::access_mode::Mode;
use crate::sandbox::binder::objects::{claim_key, finalizers, key, name, phase, text};
use crate::sandbox::driver::MockDriver;
use serde::Deserialize;
use serde_json::Value;

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// A claim is in a phase.
    Claim(PhaseOf),
    /// The volume of a claim is in a phase; asked by the claim's key, also when the claim is gone.
    VolumeOf(PhaseOf),
    /// An object does not exist.
    Gone(ObjectName),
    /// An object exists and is being deleted.
    Terminating(ObjectName),
    /// A pod has its node.
    Scheduled(ObjectName),
    /// The finalizers of all volumes contain this.
    Finalizer(String),
    /// An event about an object of this name was sent, counted with its repetitions.
    Event(EventOf),
    /// So many volumes are in the API.
    VolumesInApi(usize),
    /// So many volumes are in the driver.
    VolumesInDriver(usize),
    /// The driver was called so often.
    Calls(CallsOf),
    /// What the driver was asked to make for a claim.
    MadeFor(MadeFor),
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Claim(wanted) => write!(f, "claim {} {}", wanted.name, wanted.phase),
            Self::VolumeOf(wanted) => write!(f, "volume of claim {} {}", wanted.name, wanted.phase),
            Self::Gone(object) => write!(f, "{object} gone"),
            Self::Terminating(object) => write!(f, "{object} terminating"),
            Self::Scheduled(object) => write!(f, "{object} scheduled"),
            Self::Finalizer(finalizer) => write!(f, "finalizer {finalizer} on every volume"),
            Self::Event(event) => write!(f, "event {} about {}, {} times", event.reason, event.about, event.at_least),
            Self::VolumesInApi(count) => write!(f, "{count} volumes in the API"),
            Self::VolumesInDriver(count) => write!(f, "{count} volumes in the driver"),
            Self::Calls(calls) => {
                write!(f, "{:?} called {} times or more", calls.method, calls.at_least)?;
                calls.at_most.map_or(Ok(()), |most| write!(f, ", {most} times or less"))
            }
            Self::MadeFor(made) => write!(f, "volume of {} as asked for: {made:?}", made.claim),
        }
    }
}

/// A claim and a phase.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseOf {
    /// `namespace/name` of the claim.
    pub name: String,
    /// The phase.
    pub phase: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EventOf {
    /// Its reason.
    pub reason: String,
    /// Name of the object.
    pub about: String,
    /// How often at least; once if not said.
    #[serde(default = "super::once")]
    pub at_least: u32,
}

/// A number of calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CallsOf {
    /// The method.
    pub method: Method,
    /// Not fewer.
    #[serde(default)]
    pub at_least: u32,
    /// Not more.
    pub at_most: Option<u32>,
}

/// A volume of the driver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MadeFor {
    /// `namespace/name` of the claim.
    pub claim: String,
    /// CSI access mode, such as `SINGLE_NODE_WRITER`.
    pub access_mode: Option<String>,
    /// `block` or `mount`.
    pub access_type: Option<String>,
    /// File system of a mounted volume.
    pub fs_type: Option<String>,
    /// Size in bytes.
    pub bytes: Option<i64>,
    /// A topology segment `key=value` that it is reachable from.
    pub segment: Option<String>,
}

/// What is known at one moment.
pub struct Seen<'a> {
    /// All claims.
    pub claims: Vec<Value>,
    /// All volumes.
    pub volumes: Vec<Value>,
    /// All events.
    pub events: Vec<Value>,
    /// The object that the condition names, if it names one and it is there.
    pub named: Option<Value>,
    /// The driver.
    pub driver: &'a MockDriver,
}

impl Condition {
    /// The object that must be read to answer.
    pub fn names(&self) -> Option<&ObjectName> {
        match self {
            Self::Gone(name) | Self::Terminating(name) | Self::Scheduled(name) => Some(name),
            Self::Claim(_)
            | Self::VolumeOf(_)
            | Self::Finalizer(_)
            | Self::Event(_)
            | Self::VolumesInApi(_)
            | Self::VolumesInDriver(_)
            | Self::Calls(_)
            | Self::MadeFor(_) => None,
        }
    }

    /// Whether it holds; if not, what is there instead.
    pub fn holds(&self, seen: &Seen<'_>) -> Result<(), String> {
        match self {
            Self::Claim(wanted) => {
                let claim = seen.claims.iter().find(|claim| key(claim) == wanted.name);
                equal(claim.map_or("absent", phase), &wanted.phase)
            }
            Self::VolumeOf(wanted) => {
                let owned = |volume: &&Value| claim_key(volume).as_deref() == Some(&wanted.name);
                equal(seen.volumes.iter().find(owned).map_or("absent", phase), &wanted.phase)
            }
            Self::Gone(_) => match &seen.named {
                None => Ok(()),
                Some(object) => Err(format!("it exists, with finalizers {:?}", finalizers(object))),
            },
            Self::Terminating(_) => match &seen.named {
                Some(object) if !text(object, "/metadata/deletionTimestamp").is_empty() => Ok(()),
                Some(_) => Err("it is not being deleted".to_owned()),
                None => Err("it does not exist".to_owned()),
            },
            Self::Scheduled(_) => {
                let node = seen.named.as_ref().map(|pod| text(pod, "/spec/nodeName"));
                if node.is_some_and(|node| !node.is_empty()) { Ok(()) } else { Err("it has no node".to_owned()) }
            }
            Self::Finalizer(wanted) => {
                let without = seen.volumes.iter().find(|volume| !finalizers(volume).contains(&wanted.as_str()));
                without.map_or(Ok(()), |volume| Err(format!("{} has {:?}", name(volume), finalizers(volume))))
            }
            Self::Event(wanted) => at_least(times_told(&seen.events, wanted), u64::from(wanted.at_least)),
            Self::VolumesInApi(wanted) => equal(&seen.volumes.len(), wanted),
            Self::VolumesInDriver(wanted) => equal(&seen.driver.backend().volumes().len(), wanted),
            Self::Calls(wanted) => {
                let method = match wanted.method {
                    Method::CreateVolume => "CreateVolume",
                    Method::DeleteVolume => "DeleteVolume",
                };
                let calls = seen.driver.script().calls_of(method).len() as u64;
                at_least(calls, u64::from(wanted.at_least))?;
                let too_many = wanted.at_most.is_some_and(|most| calls > u64::from(most));
                if too_many { Err(format!("{calls}")) } else { Ok(()) }
            }
            Self::MadeFor(wanted) => made_for(seen, wanted),
        }
    }
}

fn equal<T: PartialEq<U> + std::fmt::Debug + ?Sized, U: ?Sized>(is: &T, wanted: &U) -> Result<(), String> {
    if is == wanted { Ok(()) } else { Err(format!("{is:?}")) }
}

fn at_least(is: u64, wanted: u64) -> Result<(), String> {
    if is >= wanted { Ok(()) } else { Err(format!("{is} times")) }
}

fn times_told(events: &[Value], wanted: &EventOf) -> u64 {
    let matches =
        |event: &&Value| text(event, "/reason") == wanted.reason && text(event, "/involvedObject/name") == wanted.about;
    events.iter().filter(matches).map(|event| event.get("count").and_then(Value::as_u64).unwrap_or(1)).sum()
}

fn made_for(seen: &Seen<'_>, wanted: &MadeFor) -> Result<(), String> {
    let owned = |volume: &&Value| claim_key(volume).as_deref() == Some(&wanted.claim);
    let volume = seen.volumes.iter().find(owned).ok_or("it has no volume in the API")?;
    let backend = seen.driver.backend();
    let handle = text(volume, "/spec/csi/volumeHandle");
    let stored = backend.volumes().get(handle).ok_or("its volume is not in the driver")?;
    let capability = stored.capabilities.first().ok_or("its volume has no capability")?;
    let mode = capability.access_mode.as_ref().and_then(|mode| Mode::try_from(mode.mode).ok());
    let (kind, fs_type) = match &capability.access_type {
        Some(AccessType::Block(_)) => ("block", ""),
        Some(AccessType::Mount(mount)) => ("mount", mount.fs_type.as_str()),
        None => ("", ""),
    };
    let reachable = |segment: &str| {
        let (key, value) = segment.split_once('=').unwrap_or((segment, ""));
        stored.volume.accessible_topology.iter().any(|place| place.segments.get(key).is_some_and(|is| is == value))
    };
    let checks = [
        wanted.access_mode.as_deref().is_none_or(|wanted| mode.is_some_and(|mode| mode.as_str_name() == wanted)),
        wanted.access_type.as_deref().is_none_or(|wanted| kind == wanted),
        wanted.fs_type.as_deref().is_none_or(|wanted| fs_type == wanted),
        wanted.bytes.is_none_or(|wanted| stored.volume.capacity_bytes == wanted),
        wanted.segment.as_deref().is_none_or(reachable),
    ];
    if checks.iter().all(|holds| *holds) {
        return Ok(());
    }
    Err(format!(
        "access mode {mode:?}, {kind} {fs_type:?}, {} bytes, topology {:?}",
        stored.volume.capacity_bytes, stored.volume.accessible_topology
    ))
}
