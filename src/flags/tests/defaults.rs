//! Without flags the sidecar runs as the Go one does without flags.

use super::super::raw::{Raw, SPECS};
use super::super::{Config, ConnectConfig, DurableIntent, Limit};
use super::config;
use crate::model::Options;
use crate::report::log::{Format, LogConfig};
use std::time::Duration;

#[test]
fn no_flags_give_the_go_defaults() {
    let expected = Config {
        csi_address: "/run/csi/socket".to_owned(),
        connect: ConnectConfig {
            master: None,
            kubeconfig: None,
            limit: Limit { qps: 5.0, burst: 10 },
            capacity_limit: Limit { qps: 1.0, burst: 5 },
        },
        timeout: Duration::from_secs(10),
        options: Options::default(),
        retry_start: Duration::from_secs(1),
        retry_max: Duration::from_mins(5),
        worker_threads: 100,
        cloning_protection_threads: 1,
        snapshot_sweep_interval: Some(Duration::from_mins(5)),
        leader: None,
        http: None,
        log: LogConfig { verbosity: 0, vmodule: Vec::new(), format: Format::Text, flush: Duration::from_secs(5) },
        attributes_class_set_explicitly: false,
        release_on_stop: true,
        node: None,
        capacity: None,
        durable_intent: DurableIntent::Off,
        durable_intent_namespace: "default".to_owned(),
        warnings: Vec::new(),
        not_yet: Vec::new(),
    };
    assert_eq!(config(&[]), expected);
}

/// Names and defaults as the help of the Go sidecar 6.4.0 shows them; switches are the second list.
const GO_VALUES: &[(&str, &str)] = &[
    ("capacity-ownerref-level", "1"),
    ("capacity-poll-interval", "1m0s"),
    ("capacity-threads", "1"),
    ("cloning-protection-threads", "1"),
    ("csi-address", "/run/csi/socket"),
    ("default-fstype", ""),
    ("feature-gates", ""),
    ("http-endpoint", ""),
    ("kube-api-burst", "10"),
    ("kube-api-capacity-burst", "5"),
    ("kube-api-capacity-qps", "1"),
    ("kube-api-qps", "5"),
    ("kubeconfig", ""),
    ("leader-election-labels", ""),
    ("leader-election-lease-duration", "15s"),
    ("leader-election-namespace", ""),
    ("leader-election-renew-deadline", "10s"),
    ("leader-election-retry-period", "5s"),
    ("log-flush-frequency", "5s"),
    ("log-json-info-buffer-size", "0"),
    ("log-text-info-buffer-size", "0"),
    ("logging-format", "text"),
    ("master", ""),
    ("metrics-address", ""),
    ("metrics-path", "/metrics"),
    ("node-deployment-base-delay", "20s"),
    ("node-deployment-max-delay", "1m0s"),
    ("retry-interval-max", "5m0s"),
    ("retry-interval-start", "1s"),
    ("snapshot-orphan-sweep-interval", "5m0s"),
    ("timeout", "10s"),
    ("v", "0"),
    ("vmodule", ""),
    ("volume-name-prefix", "pvc"),
    ("volume-name-uuid-length", "-1"),
    ("worker-threads", "100"),
];

const GO_SWITCHES: &[(&str, &str)] = &[
    ("automaxprocs", "false"),
    ("capacity-for-immediate-binding", "false"),
    ("controller-publish-readonly", "false"),
    ("enable-capacity", "false"),
    ("enable-pprof", "false"),
    ("extra-create-metadata", "false"),
    ("immediate-topology", "true"),
    ("leader-election", "false"),
    ("log-json-split-stream", "false"),
    ("log-text-split-stream", "false"),
    ("node-deployment", "false"),
    ("node-deployment-immediate-binding", "true"),
    ("prevent-volume-mode-conversion", "true"),
    ("strict-topology", "false"),
    ("version", "false"),
];

fn table(switch: bool) -> Vec<(&'static str, String)> {
    let defaults = Raw::default();
    let ours = ["durable-intent", "durable-intent-namespace"];
    let flags = SPECS.iter().filter(|spec| spec.switch == switch && !ours.contains(&spec.name));
    let mut table: Vec<_> = flags.map(|spec| (spec.name, (spec.show)(&defaults))).collect();
    table.sort_unstable();
    table
}

#[test]
fn flags_with_a_value_are_those_of_go_with_their_defaults() {
    let expected: Vec<_> = GO_VALUES.iter().map(|(name, default)| (*name, (*default).to_owned())).collect();
    assert_eq!(table(false), expected);
}

#[test]
fn switches_are_those_of_go_with_their_defaults() {
    let expected: Vec<_> = GO_SWITCHES.iter().map(|(name, default)| (*name, (*default).to_owned())).collect();
    assert_eq!(table(true), expected);
}

#[test]
fn flag_names_are_unique() {
    let mut names: Vec<_> = SPECS.iter().map(|spec| spec.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SPECS.len());
}
