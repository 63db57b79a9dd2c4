//! Every way to end before the start: its code, and that one line names the flag and teaches the repair.

use super::super::raw::SPECS;
use super::{exit, exit_in};

/// Arguments, exit code, and what the line has to contain.
type Case = (&'static [&'static str], u8, &'static [&'static str]);

const CASES: &[Case] = &[
    // Syntax: code 2.
    (&["--timeout=5"], 2, &["--timeout=\"5\"", "needs a unit", "example: --timeout=10s"]),
    (&["--timeout", "1d"], 2, &["--timeout=\"1d\"", "no unit \"d\""]),
    (&["--timeout"], 2, &["--timeout needs a value", "example: --timeout=10s"]),
    (&["-v"], 2, &["--v needs a value"]),
    (&["-v", "--version"], 2, &["--v=\"--version\""]),
    (&["-v="], 2, &["--v=\"\""]),
    (&["-v5v"], 2, &["--v=\"5v\""]),
    (&["--strict-topology=maybe"], 2, &["--strict-topology=\"maybe\"", "true or false"]),
    (&["--worker-threads=many"], 2, &["--worker-threads=\"many\"", "not a whole number"]),
    (&["--feature-gates=Topology=maybe"], 2, &["--feature-gates", "\"Topology\"", "\"maybe\""]),
    (&["--leader-election-labels=a"], 2, &["--leader-election-labels", "item \"a\"", "key:value"]),
    (&["--vmodule=a=x"], 2, &["--vmodule", "\"a=x\""]),
    (&["--durable-intent=on"], 2, &["--durable-intent=\"on\"", "off, uncertain or always"]),
    (&["--log-text-info-buffer-size=x"], 2, &["--log-text-info-buffer-size=\"x\"", "quantity"]),
    // Unknown flags: code 2.
    (&["--versoin"], 2, &["\"--versoin\"", "did you mean --version?"]),
    (&["--csi_address=x"], 2, &["did you mean --csi-address?"]),
    (&["--snapshot-orphan-sweep"], 2, &["unknown flag", "--help"]),
    (&["--=5"], 2, &["\"--=5\"", "two dashes and a name"]),
    (&["---x"], 2, &["\"---x\"", "two dashes and a name"]),
    (&["-csi-address=/x"], 2, &["two dashes", "--csi-address"]),
    (&["-http-endpoint=:1"], 2, &["two dashes", "--http-endpoint"]),
    (&["-version"], 2, &["two dashes", "--version"]),
    (&["-x"], 2, &["\"-x\"", "only -v and -h"]),
    (&["--logtostderr"], 2, &["\"--logtostderr\"", "were removed"]),
    (&["--log_dir=/tmp"], 2, &["--log_dir=/tmp", "were removed"]),
    (&["--provisioner=x"], 2, &["--provisioner=x", "removed"]),
    (&["--enable-leader-election"], 2, &["use --leader-election"]),
    // Log options: code 1.
    (&["--logging-format=xml"], 1, &["--logging-format=\"xml\"", "text or json"]),
    (&["--logging-format="], 1, &["--logging-format=\"\""]),
    (&["--log-flush-frequency=0"], 1, &["--log-flush-frequency=0s", "above 0"]),
    (&["--log-flush-frequency=-1s"], 1, &["--log-flush-frequency=-1s"]),
    (&["--vmodule=a=1", "--logging-format=json"], 1, &["--vmodule", "text"]),
    (&["--log-text-split-stream"], 1, &["--log-text-split-stream", "alpha"]),
    (&["--log-json-split-stream"], 1, &["--log-json-split-stream", "alpha"]),
    (&["--log-text-info-buffer-size=1Ki"], 1, &["--log-text-info-buffer-size", "alpha"]),
    (&["--log-json-info-buffer-size=1"], 1, &["--log-json-info-buffer-size", "alpha"]),
    // Gates and variables: code 255.
    (&["--feature-gates=Foo=true"], 255, &["unrecognized feature gate: \"Foo\"", "Topology, CrossNamespace"]),
    (&["--feature-gates=Topolgy=true"], 255, &["did you mean Topology?"]),
    (&["--feature-gates=HonorPVReclaimPolicy=true"], 255, &["HonorPVReclaimPolicy", "always done"]),
    (&["--feature-gates=KMSv1=true,DeclarativeValidation=false"], 255, &["cannot set DeclarativeValidation to false"]),
    (&["--feature-gates=SeparateCacheWatchRPC=true"], 255, &["locked to false"]),
    (&["--node-deployment"], 255, &["--node-deployment", "NODE_NAME", "spec.nodeName"]),
    (&["--enable-capacity"], 255, &["--enable-capacity", "NAMESPACE", "metadata.namespace"]),
    // Addresses: code 1.
    (&["--metrics-address=:1", "--http-endpoint=:2"], 1, &["--metrics-address", "--http-endpoint", "only one"]),
    (&["--csi-address=run/csi.sock"], 1, &["--csi-address=\"run/csi.sock\"", "unix://"]),
    (&["--csi-address=dns:///x"], 1, &["--csi-address", "unix://"]),
    (&["--csi-address=unix:/x"], 1, &["--csi-address", "unix://"]),
    (&["--csi-address=unix://"], 1, &["--csi-address", "unix://"]),
    (&["--csi-address="], 1, &["--csi-address=\"\""]),
    // Ranges and relations: code 2.
    (&["--timeout=0"], 2, &["--timeout=\"0s\"", "above 0"]),
    (&["--timeout=-1s"], 2, &["--timeout=\"-1s\""]),
    (&["--worker-threads=0"], 2, &["--worker-threads=\"0\"", "1 to 65536"]),
    (&["--worker-threads=65537"], 2, &["--worker-threads=\"65537\"", "1 to 65536"]),
    (&["--retry-interval-start=0"], 2, &["--retry-interval-start", "without a pause"]),
    (&["--retry-interval-max=0"], 2, &["--retry-interval-max", "without a pause"]),
    (&["--volume-name-uuid-length=-2"], 2, &["--volume-name-uuid-length=\"-2\"", "0 to 32"]),
    (&["--volume-name-uuid-length=33"], 2, &["--volume-name-uuid-length=\"33\"", "0 to 32"]),
    (&["--volume-name-uuid-length=4294967295"], 2, &["--volume-name-uuid-length=\"4294967295\""]),
    (&["--kube-api-burst=-1"], 2, &["--kube-api-burst=\"-1\""]),
    (&["--http-endpoint=:1", "--metrics-path=metrics"], 2, &["--metrics-path=\"metrics\"", "slash"]),
    (&["--http-endpoint=:1", "--metrics-path=/debug/pprof/"], 2, &["--metrics-path", "something else"]),
    (
        &["--leader-election", "--leader-election-lease-duration=10s"],
        2,
        &["--leader-election-renew-deadline=\"10s\"", "--leader-election-lease-duration=10s", "greater"],
    ),
    (
        &["--leader-election", "--leader-election-renew-deadline=6s"],
        2,
        &["--leader-election-retry-period=\"5s\"", "--leader-election-renew-deadline=6s", "1.2 times"],
    ),
    (&["--leader-election", "--leader-election-lease-duration=500ms"], 2, &["lease-duration=\"500ms\"", "seconds"]),
    (&["--leader-election", "--leader-election-retry-period=0"], 2, &["--leader-election-retry-period=\"0s\""]),
    (&["--leader-election", "--leader-election-renew-deadline=0"], 2, &["--leader-election-renew-deadline=\"0s\""]),
    (&["--leader-election", "--leader-election-labels=:x"], 2, &["--leader-election-labels=\":x\"", "would refuse"]),
    (&["--leader-election", "--leader-election-labels=a:-x"], 2, &["--leader-election-labels=\"a:-x\""]),
    (&["--leader-election", "--leader-election-labels=UP/a:x"], 2, &["--leader-election-labels=\"UP/a:x\""]),
];

