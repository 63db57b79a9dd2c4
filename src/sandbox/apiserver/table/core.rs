//! Columns of the core kinds and of leases.

use super::Columns;
use super::cells::Row;
use serde_json::{Value, json};

/// Config maps.
pub static CONFIG_MAPS: Columns = Columns {
    heads: &[("Name", "string", 0), ("Data", "string", 0), ("Age", "string", 0)],
    cells: |row| vec![row.name(), json!(row.count("/data") + row.count("/binaryData")), row.age()],
};

/// Secrets.
pub static SECRETS: Columns = Columns {
    heads: &[("Name", "string", 0), ("Type", "string", 0), ("Data", "string", 0), ("Age", "string", 0)],
    cells: |row| vec![row.name(), row.text("/type"), json!(row.count("/data")), row.age()],
};

/// Service accounts.
pub static SERVICE_ACCOUNTS: Columns =
    Columns { heads: &[("Name", "string", 0), ("Age", "string", 0)], cells: |row| vec![row.name(), row.age()] };

/// Namespaces.
pub static NAMESPACES: Columns = Columns {
    heads: &[("Name", "string", 0), ("Status", "string", 0), ("Age", "string", 0)],
    cells: |row| vec![row.name(), row.text("/status/phase"), row.age()],
};

/// Leases.
pub static LEASES: Columns = Columns {
    heads: &[("Name", "string", 0), ("Holder", "string", 0), ("Age", "string", 0)],
    cells: |row| vec![row.name(), row.text("/spec/holderIdentity"), row.age()],
};

/// Events.
pub static EVENTS: Columns = Columns {
    heads: &[
        ("Last Seen", "string", 0),
        ("Type", "string", 0),
        ("Reason", "string", 0),
        ("Object", "string", 0),
        ("Subobject", "string", 1),
        ("Source", "string", 1),
        ("Message", "string", 0),
        ("First Seen", "string", 1),
        ("Count", "string", 1),
        ("Name", "string", 1),
    ],
    cells: event,
};

fn event(row: &Row) -> Vec<Value> {
    let first_of = |paths: [&str; 2]| {
        paths.into_iter().find(|path| !row.str(path).is_empty()).map_or(json!("<unknown>"), |path| row.since(path))
    };
    let first = first_of(["/firstTimestamp", "/eventTime"]);
    let series = row.object.pointer("/series").is_some();
    let last = match (series, row.str("/lastTimestamp")) {
        (true, _) => row.since("/series/lastObservedTime"),
        (false, "") => first.clone(),
        (false, _) => row.since("/lastTimestamp"),
    };
    let count = if series { row.number("/series/count") } else { row.number("/count").max(1) };
    let kind = row.str("/involvedObject/kind").to_lowercase();
    let target = match row.str("/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last,
        row.text("/type"),
        row.text("/reason"),
        json!(target),
        row.text("/involvedObject/fieldPath"),
        json!(source(row)),
        json!(row.str("/message").trim()),
        first,
        json!(count),
        row.name(),
    ]
}

fn source(row: &Row) -> String {
    let pick = |old: &str, new: &str| {
        let told = row.str(old);
        if told.is_empty() { row.str(new).to_owned() } else { told.to_owned() }
    };
    let component = pick("/source/component", "/reportingComponent");
    match pick("/source/host", "/reportingInstance").as_str() {
        "" => component,
        instance => format!("{component}, {instance}"),
    }
}

/// Nodes.
pub static NODES: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Roles", "string", 0),
        ("Age", "string", 0),
        ("Version", "string", 0),
        ("Internal-IP", "string", 1),
        ("External-IP", "string", 1),
        ("OS-Image", "string", 1),
        ("Kernel-Version", "string", 1),
        ("Container-Runtime", "string", 1),
    ],
    cells: node,
};

fn node(row: &Row) -> Vec<Value> {
    let list = |path: &str| row.object.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let conditions = list("/status/conditions");
    let ready = conditions.iter().find(|entry| text(entry, "type") == "Ready").map(|entry| text(entry, "status"));
    let mut status = match ready.as_deref() {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if row.flag("/spec/unschedulable") == true {
        status.push_str(",SchedulingDisabled");
    }
    let addresses = list("/status/addresses");
    let address = |kind: &str| {
        let found = addresses.iter().find(|entry| text(entry, "type") == kind);
        json!(found.map_or("<none>".to_owned(), |entry| text(entry, "address")))
    };
    let labels = row.object.pointer("/metadata/labels").and_then(Value::as_object);
    let roles: Vec<&str> =
        labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    vec![
        row.name(),
        json!(status),
        json!(if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }),
        row.age(),
        row.text("/status/nodeInfo/kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        row.text_or("/status/nodeInfo/osImage", "<unknown>"),
        row.text_or("/status/nodeInfo/kernelVersion", "<unknown>"),
        row.text_or("/status/nodeInfo/containerRuntimeVersion", "<unknown>"),
    ]
}

/// Pods.
pub static PODS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Status", "string", 0),
        ("Restarts", "string", 0),
        ("Age", "string", 0),
        ("IP", "string", 1),
        ("Node", "string", 1),
        ("Nominated Node", "string", 1),
        ("Readiness Gates", "string", 1),
    ],
    cells: |row| {
        let statuses =
            row.object.pointer("/status/containerStatuses").and_then(Value::as_array).cloned().unwrap_or_default();
        let ready = statuses.iter().filter(|status| status.get("ready") == Some(&Value::Bool(true))).count();
        let restarts: i64 = statuses.iter().filter_map(|status| status.get("restartCount")?.as_i64()).sum();
        let or_none = |path: &str| row.text_or(path, "<none>");
        vec![
            row.name(),
            json!(format!("{ready}/{}", row.count("/spec/containers"))),
            row.phase("/status/phase"),
            json!(restarts.to_string()),
            row.age(),
            or_none("/status/podIP"),
            or_none("/spec/nodeName"),
            or_none("/status/nominatedNodeName"),
            json!("<none>"),
        ]
    },
};
