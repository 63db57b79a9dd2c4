//! One field per flag, one to one with the Go sidecar 6.4, plus our own few; defaults included.
//!
//! Only syntax lives here. What a value means together with others is decided in [`super::config`], which takes
//! these structs apart by name without `..`, so that a flag nobody wired does not compile quietly.

use super::config::DurableIntent;
use super::duration::GoDuration;
use super::lists::{BufferSize, GateSwitches, Labels};
use super::values::{FlagValue, Level, NarrowRate, Rate};
use crate::report::log::Vmodule;

/// What the parser, the help and the error lines need to know of a flag.
pub(super) struct Spec {
    /// Long name without dashes.
    pub name: &'static str,
    /// Heading in the help.
    pub group: &'static str,
    /// A value that works.
    pub example: &'static str,
    /// What the flag does.
    pub help: &'static str,
    /// `--name` alone means true.
    pub switch: bool,
    /// What may be written.
    pub allowed: &'static str,
    /// Stands for the value in the help.
    pub placeholder: &'static str,
    /// Takes in one occurrence.
    pub set: fn(&mut Raw, &str) -> Result<(), String>,
    /// The value as text.
    pub show: fn(&Raw) -> String,
}

/// Builds the structs with their defaults and the table [`SPECS`] from one list, so that they cannot disagree.
macro_rules! flag_groups {
    ($($group:ident: $Group:ident = $title:literal {
        $($field:ident: $Type:ty = $default:expr, $name:literal, $example:literal, $help:literal;)*
    })*) => {
        $(
            #[doc = $title]
            #[derive(Clone, Debug, PartialEq)]
            #[allow(clippy::struct_excessive_bools, reason = "one field per flag")]
            #[allow(clippy::doc_markdown, reason = "the documentation is the help text")]
            #[allow(clippy::struct_field_names, reason = "fields are named like their flags")]
            pub struct $Group { $(#[doc = $help] pub $field: $Type,)* }

            impl Default for $Group {
                fn default() -> Self {
                    Self { $($field: $default,)* }
                }
            }
        )*

        /// All flags as written on the command line, defaults filled in.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Raw { $(#[doc = $title] pub $group: $Group,)* }

        /// All flags in the order of the help.
        pub(super) static SPECS: &[Spec] = &[$($(Spec {
            name: $name,
            group: $title,
            example: $example,
            help: $help,
            switch: <$Type as FlagValue>::SWITCH,
            allowed: <$Type as FlagValue>::ALLOWED,
            placeholder: <$Type as FlagValue>::PLACEHOLDER,
            set: |raw, text| raw.$group.$field.read(text),
            show: |raw| raw.$group.$field.show(),
        },)*)*];
    };
}

flag_groups! {
    connection: ConnectionFlags = "Driver and API server" {
        csi_address: String = "/run/csi/socket".to_owned(), "csi-address", "/run/csi/socket",
            "Unix socket of the CSI driver: an absolute path, or unix:// and a path.";
        timeout: GoDuration = GoDuration::from_secs(10), "timeout", "10s",
            "Deadline of each call to the driver. An expired creation goes on in the background and is asked again.";
        kubeconfig: String = String::new(), "kubeconfig", "/etc/kubeconfig",
            "Kubeconfig file, for use outside of a cluster. The variable KUBECONFIG has precedence.";
        master: String = String::new(), "master", "https://10.0.0.1:6443",
            "URL of the API server, for use outside of a cluster.";
        kube_api_qps: Rate = Rate(5.0), "kube-api-qps", "5",
            "Requests per second to the API server. Events have a budget of the same size for themselves.";
        kube_api_burst: i64 = 10, "kube-api-burst", "10",
            "Requests that may be sent at once before --kube-api-qps holds.";
        feature_gates: GateSwitches = GateSwitches::new(), "feature-gates", "Topology=true",
            "Feature gates to switch, see below. Repeated use adds up.";
        automaxprocs: bool = false, "automaxprocs", "true",
            "Accepted for compatibility: a container's CPU quota always sets the number of threads here.";
    }

    provisioning: ProvisioningFlags = "Provisioning and deletion" {
        volume_name_prefix: String = "pvc".to_owned(), "volume-name-prefix", "pvc",
            "First part of the names of volumes.";
        volume_name_uuid_length: i64 = -1, "volume-name-uuid-length", "-1",
            "Characters of the claim's UID in the names of volumes, 0 to 32; -1 takes the whole UID with its dashes.";
        default_fstype: String = String::new(), "default-fstype", "ext4",
            "File system of volumes whose StorageClass names none.";
        extra_create_metadata: bool = false, "extra-create-metadata", "true",
            "Tell the driver the names of claim and PersistentVolume as parameters of CreateVolume.";
        strict_topology: bool = false, "strict-topology", "true",
            "Delayed binding: pass only the topology of the selected node instead of the cluster's.";
        immediate_topology: bool = true, "immediate-topology", "false",
            "Immediate binding: pass the cluster's topology; false passes none.";
        controller_publish_readonly: bool = false, "controller-publish-readonly", "true",
            "Mark PersistentVolumes of claims whose only access mode is ReadOnlyMany as read-only.";
        prevent_volume_mode_conversion: bool = true, "prevent-volume-mode-conversion", "true",
            "Refuse to restore a snapshot into another volume mode unless its content permits it by annotation.";
        worker_threads: u64 = 100, "worker-threads", "100",
            "Claims worked on at the same time, and separately volumes deleted at the same time.";
        retry_interval_start: GoDuration = GoDuration::from_secs(1), "retry-interval-start", "1s",
            "Wait before the first retry of a failed item; doubles with each failure.";
        retry_interval_max: GoDuration = GoDuration::from_secs(300), "retry-interval-max", "5m",
            "Longest wait before a retry.";
        cloning_protection_threads: u64 = 1, "cloning-protection-threads", "1",
            "Sources of clones handled at the same time when their protection ends.";
        snapshot_orphan_sweep_interval: GoDuration = GoDuration::from_secs(300), "snapshot-orphan-sweep-interval", "5m",
            "Time between searches for snapshots whose protection nobody needs any more; 0 switches them off.";
    }

    leader: LeaderFlags = "Leader election" {
        leader_election: bool = false, "leader-election", "true",
            "Run several replicas of which one works, chosen by a Lease named after the driver.";
        leader_election_namespace: String = String::new(), "leader-election-namespace", "kube-system",
            "Namespace of the Lease; empty takes the pod's own.";
        leader_election_lease_duration: GoDuration = GoDuration::from_secs(15), "leader-election-lease-duration", "15s",
            "Time without a renewal after which another replica may take over.";
        leader_election_renew_deadline: GoDuration = GoDuration::from_secs(10), "leader-election-renew-deadline", "10s",
            "Time without a successful renewal after which the leader gives up and ends.";
        leader_election_retry_period: GoDuration = GoDuration::from_secs(5), "leader-election-retry-period", "5s",
            "Time between two attempts to take or renew the Lease.";
        leader_election_labels: Labels = Labels::new(), "leader-election-labels", "app:csi,tier:storage",
            "Labels that the leader puts on the Lease. Repeated use adds up.";
    }

    capacity: CapacityFlags = "Storage capacity" {
        enable_capacity: bool = false, "enable-capacity", "true",
            "Publish CSIStorageCapacity objects for the scheduler. Needs the variables NAMESPACE and POD_NAME.";
        capacity_threads: u64 = 1, "capacity-threads", "1",
            "Capacity objects worked on at the same time.";
        capacity_poll_interval: GoDuration = GoDuration::from_secs(60), "capacity-poll-interval", "1m",
            "Time between two looks at the driver's capacity.";
        capacity_for_immediate_binding: bool = false, "capacity-for-immediate-binding", "true",
            "Also publish capacity for StorageClasses with immediate binding.";
        capacity_ownerref_level: i64 = 1, "capacity-ownerref-level", "1",
            "Owner of the objects: -1 none, 0 the pod, 1 its controller (DaemonSet, StatefulSet), 2 a Deployment.";
        kube_api_capacity_qps: NarrowRate = NarrowRate(1.0), "kube-api-capacity-qps", "1",
            "Requests per second to the API server for capacity objects.";
        kube_api_capacity_burst: i64 = 5, "kube-api-capacity-burst", "5",
            "Requests for capacity objects that may be sent at once.";
    }

    node: NodeFlags = "Deployment on each node" {
        node_deployment: bool = false, "node-deployment", "true",
            "Run beside the driver on each node for node-local volumes. Needs the variable NODE_NAME.";
        node_deployment_immediate_binding: bool = true, "node-deployment-immediate-binding", "true",
            "Take part in the race for claims with immediate binding.";
        node_deployment_base_delay: GoDuration = GoDuration::from_secs(20), "node-deployment-base-delay", "20s",
            "First wait and width of the random spread in that race.";
        node_deployment_max_delay: GoDuration = GoDuration::from_secs(60), "node-deployment-max-delay", "60s",
            "Longest wait in that race.";
    }

    durable: DurableFlags = "Safety of unfinished creations (not in the Go sidecar)" {
        durable_intent: DurableIntent = DurableIntent::Off, "durable-intent", "uncertain",
            "Write down which volumes may exist, so that a restart leaks none: after unclear answers, or always.";
        durable_intent_namespace: String = String::new(), "durable-intent-namespace", "kube-system",
            "Namespace of the ConfigMaps that hold it; empty takes the pod's own.";
    }

    http: HttpFlags = "Metrics and health" {
        http_endpoint: String = String::new(), "http-endpoint", ":8080",
            "Address of the HTTP server for metrics, leader health and profiling; empty means no server.";
        metrics_address: String = String::new(), "metrics-address", ":8080",
            "Deprecated, use --http-endpoint: address of a server without the leader health check.";
        metrics_path: String = "/metrics".to_owned(), "metrics-path", "/metrics",
            "Path of the metrics.";
        enable_pprof: bool = false, "enable-pprof", "true",
            "Serve profiles under /debug/pprof/ of the same server.";
    }

    logging: LoggingFlags = "Log" {
        verbosity: Level = Level(0), "v", "5",
            "Verbosity, also written -v5 or -v 5. 5 shows every call to the driver, secrets removed.";
        vmodule: Vec<Vmodule> = Vec::new(), "vmodule", "lease=5,claim/*=3",
            "Verbosity of single source files (with a slash: folder and file), text format only. Repeated use adds up.";
        logging_format: String = "text".to_owned(), "logging-format", "json",
            "text or json, both on stderr.";
        log_flush_frequency: GoDuration = GoDuration::from_secs(5), "log-flush-frequency", "5s",
            "Accepted for compatibility: each line is written at once.";
        log_text_split_stream: bool = false, "log-text-split-stream", "false",
            "Accepted for compatibility: only false is permitted, as in the Go sidecar.";
        log_text_info_buffer_size: BufferSize = BufferSize::default(), "log-text-info-buffer-size", "0",
            "Accepted for compatibility: only 0 is permitted.";
        log_json_split_stream: bool = false, "log-json-split-stream", "false",
            "Accepted for compatibility: only false is permitted.";
        log_json_info_buffer_size: BufferSize = BufferSize::default(), "log-json-info-buffer-size", "0",
            "Accepted for compatibility: only 0 is permitted.";
    }

    general: GeneralFlags = "General" {
        version: bool = false, "version", "true",
            "Print program and version, then end.";
    }
}

/// The flag of that long name.
pub(super) fn find(name: &str) -> Option<&'static Spec> {
    SPECS.iter().find(|spec| spec.name == name)
}
