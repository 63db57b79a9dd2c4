//! Rules that flags share, and the rules of the smaller groups: connection, HTTP server, capacity, node deployment.

use super::config::{CapacityConfig, HttpConfig, Limit, NodeDeploymentConfig, OwnerConfig};
use super::duration::GoDuration;
use super::raw::{CapacityFlags, HttpFlags, NodeFlags};
use super::{Exit, Surroundings};
use std::time::Duration;

/// Allowed numbers of workers.
pub(super) const THREADS: &str = "1 to 65536";
const MAX_THREADS: u64 = 65_536;

/// What client-go takes for a rate and a burst of zero.
const DEFAULT_LIMIT: Limit = Limit { qps: 5.0, burst: 10 };

/// A duration above zero.
pub(super) fn above_zero(flag: &str, value: GoDuration, otherwise: &str, example: &str) -> Result<Duration, Exit> {
    let refused = || Exit::bad_value(flag, &value.to_string(), otherwise, "a duration above 0", example);
    value.positive().ok_or_else(refused)
}

/// A number of workers. Zero counts as one and is warned of: in Go it starts too, but then nothing is done.
pub(super) fn threads(flag: &str, value: u64, warnings: &mut Vec<String>) -> Result<usize, Exit> {
    if value == 0 {
        warnings.push(format!("--{flag}=0 would leave the work undone, 1 is used; example: --{flag}=1"));
        return Ok(1);
    }
    let fits = usize::try_from(value).ok().filter(|_| value <= MAX_THREADS);
    fits.ok_or_else(|| Exit::bad_value(flag, &value.to_string(), "so many workers only cost memory", THREADS, "100"))
}

/// A request limit as client-go understands it: 0 = its default, a negative rate = no limit.
pub(super) fn limit(burst_flag: &str, qps: f64, burst: i64) -> Result<Limit, Exit> {
    if qps < 0.0 {
        return Ok(Limit { qps: f64::INFINITY, burst: DEFAULT_LIMIT.burst });
    }
    let qps = if qps == 0.0 { DEFAULT_LIMIT.qps } else { qps };
    match u32::try_from(burst) {
        Ok(0) => Ok(Limit { qps, burst: DEFAULT_LIMIT.burst }),
        Ok(burst) => Ok(Limit { qps, burst }),
        Err(_) if burst > 0 => Ok(Limit { qps, burst: u32::MAX }),
        Err(_) => {
            let why = "no request could ever be sent";
            Err(Exit::bad_value(burst_flag, &burst.to_string(), why, "0 (means 10) or more", "10"))
        }
    }
}

/// The line about arguments that no flag takes, if there are any.
pub(super) fn positional_warning(arguments: &[String]) -> Option<String> {
    (!arguments.is_empty()).then(|| {
        format!("ignored arguments: {arguments:?}; a switch takes its value after '=', such as --strict-topology=false")
    })
}

/// The driver's address, refused unless it is a Unix socket (code 1, as when the Go sidecar connects).
pub(super) fn csi_address(address: String) -> Result<String, Exit> {
    let path = address.strip_prefix("unix://").unwrap_or(&address);
    if (address.starts_with('/') || address.starts_with("unix://")) && !path.is_empty() {
        return Ok(address);
    }
    let why = "the driver is reached through a Unix socket only";
    let allowed = "an absolute path, or unix:// and a path";
    Err(Exit { code: 1, ..Exit::bad_value("csi-address", &address, why, allowed, "/run/csi/socket") })
}

