//! Rows that wait for a room that is not written yet. The table must become empty.

use super::table::Row;

/// Some rows and the room they wait for.
pub struct Pending {
    /// A group, or the id of one row.
    pub rows: &'static str,
    /// The room that has the functions to call.
    pub room: &'static str,
}

impl Pending {
    /// Whether the entry is about this row.
    pub fn is_about(&self, row: &Row) -> bool {
        self.rows == row.id || self.rows == row.group
    }
}

const fn waits(rows: &'static str, room: &'static str) -> Pending {
    Pending { rows, room }
}

/// The rows, by the room they wait for.
pub const PENDING: &[Pending] = &[
    waits("owner-lookup", "capacity"),
    waits("managed-by-name", "capacity"),
    waits("library-controller-021", "claim worker"),
    waits("library-controller-022", "claim worker"),
    waits("library-controller-023", "claim worker"),
    waits("library-controller-024", "claim worker"),
    waits("library-controller-042", "claim worker"),
    waits("library-controller-043", "claim worker"),
    waits("library-controller-044", "claim worker"),
    waits("volume-save-001", "claim worker"),
    waits("volume-save-002", "claim worker"),
    waits("volume-save-005", "claim worker"),
    waits("volume-save-006", "claim worker"),
    waits("library-delete-errors", "volume worker"),
    waits("claim-ownership-delay", "node_deployment"),
    waits("provision-028", "node_deployment"),
    waits("provision-029", "node_deployment"),
    waits("provision-030", "node_deployment"),
    waits("provision-031", "node_deployment"),
    waits("provision-032", "node_deployment"),
    waits("provision-033", "node_deployment"),
    waits("provision-034", "node_deployment"),
    waits("provision-035", "node_deployment"),
    waits("should-provision-028", "node_deployment"),
    waits("should-provision-029", "node_deployment"),
    waits("should-provision-030", "node_deployment"),
    waits("should-provision-031", "node_deployment"),
    waits("should-provision-032", "node_deployment"),
    waits("should-provision-033", "node_deployment"),
    waits("should-provision-034", "node_deployment"),
    waits("should-provision-035", "node_deployment"),
];

/// Fields of a group that only the workers can answer.
pub const PENDING_FIELDS: &[(&str, &[&str])] =
    &[("library-controller", &["events", "metrics", "unsaved_volumes", "claims_after"])];

/// The row's expectation without what waits; true when something was left out.
pub fn without_pending_fields(row: &mut Row) -> bool {
    let fields = PENDING_FIELDS.iter().filter(|(group, _)| *group == row.group).flat_map(|(_, fields)| *fields);
    let Some(expected) = row.expected.as_object_mut() else { return false };
    fields.filter(|field| expected.remove(**field).is_some()).count() > 0
}

/// The room that the row waits for.
pub fn room(row: &Row) -> Option<&'static str> {
    PENDING.iter().find(|entry| entry.is_about(row)).map(|entry| entry.room)
}
