//! How arguments are taken apart, compared with what the Go sidecar 6.4.0 was seen to do.

use super::super::raw::{Raw, SPECS, find};
use super::super::{DurableIntent, Parsed};
use super::{config, exit, parse};
use std::time::Duration;

/// The flag's value as text after one occurrence, or none if it is refused.
fn shown(name: &str, value: &str) -> Option<String> {
    let spec = find(name).expect("a known flag");
    let mut raw = Raw::default();
    (spec.set)(&mut raw, value).ok().map(|()| (spec.show)(&raw))
}

#[test]
fn every_flag_takes_its_own_example() {
    for spec in SPECS {
        let refusal = (spec.set)(&mut Raw::default(), spec.example).err();
        assert_eq!(refusal, None, "--{}={}", spec.name, spec.example);
    }
}

#[test]
fn every_flag_changes_only_its_own_field() {
    for spec in SPECS {
        let other = if (spec.show)(&Raw::default()) == "true" { "false" } else { spec.example };
        let mut raw = Raw::default();
        (spec.set)(&mut raw, other).expect("the example is allowed");
        let changed = |other: &&super::super::raw::Spec| (other.show)(&raw) != (other.show)(&Raw::default());
        let changed: Vec<_> = SPECS.iter().filter(changed).map(|other| other.name).collect();
        assert!(changed.iter().all(|name| *name == spec.name), "--{} changed {changed:?}", spec.name);
    }
}

/// Flag, text, and the value as shown; none = refused.
const VALUES: &[(&str, &str, Option<&str>)] = &[
    ("timeout", "0", Some("0s")),
    ("timeout", "+5s", Some("5s")),
    ("timeout", ".5s", Some("500ms")),
    ("timeout", "1.s", Some("1s")),
    ("timeout", "1h1h", Some("2h0m0s")),
    ("timeout", "1\u{b5}s", Some("1\u{b5}s")),
    ("timeout", "1\u{3bc}s", Some("1\u{b5}s")),
    ("timeout", "9223372036854775807ns", Some("2562047h47m16.854775807s")),
    ("timeout", "-9223372036854775808ns", Some("-2562047h47m16.854775808s")),
    ("timeout", "9223372036854775808ns", None),
    ("timeout", "5", None),
    ("timeout", "", None),
    ("timeout", "-", None),
    ("timeout", ".s", None),
    ("timeout", "1e3s", None),
    ("timeout", "1d", None),
    ("worker-threads", "0x10", Some("16")),
    ("worker-threads", "1_000", Some("1000")),
    ("worker-threads", "0b11", Some("3")),
    ("worker-threads", "010", Some("8")),
    ("worker-threads", "0_1", Some("1")),
    ("worker-threads", "0", Some("0")),
    ("worker-threads", "18446744073709551615", Some("18446744073709551615")),
    ("worker-threads", "18446744073709551616", None),
    ("worker-threads", "-1", None),
    ("worker-threads", "+5", None),
    ("worker-threads", "09", None),
    ("worker-threads", "0x", None),
    ("worker-threads", "1__0", None),
    ("worker-threads", "_1", None),
    ("kube-api-burst", "-0x10", Some("-16")),
    ("kube-api-burst", "+3", Some("3")),
    ("kube-api-burst", "99999999999", Some("99999999999")),
    ("kube-api-burst", "--3", None),
    ("kube-api-qps", "1e3", Some("1000")),
    ("kube-api-qps", "inf", Some("inf")),
    ("kube-api-qps", "1_0", Some("10")),
    ("kube-api-qps", "+1.5", Some("1.5")),
    ("kube-api-qps", ".5", Some("0.5")),
    ("kube-api-qps", "5.", Some("5")),
    ("kube-api-qps", "1e400", None),
    ("kube-api-qps", "1_", None),
    ("kube-api-qps", "NaN", None),
    ("kube-api-qps", "fast", None),
    ("kube-api-capacity-qps", "1e38", Some("100000000000000000000000000000000000000")),
    ("kube-api-capacity-qps", "1e39", None),
    ("strict-topology", "T", Some("true")),
    ("strict-topology", "0", Some("false")),
    ("strict-topology", "tRUE", None),
    ("strict-topology", "", None),
    ("v", "2147483647", Some("2147483647")),
    ("v", "2147483648", None),
    ("v", "0x5", None),
    ("v", "-1", None),
    ("v", "", None),
    ("feature-gates", " Topology = T ,", Some("Topology=true")),
    ("feature-gates", ",", Some("")),
    ("feature-gates", "Topology", None),
    ("feature-gates", "Topology=true=false", None),
    ("leader-election-labels", " a : b ,c:", Some("a:b,c:")),
    ("leader-election-labels", "a:b,", None),
    ("leader-election-labels", "a:b:c", None),
    ("leader-election-labels", "", None),
    ("vmodule", "a=1,,b=2,", Some("a=1,b=2")),
    ("vmodule", "", Some("")),
    ("vmodule", "[=1", Some("[=1")),
    ("vmodule", "a", None),
    ("vmodule", "=1", None),
    ("vmodule", "a=-1", None),
    ("log-text-info-buffer-size", "0Ki", Some("0Ki")),
    ("log-text-info-buffer-size", "1e3", Some("1e3")),
    ("log-text-info-buffer-size", "x", None),
    ("log-text-info-buffer-size", "", None),
    ("log-text-info-buffer-size", "1.2.3", None),
    ("durable-intent", "always", Some("always")),
    ("durable-intent", "sometimes", None),
];

