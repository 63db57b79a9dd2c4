//! The checked configuration, and the way from flags and environment to it.
//!
//! Order of the checks as in the Go sidecar (provisioning.md 2.1), so that of two mistakes the same one decides the
//! exit code: log options, gates, `NODE_NAME`, `--version`, both addresses; then our own ranges and relations, which
//! the Go sidecar lets crash or loop.

use super::raw::{ConnectionFlags, DurableFlags, GeneralFlags, Raw};
use super::syntax::Arguments;
use super::work::{self, Work};
use super::{Exit, Parsed, Surroundings, gates, leader, logging, rules};
use crate::model::Options;
use crate::report::log::LogConfig;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Everything the composition root needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `--csi-address`: starts with `/` or `unix://`.
    pub csi_address: String,
    /// How to reach the API server.
    pub connect: ConnectConfig,
    /// `--timeout`: deadline of one driver call, above 0.
    pub timeout: Duration,
    /// Settings of the decisions.
    pub options: Options,
    /// `--retry-interval-start`: base of the back-off, above 0.
    pub retry_start: Duration,
    /// `--retry-interval-max`: cap of the back-off, above 0; may be below the base.
    pub retry_max: Duration,
    /// `--worker-threads`: claim workers, and as many volume workers; at least 1.
    pub worker_threads: usize,
    /// `--cloning-protection-threads`, at least 1.
    pub cloning_protection_threads: usize,
    /// `--snapshot-orphan-sweep-interval`; none = no sweep.
    pub snapshot_sweep_interval: Option<Duration>,
    /// Leader election, if asked for.
    pub leader: Option<LeaderConfig>,
    /// The HTTP server, if it has an address.
    pub http: Option<HttpConfig>,
    /// The log.
    pub log: LogConfig,
    /// Gate `VolumeAttributesClass` is on the command line: discovery must not change `options.attributes_class`.
    pub attributes_class_set_explicitly: bool,
    /// Drain and release the Lease on SIGTERM; false = end at once, as the Go sidecar does by default.
    pub release_on_stop: bool,
    /// Deployment on each node, if asked for.
    pub node: Option<NodeDeploymentConfig>,
    /// Capacity publishing, if asked for.
    pub capacity: Option<CapacityConfig>,
    /// `--durable-intent`.
    pub durable_intent: DurableIntent,
    /// Where durable intents are kept: `--durable-intent-namespace`, else the pod's own namespace.
    pub durable_intent_namespace: String,
    /// Oddities of the command line, one log line each.
    pub warnings: Vec<String>,
    /// Flags whose feature does not exist yet, in use: to be said once in the log.
    pub not_yet: Vec<&'static str>,
}

/// How to reach the API server, and how fast.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectConfig {
    /// `--master`.
    pub master: Option<String>,
    /// Path of the kubeconfig: `KUBECONFIG`, else `--kubeconfig`. Neither this nor `master`: in-cluster.
    pub kubeconfig: Option<PathBuf>,
    /// `--kube-api-qps` and `--kube-api-burst`; events and the Lease get buckets of the same size.
    pub limit: Limit,
    /// `--kube-api-capacity-qps` and `--kube-api-capacity-burst`.
    pub capacity_limit: Limit,
}

/// A limit of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Requests per second, above 0; infinite = no limit.
    pub qps: f64,
    /// Requests at once, at least 1; without meaning if there is no limit.
    pub burst: u32,
}

/// Leader election. Holds: lease duration > renew deadline > 1.2 times retry period > 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Time without renewal until others may take over, at least a second.
    pub lease_duration: Duration,
    /// Time without successful renewal until the leader gives up.
    pub renew_deadline: Duration,
    /// Time between attempts.
    pub retry_period: Duration,
    /// Labels the holder puts on the Lease; valid keys and values.
    pub labels: BTreeMap<String, String>,
}

/// The HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Listen address as written, such as `:8080`.
    pub address: String,
    /// Path of the metrics, starts with `/`.
    pub metrics_path: String,
    /// Serve `/healthz/leader-election`: with `--http-endpoint` and `--leader-election`, never with
    /// `--metrics-address` (provisioning.md 12.1).
    pub leader_health: bool,
    /// Serve `/debug/pprof/`.
    pub pprof: bool,
}

