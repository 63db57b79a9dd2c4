//! Columns of the snapshot kinds, as their definitions declare them.

use super::Columns;
use super::cells::Row;
use serde_json::Value;

/// Whatever stands at a path; custom columns show no cell for what is absent.
fn cell(row: &Row, path: &str) -> Value {
    row.object.pointer(path).cloned().unwrap_or(Value::Null)
}

/// Snapshots.
pub static SNAPSHOTS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("ReadyToUse", "boolean", 0),
        ("SourcePVC", "string", 0),
        ("SourceSnapshotContent", "string", 0),
        ("RestoreSize", "string", 0),
        ("SnapshotClass", "string", 0),
        ("SnapshotContent", "string", 0),
        ("CreationTime", "date", 0),
        ("Age", "date", 0),
    ],
    cells: |row| {
        vec![
            row.name(),
            cell(row, "/status/readyToUse"),
            cell(row, "/spec/source/persistentVolumeClaimName"),
            cell(row, "/spec/source/volumeSnapshotContentName"),
            cell(row, "/status/restoreSize"),
            cell(row, "/spec/volumeSnapshotClassName"),
            cell(row, "/status/boundVolumeSnapshotContentName"),
            if row.str("/status/creationTime").is_empty() { Value::Null } else { row.since("/status/creationTime") },
            row.age(),
        ]
    },
};

/// Snapshot contents.
pub static CONTENTS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("ReadyToUse", "boolean", 0),
        ("RestoreSize", "integer", 0),
        ("DeletionPolicy", "string", 0),
        ("Driver", "string", 0),
        ("VolumeSnapshotClass", "string", 0),
        ("VolumeSnapshot", "string", 0),
        ("VolumeSnapshotNamespace", "string", 0),
        ("Age", "date", 0),
    ],
    cells: |row| {
        vec![
            row.name(),
            cell(row, "/status/readyToUse"),
            cell(row, "/status/restoreSize"),
            cell(row, "/spec/deletionPolicy"),
            cell(row, "/spec/driver"),
            cell(row, "/spec/volumeSnapshotClassName"),
            cell(row, "/spec/volumeSnapshotRef/name"),
            cell(row, "/spec/volumeSnapshotRef/namespace"),
            row.age(),
        ]
    },
};

/// Snapshot classes.
pub static CLASSES: Columns = Columns {
    heads: &[("Name", "string", 0), ("Driver", "string", 0), ("DeletionPolicy", "string", 0), ("Age", "date", 0)],
    cells: |row| vec![row.name(), cell(row, "/driver"), cell(row, "/deletionPolicy"), row.age()],
};
