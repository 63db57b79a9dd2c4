//! Environment, gates, and what flags mean together.

use super::super::{
    CapacityConfig, HttpConfig, LeaderConfig, Limit, NodeDeploymentConfig, OwnerConfig, Parsed, parse_with,
};
use super::{command_line, config, config_in, parse_in};
use crate::report::log::{Format, Vmodule};
use std::collections::BTreeMap;
use std::time::Duration;

#[test]
fn kubeconfig_variable_overrides_the_flag() {
    let flag = "--kubeconfig=/flag";
    assert_eq!(config(&[flag]).connect.kubeconfig, Some("/flag".into()));
    assert_eq!(config_in(&[flag], &[("KUBECONFIG", "/env")]).connect.kubeconfig, Some("/env".into()));
    assert_eq!(config_in(&[flag], &[("KUBECONFIG", "")]).connect.kubeconfig, Some("/flag".into()));
}

#[test]
fn lease_namespace_is_flag_then_variable_then_file_then_default() {
    let namespace = |args: &[&str], variable: Option<&str>, file: Option<&str>| {
        let args = command_line(&[&["--leader-election"], args].concat());
        let env = |name: &str| (name == "POD_NAMESPACE").then_some(variable).flatten().map(str::to_owned);
        match parse_with(&args, &env, &|| file.map(str::to_owned)) {
            Ok(Parsed::Run(config)) => config.leader.expect("leader election is on").namespace,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(namespace(&["--leader-election-namespace=flag"], Some("variable"), Some("file")), "flag");
    assert_eq!(namespace(&[], Some("variable"), Some("file")), "variable");
    assert_eq!(namespace(&[], Some(""), Some(" file\n")), "file");
    assert_eq!(namespace(&[], None, Some(" \n")), "default");
    assert_eq!(namespace(&[], None, None), "default");
}

#[test]
fn durable_intents_live_in_the_own_namespace_unless_told_otherwise() {
    let own = [("POD_NAMESPACE", "own")];
    assert_eq!(config_in(&[], &own).durable_intent_namespace, "own");
    assert_eq!(config_in(&["--durable-intent-namespace=other"], &own).durable_intent_namespace, "other");
}

#[test]
fn leader_election_carries_its_flags() {
    let leader = config(&[
        "--leader-election",
        "--leader-election-namespace=ns",
        "--leader-election-lease-duration=60s",
        "--leader-election-renew-deadline=40s",
        "--leader-election-retry-period=8s",
        "--leader-election-labels=example.com/app:csi,empty:",
    ]);
    let labels = [("example.com/app", "csi"), ("empty", "")];
    let expected = LeaderConfig {
        namespace: "ns".to_owned(),
        lease_duration: Duration::from_mins(1),
        renew_deadline: Duration::from_secs(40),
        retry_period: Duration::from_secs(8),
        labels: BTreeMap::from(labels.map(|(key, value)| (key.to_owned(), value.to_owned()))),
    };
    assert_eq!(leader.leader, Some(expected));
}

#[test]
fn wrong_lease_times_do_not_matter_without_leader_election() {
    assert_eq!(config(&["--leader-election-lease-duration=1s"]).leader, None);
}

#[test]
fn http_endpoint_serves_leader_health_only_with_leader_election() {
    let http = |args: &[&str]| config(args).http;
    let expected = |leader_health| HttpConfig {
        address: ":8080".to_owned(),
        metrics_path: "/metrics".to_owned(),
        leader_health,
        pprof: false,
    };
    assert_eq!(http(&["--http-endpoint=:8080"]), Some(expected(false)));
    assert_eq!(http(&["--http-endpoint=:8080", "--leader-election"]), Some(expected(true)));
    assert_eq!(http(&["--metrics-address=:8080", "--leader-election"]), Some(expected(false)));
    assert_eq!(http(&["--metrics-path=/m", "--leader-election"]), None);
}

#[test]
fn http_carries_path_and_profiling() {
    let http = config(&["--http-endpoint=:1", "--metrics-path=/m", "--enable-pprof"]).http.expect("an address is set");
    assert_eq!((http.metrics_path.as_str(), http.pprof), ("/m", true));
}

#[test]
fn metrics_path_does_not_matter_without_an_address() {
    assert_eq!(config(&["--metrics-path=metrics"]).http, None);
}

#[test]
fn request_limits_follow_client_go() {
    let limit = |qps: &str, burst: &str| {
        config(&[&format!("--kube-api-qps={qps}"), &format!("--kube-api-burst={burst}")]).connect.limit
    };
    assert_eq!(limit("20", "40"), Limit { qps: 20.0, burst: 40 });
    assert_eq!(limit("0", "0"), Limit { qps: 5.0, burst: 10 });
    assert_eq!(limit("-1", "-7"), Limit { qps: f64::INFINITY, burst: 10 });
    assert_eq!(limit("inf", "99999999999"), Limit { qps: f64::INFINITY, burst: u32::MAX });
}

#[test]
fn capacity_carries_its_flags_and_variables() {
    let args = [
        "--enable-capacity",
        "--capacity-threads=2",
        "--capacity-poll-interval=3m",
        "--capacity-for-immediate-binding",
        "--capacity-ownerref-level=2",
        "--kube-api-capacity-qps=3",
        "--kube-api-capacity-burst=4",
    ];
    let config = config_in(&args, &[("NAMESPACE", "ns"), ("POD_NAME", "pod")]);
    let expected = CapacityConfig {
        namespace: "ns".to_owned(),
        owner: Some(OwnerConfig { pod_name: "pod".to_owned(), level: 2 }),
        threads: 2,
        poll_interval: Duration::from_mins(3),
        immediate_binding: true,
    };
    assert_eq!(config.capacity, Some(expected));
    assert_eq!(config.connect.capacity_limit, Limit { qps: 3.0, burst: 4 });
    assert_eq!(config.not_yet, ["--enable-capacity"]);
}

#[test]
fn capacity_without_owner_needs_no_pod_name() {
    let config = config_in(&["--enable-capacity", "--capacity-ownerref-level=-1"], &[("NAMESPACE", "ns")]);
    assert_eq!(config.capacity.and_then(|capacity| capacity.owner), None);
}

#[test]
fn node_deployment_carries_its_flags_and_variable() {
    let args = [
        "--node-deployment",
        "--node-deployment-immediate-binding=false",
        "--node-deployment-base-delay=-1s",
        "--node-deployment-max-delay=30s",
    ];
    let config = config_in(&args, &[("NODE_NAME", "n1")]);
    let expected = NodeDeploymentConfig {
        node_name: "n1".to_owned(),
        immediate_binding: false,
        base_delay: Duration::ZERO,
        max_delay: Duration::from_secs(30),
    };
    assert_eq!(config.node, Some(expected));
    assert!(config.not_yet.is_empty(), "it works");
}

#[test]
fn leader_election_with_node_deployment_runs_and_is_warned_of() {
    let warnings = config_in(&["--node-deployment", "--leader-election"], &[("NODE_NAME", "n1")]).warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings.iter().all(|line| line.contains("every node but one stays idle")), "{warnings:?}");
}

#[test]
fn sweep_interval_of_zero_or_less_is_no_sweep() {
    assert_eq!(config(&["--snapshot-orphan-sweep-interval=0"]).snapshot_sweep_interval, None);
    assert_eq!(config(&["--snapshot-orphan-sweep-interval=-1m"]).snapshot_sweep_interval, None);
}

#[test]
fn release_on_stop_ends_only_by_its_own_gate() {
    let release = |gates: &str| config(&[&format!("--feature-gates={gates}")]).release_on_stop;
    assert!(!release("ReleaseLeaderElectionOnExit=false"));
    assert!(!release("AllAlpha=true,ReleaseLeaderElectionOnExit=false"));
    assert!(release("ReleaseLeaderElectionOnExit=true"));
    assert!(release("AllAlpha=false"));
}

#[test]
fn all_alpha_switches_cross_namespace_sources_unless_named() {
    let cross = |gates: &str| config(&[&format!("--feature-gates={gates}")]).options.cross_namespace_source;
    assert!(cross("AllAlpha=true"));
    assert!(!cross("AllAlpha=true,CrossNamespaceVolumeDataSource=false"));
    assert!(!cross("AllBeta=true"));
}

#[test]
fn attributes_class_on_the_command_line_is_marked_explicit() {
    let config = config(&["--feature-gates=VolumeAttributesClass=true"]);
    assert!(config.attributes_class_set_explicitly && config.options.attributes_class);
}

#[test]
fn gates_of_the_api_server_library_start_with_a_warning() {
    let warnings = config(&["--feature-gates=WatchList=false"]).warnings;
    assert_eq!(warnings, ["feature gate WatchList has no effect in this program"]);
}

#[test]
fn short_names_are_warned_of() {
    assert_eq!(config(&["--volume-name-uuid-length=11"]).warnings.len(), 1);
    assert_eq!(config(&["--volume-name-uuid-length=12"]).warnings.len(), 0);
    assert_eq!(config(&["--volume-name-uuid-length=32"]).options.volume_name_uuid_length, 32);
}

#[test]
fn empty_name_prefix_starts_with_a_warning() {
    let config = config(&["--volume-name-prefix="]);
    assert_eq!((config.options.volume_name_prefix.as_str(), config.warnings.len()), ("", 1));
}

#[test]
fn no_clone_protection_workers_count_as_one() {
    let config = config(&["--cloning-protection-threads=0"]);
    assert_eq!((config.cloning_protection_threads, config.warnings.len()), (1, 1));
}

#[test]
fn log_flags_reach_the_log() {
    let log = config(&["--vmodule=lease=5", "-v2", "--log-flush-frequency=1s"]).log;
    assert_eq!(log.vmodule, [Vmodule { pattern: "lease".to_owned(), level: 5 }]);
    assert_eq!((log.verbosity, log.flush, log.format), (2, Duration::from_secs(1), Format::Text));
    assert_eq!(config(&["--logging-format=json"]).log.format, Format::Json);
}

#[test]
fn version_needs_good_log_flags_gates_and_node_name_but_nothing_else() {
    let version = |args: &[&str]| matches!(parse_in(&[args, &["--version"]].concat(), &[]), Ok(Parsed::Version(_)));
    assert!(version(&["--timeout=0", "--worker-threads=0", "--csi-address=x", "--enable-capacity"]));
    assert!(version(&["--metrics-address=:1", "--http-endpoint=:1"]));
    assert!(!version(&["--logging-format=xml"]));
    assert!(!version(&["--feature-gates=Foo=true"]));
    assert!(!version(&["--node-deployment"]));
}