/// Deployment beside the driver on each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDeploymentConfig {
    /// `NODE_NAME`.
    pub node_name: String,
    /// Take part in the race for immediate claims.
    pub immediate_binding: bool,
    /// First delay and jitter width; negative ones count as 0.
    pub base_delay: Duration,
    /// Cap of the delay; negative ones count as 0.
    pub max_delay: Duration,
}

/// Capacity publishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityConfig {
    /// `NAMESPACE`: where the objects live.
    pub namespace: String,
    /// The owner of the objects; none = no owner reference.
    pub owner: Option<OwnerConfig>,
    /// Workers, at least 1.
    pub threads: usize,
    /// Refresh period, above 0.
    pub poll_interval: Duration,
    /// Also for classes with immediate binding.
    pub immediate_binding: bool,
}

/// Which object owns capacity objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerConfig {
    /// `POD_NAME`: where the walk up the controllers begins.
    pub pod_name: String,
    /// Steps up from the pod.
    pub level: u32,
}

/// When a creation is written down before it may exist in the backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DurableIntent {
    /// Never.
    #[default]
    Off,
    /// After an answer that leaves it open.
    Uncertain,
    /// Before each first call.
    Always,
}

/// Applies environment, gates and rules to a command line without syntax mistakes.
///
/// # Errors
/// See [`super::parse`].
pub(super) fn resolve(arguments: Arguments, version: String, around: &Surroundings<'_>) -> Result<Parsed, Exit> {
    let Arguments { raw, positional } = arguments;
    let Raw { connection, provisioning, leader, capacity, node, durable, http, logging, general } = raw;
    let log = logging::resolve(logging)?;
    let (gates, mut warnings) =
        gates::resolve(&connection.feature_gates).map_err(|error| Exit::new(255, error.to_string()))?;
    let node = rules::node_deployment(&node, around)?;
    let GeneralFlags { version: version_asked } = general;
    if version_asked {
        return Ok(Parsed::Version(version));
    }
    warnings.extend(rules::positional_warning(&positional));
    let http = rules::http(http, leader.leader_election, &mut warnings)?;
    let (capacity, capacity_limit) = rules::capacity(&capacity, around, &mut warnings)?;
    let (csi_address, timeout, connect) = connection_part(connection, capacity_limit, around)?;
    let Work { options, retry, threads, cloning_protection_threads, snapshot_sweep_interval } =
        work::resolve(provisioning, gates, &mut warnings)?;
    let leader = leader::resolve(leader, around)?;
    warnings.extend(leader::conflict_warning(leader.is_some(), node.is_some()));
    let not_yet = capacity.is_some().then_some("--enable-capacity").into_iter().collect();
    let DurableFlags { durable_intent, durable_intent_namespace } = durable;
    Ok(Parsed::Run(Box::new(Config {
        csi_address,
        connect,
        timeout,
        options,
        retry_start: retry.0,
        retry_max: retry.1,
        worker_threads: threads,
        cloning_protection_threads,
        snapshot_sweep_interval,
        leader,
        http,
        log,
        attributes_class_set_explicitly: gates.attributes_class_set_explicitly,
        release_on_stop: gates.release_on_stop,
        node,
        capacity,
        durable_intent,
        durable_intent_namespace: around.namespace_or_own(durable_intent_namespace),
        warnings,
        not_yet,
    })))
}

/// The address of the driver, the deadline of its calls, and the way to the API server.
fn connection_part(
    flags: ConnectionFlags,
    capacity_limit: Limit,
    around: &Surroundings<'_>,
) -> Result<(String, Duration, ConnectConfig), Exit> {
    let ConnectionFlags {
        csi_address,
        timeout,
        kubeconfig,
        master,
        kube_api_qps,
        kube_api_burst,
        // Applied before `--version` is looked at.
        feature_gates: _,
        // The runtime sizes itself by the container's CPU quota anyway.
        automaxprocs: _,
    } = flags;
    let csi_address = rules::csi_address(csi_address)?;
    let timeout = rules::above_zero("timeout", timeout, "no call to the driver could succeed", "10s")?;
    let limit = rules::limit("kube-api-burst", kube_api_qps.0, kube_api_burst)?;
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let kubeconfig = around.variable("KUBECONFIG").or(some(kubeconfig)).map(PathBuf::from);
    Ok((csi_address, timeout, ConnectConfig { master: some(master), kubeconfig, limit, capacity_limit }))
}
