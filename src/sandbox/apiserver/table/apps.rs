//! Columns of the workload kinds.

use super::Columns;
use serde_json::json;

/// Daemon sets.
pub static DAEMON_SETS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Up-to-date", "integer", 0),
        ("Available", "integer", 0),
        ("Node Selector", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |row| {
        vec![
            row.name(),
            json!(row.number("/status/desiredNumberScheduled")),
            json!(row.number("/status/currentNumberScheduled")),
            json!(row.number("/status/numberReady")),
            json!(row.number("/status/updatedNumberScheduled")),
            json!(row.number("/status/numberAvailable")),
            row.labels("/spec/template/spec/nodeSelector"),
            row.age(),
            row.containers("name"),
            row.containers("image"),
            row.labels("/spec/selector/matchLabels"),
        ]
    },
};

/// Deployments.
pub static DEPLOYMENTS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Up-to-date", "string", 0),
        ("Available", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |row| {
        vec![
            row.name(),
            json!(format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas"))),
            json!(row.number("/status/updatedReplicas")),
            json!(row.number("/status/availableReplicas")),
            row.age(),
            row.containers("name"),
            row.containers("image"),
            row.labels("/spec/selector/matchLabels"),
        ]
    },
};

/// Replica sets.
pub static REPLICA_SETS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |row| {
        vec![
            row.name(),
            json!(row.number("/spec/replicas")),
            json!(row.number("/status/replicas")),
            json!(row.number("/status/readyReplicas")),
            row.age(),
            row.containers("name"),
            row.containers("image"),
            row.labels("/spec/selector/matchLabels"),
        ]
    },
};

/// Stateful sets.
pub static STATEFUL_SETS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
    ],
    cells: |row| {
        vec![
            row.name(),
            json!(format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas"))),
            row.age(),
            row.containers("name"),
            row.containers("image"),
        ]
    },
};
