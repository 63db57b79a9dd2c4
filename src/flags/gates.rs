//! Feature gates: which exist, what they default to, and what the command line makes of them (provisioning.md 1.7).
//!
//! The Go sidecar links the generic API server library and thereby accepts its gates; a deployment that sets one
//! must start here too, so their names are known and have no effect.

use super::lists::GateSwitches;
use super::suggest;

/// The gates that change what this program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one field per gate")]
pub struct Gates {
    /// `Topology`.
    pub topology: bool,
    /// `CrossNamespaceVolumeDataSource`.
    pub cross_namespace_source: bool,
    /// `VolumeAttributesClass`, before discovery.
    pub attributes_class: bool,
    /// `VolumeAttributesClass` is on the command line: discovery must not change it.
    pub attributes_class_set_explicitly: bool,
    /// `ReleaseLeaderElectionOnExit`: drain and release the Lease on SIGTERM. On unless set to false, which restores
    /// the default of the Go sidecar: the signal ends the process at once.
    pub release_on_stop: bool,
}

/// A gate that cannot be set like that. The Go sidecar ends with code 255 for each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// No gate has this name.
    #[error(
        "--feature-gates: unrecognized feature gate: {name:?}; {hint}; gates with an effect: {}",
        effective_names()
    )]
    Unknown {
        /// The name as written.
        name: String,
        /// What to do.
        hint: String,
    },
    /// The gate can only have its default.
    #[error(
        "--feature-gates: cannot set {name} to {}: it is locked to {only} and has no effect here, take it out",
        !only
    )]
    Locked {
        /// The gate.
        name: &'static str,
        /// The only permitted value.
        only: bool,
    },
}

/// A gate with an effect, for the help.
pub(super) struct Effective {
    pub name: &'static str,
    pub stage: &'static str,
    pub default: bool,
    pub help: &'static str,
}

const TOPOLOGY: &str = "Topology";
const CROSS_NAMESPACE: &str = "CrossNamespaceVolumeDataSource";
const ATTRIBUTES_CLASS: &str = "VolumeAttributesClass";
const RELEASE: &str = "ReleaseLeaderElectionOnExit";
const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

/// The gates of [`Gates`] and the two group switches.
pub(super) const EFFECTIVE: [Effective; 6] = [
    Effective {
        name: TOPOLOGY,
        stage: "GA",
        default: true,
        help: "use the topology that the driver reports, if it can",
    },
    Effective {
        name: CROSS_NAMESPACE,
        stage: "alpha",
        default: false,
        help: "take data sources from other namespaces, if a ReferenceGrant permits it",
    },
    Effective {
        name: ATTRIBUTES_CLASS,
        stage: "GA",
        default: true,
        help: "pass the parameters of a claim's VolumeAttributesClass; unset: if the API server has them",
    },
    Effective {
        name: RELEASE,
        stage: "alpha",
        default: true,
        help: "finish running work and release the Lease on SIGTERM (the Go sidecar defaults to false)",
    },
    Effective {
        name: ALL_ALPHA,
        stage: "group",
        default: false,
        help: "CrossNamespaceVolumeDataSource, unless named itself",
    },
    Effective { name: ALL_BETA, stage: "group", default: false, help: "no gate with an effect is beta at present" },
];

/// Gates of the API server library; a locked one carries its only value.
const WITHOUT_EFFECT: &[(&str, Option<bool>)] = &[
    ("APIResponseCompression", None),
    ("APIServerIdentity", None),
    ("APIServerWebhookAuthenticationToken", None),
    ("APIServingWithRoutine", None),
    ("AggregatedDiscoveryRemoveBetaType", Some(true)),
    ("AllowParsingUserUIDFromCertAuth", None),
    ("AllowUnsafeMalformedObjectDeletion", None),
    ("CBORServingAndStorage", None),
    ("ComponentFlagz", None),
    ("ComponentStatusz", None),
    ("ConcurrentWatchObjectDecode", None),
    ("ConsistentListFromCacheSkipTimeoutFallback", None),
    ("ConstrainedImpersonation", None),
    ("CoordinatedLeaderElection", None),
    ("DeclarativeValidation", Some(true)),
    ("DeclarativeValidationBeta", None),
    ("DeclarativeValidationTakeover", Some(false)),
    ("DetectCacheInconsistency", None),
    ("EtcdRangeStream", None),
    ("ExcludeAdmissionWebhookVirtualResources", None),
    ("KMSv1", None),
    ("ListFromCacheSnapshot", None),
    ("ManifestBasedAdmissionControlConfig", None),
    ("MutatingAdmissionPolicy", None),
    ("NativeHistograms", None),
    ("OpenAPIEnums", None),
    ("RemoteRequestHeaderUID", None),
    ("SeparateCacheWatchRPC", Some(false)),
    ("ShardedListAndWatch", None),
    ("SizeBasedListCostEstimate", None),
    ("StorageVersionAPI", None),
    ("StorageVersionHash", None),
    ("StructuredAuthenticationConfigurationEgressSelector", None),
    ("StructuredAuthenticationConfigurationJWKSMetrics", None),
    ("TokenRequestServiceAccountUIDValidation", None),
    ("UnauthenticatedHTTP2DOSMitigation", None),
    ("UnknownVersionInteroperabilityProxy", None),
    ("WatchCacheInitializationPostStartHook", Some(true)),
    ("WatchList", None),
    ("WatchListCompression", None),
    ("WebhookRoundTripLoadBalancing", None),
];

/// Applies the switches to the defaults; the texts are worth a warning each.
///
/// # Errors
/// [`GateError`] for the first (by name) that is unknown or locked.
pub fn resolve(switches: &GateSwitches) -> Result<(Gates, Vec<String>), GateError> {
    let mut warnings = Vec::new();
    for (name, on) in switches {
        if EFFECTIVE.iter().any(|gate| gate.name == name) {
            if name == TOPOLOGY || name == ATTRIBUTES_CLASS {
                warnings.push(format!("feature gate {name} is GA and will be removed in a future release"));
            }
            continue;
        }
        match WITHOUT_EFFECT.iter().find(|(known, _)| known == name) {
            Some((name, Some(only))) if only != on => return Err(GateError::Locked { name, only: *only }),
            Some((name, _)) => warnings.push(format!("feature gate {name} has no effect in this program")),
            None => return Err(GateError::Unknown { name: name.clone(), hint: hint(name) }),
        }
    }
    let value = |name: &str| switches.get(name).copied();
    let gates = Gates {
        topology: value(TOPOLOGY).unwrap_or(true),
        cross_namespace_source: value(CROSS_NAMESPACE).or(value(ALL_ALPHA)).unwrap_or(false),
        attributes_class: value(ATTRIBUTES_CLASS).unwrap_or(true),
        attributes_class_set_explicitly: value(ATTRIBUTES_CLASS).is_some(),
        // Only its own name counts: AllAlpha=false asks for stable behaviour, not for leaked Leases.
        release_on_stop: value(RELEASE).unwrap_or(true),
    };
    Ok((gates, warnings))
}

fn hint(name: &str) -> String {
    if name == "HonorPVReclaimPolicy" {
        return "it was removed because what it did is always done, take it out".to_owned();
    }
    let known = EFFECTIVE.iter().map(|gate| gate.name).chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name));
    match suggest::nearest(name, known) {
        Some(near) => format!("did you mean {near}?"),
        None => "there is no such gate, take it out".to_owned(),
    }
}

fn effective_names() -> String {
    EFFECTIVE.map(|gate| gate.name).join(", ")
}
