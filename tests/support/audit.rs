//! What the sidecars asked of the API server, from the audit log.

use super::api::text;
use super::world::World;
use serde_json::Value;
use std::fmt;
use std::fs;

/// One finished request.
pub struct Asked {
    /// Such as create; watches and lists of everything are left out.
    pub verb: String,
    /// Such as persistentvolumes, or events.
    pub resource: String,
    /// HTTP status of the answer.
    pub status: u64,
    /// Who asked: name and version of the program.
    pub program: String,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.verb, self.resource, self.status)
    }
}

impl Asked {
    /// Whether it changed something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// Requests of sidecars about a claim's namespace or one of these objects, oldest first.
pub fn asked(world: &World, names: &[&str]) -> Vec<Asked> {
    let log = fs::read_to_string(world.plane.audit_log()).unwrap_or_default();
    // Most lines are about other tests; reading them all as JSON takes seconds.
    let near = |line: &&str| {
        line.contains("\"sidecar\"") && (line.contains(&world.name) || names.iter().any(|name| line.contains(name)))
    };
    let entries = log.lines().filter(near).filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let about = |entry: &Value| {
        let name = text(entry, "/objectRef/name");
        // An event is named after its object.
        let object = name.rsplit_once('.').map_or(name, |(object, _)| object);
        text(entry, "/objectRef/namespace") == world.name || names.contains(&name) || names.contains(&object)
    };
    entries
        .filter(|entry| text(entry, "/user/username") == "sidecar" && about(entry))
        .map(|entry| Asked {
            verb: text(&entry, "/verb").to_owned(),
            resource: text(&entry, "/objectRef/resource").to_owned(),
            status: entry["responseStatus"]["code"].as_u64().unwrap_or(0),
            program: text(&entry, "/userAgent").to_owned(),
        })
        .collect()
}