/// The HTTP server, if one of its two flags has an address (provisioning.md 1.8).
pub(super) fn http(flags: HttpFlags, leader: bool, warnings: &mut Vec<String>) -> Result<Option<HttpConfig>, Exit> {
    let HttpFlags { http_endpoint, metrics_address, metrics_path, enable_pprof: pprof } = flags;
    let (address, leader_health) = match (http_endpoint.is_empty(), metrics_address.is_empty()) {
        (false, false) => {
            let line = "--metrics-address and --http-endpoint are both set: only one is permitted; keep \
                        --http-endpoint, it serves metrics and health";
            return Err(Exit::new(1, line.to_owned()));
        }
        (false, true) => (http_endpoint, leader),
        (true, false) => {
            warnings.push("--metrics-address is deprecated and has no health check: use --http-endpoint".to_owned());
            (metrics_address, false)
        }
        (true, true) => {
            if pprof {
                warnings.push("--enable-pprof has no effect without --http-endpoint".to_owned());
            }
            return Ok(None);
        }
    };
    let taken = metrics_path == "/healthz/leader-election" || metrics_path.starts_with("/debug/pprof");
    if taken || !metrics_path.starts_with('/') {
        let why = if taken { "this path serves something else" } else { "it does not start with a slash" };
        return Err(Exit::bad_value(
            "metrics-path",
            &metrics_path,
            why,
            "a path of its own, such as /metrics",
            "/metrics",
        ));
    }
    Ok(Some(HttpConfig { address, metrics_path, leader_health, pprof }))
}

/// Node deployment, if asked for: `NODE_NAME` has to be there (fatal in Go).
pub(super) fn node_deployment(
    flags: &NodeFlags,
    around: &Surroundings<'_>,
) -> Result<Option<NodeDeploymentConfig>, Exit> {
    let &NodeFlags {
        node_deployment,
        node_deployment_immediate_binding: immediate_binding,
        node_deployment_base_delay,
        node_deployment_max_delay,
    } = flags;
    if !node_deployment {
        return Ok(None);
    }
    let node_name = required(around, "NODE_NAME", "--node-deployment", "spec.nodeName")?;
    Ok(Some(NodeDeploymentConfig {
        node_name,
        immediate_binding,
        base_delay: node_deployment_base_delay.or_zero(),
        max_delay: node_deployment_max_delay.or_zero(),
    }))
}

/// Capacity publishing, if asked for, and its request limit.
pub(super) fn capacity(
    flags: &CapacityFlags,
    around: &Surroundings<'_>,
    warnings: &mut Vec<String>,
) -> Result<(Option<CapacityConfig>, Limit), Exit> {
    let &CapacityFlags {
        enable_capacity,
        capacity_threads,
        capacity_poll_interval,
        capacity_for_immediate_binding: immediate_binding,
        capacity_ownerref_level,
        kube_api_capacity_qps,
        kube_api_capacity_burst,
    } = flags;
    let limit = limit("kube-api-capacity-burst", kube_api_capacity_qps.0, kube_api_capacity_burst);
    if !enable_capacity {
        // Nobody asks for it then, so a wrong one does no harm.
        return Ok((None, limit.unwrap_or(DEFAULT_LIMIT)));
    }
    let limit = limit?;
    let hot = "capacity would be asked for without a pause";
    let poll_interval = above_zero("capacity-poll-interval", capacity_poll_interval, hot, "1m")?;
    let threads = threads("capacity-threads", capacity_threads, warnings)?;
    let namespace = required(around, "NAMESPACE", "--enable-capacity", "metadata.namespace")?;
    let owner = if capacity_ownerref_level < 0 {
        None
    } else {
        // No object has more owners above it than fit into 32 bits.
        let level = u32::try_from(capacity_ownerref_level).unwrap_or(u32::MAX);
        let flag = "--enable-capacity (or --capacity-ownerref-level=-1)";
        Some(OwnerConfig { pod_name: required(around, "POD_NAME", flag, "metadata.name")?, level })
    };
    Ok((Some(CapacityConfig { namespace, owner, threads, poll_interval, immediate_binding }), limit))
}

/// A variable that a flag needs; its absence ends the Go sidecar with a fatal line, code 255.
fn required(around: &Surroundings<'_>, variable: &str, flag: &str, field: &str) -> Result<String, Exit> {
    around.variable(variable).ok_or_else(|| {
        let line = format!(
            "{flag} needs the environment variable {variable}: set it in the pod from fieldRef {field}; \
             example: env: [{{name: {variable}, valueFrom: {{fieldRef: {{fieldPath: {field}}}}}}}]"
        );
        Exit::new(255, line)
    })
}