#[test]
fn values_are_read_as_go_reads_them() {
    for (name, value, expected) in VALUES {
        assert_eq!(shown(name, value).as_deref(), *expected, "--{name}={value}");
    }
}

#[test]
fn verbosity_is_read_in_all_spellings() {
    for args in [&["-v=5"][..], &["-v5"], &["-v", "5"], &["--v=5"], &["--v", "5"]] {
        assert_eq!(config(args).log.verbosity, 5, "{args:?}");
    }
}

#[test]
fn value_may_be_the_next_argument_even_with_a_dash() {
    assert_eq!(config(&["--volume-name-uuid-length", "-1"]).options.volume_name_uuid_length, -1);
}

#[test]
fn last_value_of_a_flag_wins() {
    assert_eq!(config(&["--timeout=3s", "--timeout=4s"]).timeout, Duration::from_secs(4));
}

#[test]
fn feature_gates_merge_over_repeated_use() {
    let options =
        config(&["--feature-gates=Topology=false", "--feature-gates=CrossNamespaceVolumeDataSource=true"]).options;
    assert_eq!((options.topology, options.cross_namespace_source), (false, true));
}

#[test]
fn labels_merge_over_repeated_use() {
    let labels = ["--leader-election-labels=a:b", "--leader-election-labels=c:d"];
    let leader = config(&["--leader-election", labels[0], labels[1]]).leader.expect("leader election is on");
    assert_eq!(leader.labels.len(), 2);
}

#[test]
fn switch_alone_means_true() {
    assert!(config(&["--strict-topology"]).options.strict_topology);
}

#[test]
fn switch_with_equals_false_is_off() {
    assert!(!config(&["--immediate-topology=false"]).options.immediate_topology);
}

#[test]
fn word_behind_a_switch_is_ignored_and_named_in_one_warning() {
    let config = config(&["--strict-topology", "false", "-", "--timeout=1s", "--", "--v=5"]);
    assert!(config.options.strict_topology);
    assert_eq!(config.timeout, Duration::from_secs(1));
    assert_eq!(config.log.verbosity, 0);
    let expected = "ignored arguments: [\"false\", \"-\", \"--v=5\"]; a switch takes its value after '=', such as \
                    --strict-topology=false";
    assert_eq!(config.warnings, [expected]);
}

#[test]
fn first_of_help_and_mistake_decides() {
    assert!(matches!(parse(&["--help", "--unknown"]), Ok(Parsed::Help(_))));
    assert!(matches!(parse(&["-h"]), Ok(Parsed::Help(_))));
    assert!(matches!(parse(&["--help=false"]), Ok(Parsed::Help(_))));
    assert_eq!(exit(&["--unknown", "--help"]).code, 2);
    assert_eq!(exit(&["--timeout=x", "-h"]).code, 2);
}

#[test]
fn version_is_program_and_version() {
    let expected = format!("/bin/csi-provisioner {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(parse(&["--version"]), Ok(Parsed::Version(expected)));
}

#[test]
fn version_false_runs() {
    assert!(matches!(parse(&["--version=false"]), Ok(Parsed::Run(_))));
}

#[test]
fn no_arguments_at_all_still_have_a_program_name() {
    let parsed = super::super::parse_with(&[], &|_| None, &|| None);
    assert!(matches!(parsed, Ok(Parsed::Run(_))));
}

#[test]
fn durable_intent_takes_three_modes() {
    assert_eq!(config(&["--durable-intent=uncertain"]).durable_intent, DurableIntent::Uncertain);
    assert_eq!(config(&["--durable-intent=always"]).durable_intent, DurableIntent::Always);
    assert_eq!(config(&["--durable-intent=off"]).durable_intent, DurableIntent::Off);
}
