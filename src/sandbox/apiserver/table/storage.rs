//! Columns of the storage kinds.

use super::Columns;
use super::cells::Row;
use serde_json::{Value, json};

const BETA_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

fn class(row: &Row) -> Value {
    let beta = row.str(BETA_CLASS);
    if beta.is_empty() { row.text("/spec/storageClassName") } else { json!(beta) }
}

/// Persistent volume claims.
pub static CLAIMS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Volume", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells: |row| {
        let bound = !row.str("/spec/volumeName").is_empty();
        vec![
            row.name(),
            row.phase("/status/phase"),
            row.text("/spec/volumeName"),
            if bound { row.text_or("/status/capacity/storage", "0") } else { json!("") },
            if bound { row.access_modes("/status/accessModes") } else { json!("") },
            class(row),
            row.text_or("/spec/volumeAttributesClassName", "<unset>"),
            row.age(),
            row.text_or("/spec/volumeMode", "<unset>"),
        ]
    },
};

/// Persistent volumes.
pub static VOLUMES: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("Reclaim Policy", "string", 0),
        ("Status", "string", 0),
        ("Claim", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Reason", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells: |row| {
        let owner = match row.str("/spec/claimRef/name") {
            "" => String::new(),
            name => format!("{}/{name}", row.str("/spec/claimRef/namespace")),
        };
        vec![
            row.name(),
            row.text_or("/spec/capacity/storage", "0"),
            row.access_modes("/spec/accessModes"),
            row.text("/spec/persistentVolumeReclaimPolicy"),
            row.phase("/status/phase"),
            json!(owner),
            class(row),
            row.text_or("/spec/volumeAttributesClassName", "<unset>"),
            row.text("/status/reason"),
            row.age(),
            row.text_or("/spec/volumeMode", "<unset>"),
        ]
    },
};

/// Storage classes; default ones are marked behind their name.
pub static CLASSES: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Provisioner", "string", 0),
        ("ReclaimPolicy", "string", 0),
        ("VolumeBindingMode", "string", 0),
        ("AllowVolumeExpansion", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |row| {
        let marked = row.str("/metadata/annotations/storageclass.kubernetes.io~1is-default-class") == "true"
            || row.str("/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class") == "true";
        let name = row.str("/metadata/name");
        vec![
            json!(if marked { format!("{name} (default)") } else { name.to_owned() }),
            row.text("/provisioner"),
            row.text_or("/reclaimPolicy", "Delete"),
            row.text_or("/volumeBindingMode", "Immediate"),
            row.flag("/allowVolumeExpansion"),
            row.age(),
        ]
    },
};

/// Volume attributes classes.
pub static ATTRIBUTES_CLASSES: Columns = Columns {
    heads: &[("Name", "string", 0), ("DriverName", "string", 0), ("Age", "string", 0)],
    cells: |row| vec![row.name(), row.text("/driverName"), row.age()],
};

/// Volume attachments.
pub static ATTACHMENTS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("Attacher", "string", 0),
        ("PV", "string", 0),
        ("Node", "string", 0),
        ("Attached", "boolean", 0),
        ("Age", "string", 0),
    ],
    cells: |row| {
        vec![
            row.name(),
            row.text("/spec/attacher"),
            row.text("/spec/source/persistentVolumeName"),
            row.text("/spec/nodeName"),
            row.flag("/status/attached"),
            row.age(),
        ]
    },
};

/// CSI nodes.
pub static CSI_NODES: Columns = Columns {
    heads: &[("Name", "string", 0), ("Drivers", "integer", 0), ("Age", "string", 0)],
    cells: |row| vec![row.name(), json!(row.count("/spec/drivers")), row.age()],
};

/// CSI drivers.
pub static DRIVERS: Columns = Columns {
    heads: &[
        ("Name", "string", 0),
        ("AttachRequired", "boolean", 0),
        ("PodInfoOnMount", "boolean", 0),
        ("StorageCapacity", "boolean", 0),
        ("TokenRequests", "string", 0),
        ("RequiresRepublish", "boolean", 0),
        ("Modes", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |row| {
        vec![
            row.name(),
            row.flag("/spec/attachRequired"),
            row.flag("/spec/podInfoOnMount"),
            row.flag("/spec/storageCapacity"),
            json!("<unset>"),
            row.flag("/spec/requiresRepublish"),
            json!(row.list("/spec/volumeLifecycleModes").join(",")),
            row.age(),
        ]
    },
};

/// Storage capacities.
pub static CAPACITIES: Columns = Columns {
    heads: &[("Name", "string", 0), ("Created At", "date", 0)],
    cells: |row| vec![row.name(), row.text("/metadata/creationTimestamp")],
};