#[test]
fn each_mistake_ends_with_its_code_and_one_line_that_names_it() {
    for (args, code, parts) in CASES {
        let exit = exit(args);
        assert_eq!(exit.code, *code, "{args:?}: {}", exit.line);
        assert!(!exit.line.contains(char::is_control), "{args:?}: {}", exit.line);
        for part in *parts {
            assert!(exit.line.contains(part), "{args:?}: {part:?} is not in {}", exit.line);
        }
    }
}

#[test]
fn every_flag_but_texts_refuses_a_bad_value_with_code_2() {
    let bad = "\n\u{7}bad";
    for spec in SPECS.iter().filter(|spec| spec.allowed != "any text") {
        let exit = exit(&[&format!("--{}={bad}", spec.name)]);
        let begin = format!("--{}=\"\\n\\u{{7}}bad\": ", spec.name);
        let end = format!("allowed: {}; example: --{}={}", spec.allowed, spec.name, spec.example);
        assert!(exit.code == 2 && exit.line.starts_with(&begin) && exit.line.ends_with(&end), "{}", exit.line);
    }
}

#[test]
fn renew_deadline_just_above_the_relation_is_allowed() {
    let args = ["--leader-election", "--leader-election-renew-deadline=6.000000001s"];
    assert!(super::config(&args).leader.is_some());
}

#[test]
fn owner_needs_the_pod_name() {
    let exit = exit_in(&["--enable-capacity"], &[("NAMESPACE", "ns"), ("POD_NAME", "")]);
    assert_eq!(exit.code, 255);
    assert!(exit.line.contains("POD_NAME") && exit.line.contains("--capacity-ownerref-level=-1"), "{}", exit.line);
}

#[test]
fn capacity_must_not_be_polled_without_a_pause() {
    let exit =
        exit_in(&["--enable-capacity", "--capacity-poll-interval=0"], &[("NAMESPACE", "ns"), ("POD_NAME", "pod")]);
    assert_eq!(exit.code, 2);
}

#[test]
fn of_two_mistakes_the_one_that_go_finds_first_decides() {
    assert_eq!(exit(&["--feature-gates=Foo=true", "--timeout=x"]).code, 2);
    assert_eq!(exit(&["--feature-gates=Foo=true", "--logging-format=xml"]).code, 1);
    assert!(exit(&["--feature-gates=Foo=true", "--node-deployment"]).line.contains("feature gate"));
    assert_eq!(exit(&["--logging-format=xml", "--node-deployment"]).code, 1);
}
