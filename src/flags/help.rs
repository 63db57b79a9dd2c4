//! The text of `--help`: how to start, then all flags by topic with their defaults, then gates, variables, exit
//! codes.

use super::gates::EFFECTIVE;
use super::raw::{Raw, SPECS, Spec};
use std::fmt::Write;

const HEAD: &str = "\
csi-provisioner makes volumes of a CSI driver out of PersistentVolumeClaims and deletes released ones.
It runs in a pod beside the driver and takes the flags of the Kubernetes external-provisioner 6.4.

Usage:
  csi-provisioner [--flag=value]...

Beside a driver in a pod, with two or more replicas:
  csi-provisioner --csi-address=/run/csi/socket --leader-election --http-endpoint=:8080
On your own machine, against a cluster of yours:
  KUBECONFIG=$HOME/.kube/config csi-provisioner --csi-address=/tmp/csi.sock -v=5

A switch is --name, --name=true or --name=false (never --name false). Durations are written 500ms, 10s, 1h30m.
This text: --help or -h.
";

const TAIL: &str = "
Environment:
  KUBECONFIG           kubeconfig file, has precedence over --kubeconfig
  POD_NAMESPACE        namespace of the Lease, if --leader-election-namespace is empty
  NAMESPACE, POD_NAME  namespace and owner of capacity objects (--enable-capacity)
  NODE_NAME            the node (--node-deployment)

Exit codes:
  0    help, version, or a clean stop
  1    an address or a log option was refused, the driver was lost, or leadership was lost
  2    a flag was refused: one line says which value, what is allowed, and an example
  255  an unknown feature gate, a missing environment variable, or a start that failed
";

/// The whole text.
pub(super) fn text() -> String {
    let defaults = Raw::default();
    let mut text = HEAD.to_owned();
    let mut group = "";
    for spec in SPECS {
        if spec.group != group {
            group = spec.group;
            let _ = writeln!(text, "\n{group}:");
        }
        flag(&mut text, spec, &(spec.show)(&defaults));
    }
    text.push_str("\nFeature gates (--feature-gates=Name=true,...); those of the API server library have no effect:\n");
    for gate in &EFFECTIVE {
        let _ = writeln!(text, "  {} ({}, default {})\n      {}", gate.name, gate.stage, gate.default, gate.help);
    }
    text.push_str(TAIL);
    text
}

fn flag(text: &mut String, spec: &Spec, default: &str) {
    let Spec { name, placeholder, help, .. } = spec;
    let value = if spec.switch { String::new() } else { format!("={placeholder}") };
    let default = if default.is_empty() { String::new() } else { format!(" (default {default})") };
    let _ = writeln!(text, "  --{name}{value}{default}\n      {help}");
}
