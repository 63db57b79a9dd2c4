//! An event before it is written: what it says about which object, and how the API sees it. Pure.
//!
//! Promises: the fields of the Go sidecar's events and no others; a name that the API accepts for every object
//! name; seconds as the precision of both stamps.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The longest message, in bytes. The events API (and every reader built for it) allows no more.
const MESSAGE_BYTES: usize = 1024;
/// The longest object name of the API, in bytes.
const NAME_BYTES: usize = 253;
/// What client-go puts before a message that stands for several.
const COMBINED: &str = "(combined from similar events): ";

/// The object an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Regarding {
    /// Kind, such as `PersistentVolumeClaim`.
    pub kind: String,
    /// Group and version, such as `v1`.
    pub api_version: String,
    /// Namespace; empty for objects of the cluster.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// The version the event is about; not part of its identity.
    pub resource_version: String,
}

impl Regarding {
    /// The namespace the event is written to: the object's, or `default` for objects of the cluster.
    pub fn event_namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }
}

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The expected course.
    Normal,
    /// Something for people to look at.
    Warning,
}

impl Severity {
    /// The API's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What is said about an object.
#[derive(Clone, Debug)]
pub struct Note {
    /// Who speaks (`source.component`).
    pub component: Arc<str>,
    /// About what.
    pub regarding: Regarding,
    /// How serious.
    pub severity: Severity,
    /// Reason, one word.
    pub reason: &'static str,
    /// Text, bounded.
    pub message: String,
}

impl Note {
    /// A note whose message is cut to what the API takes.
    pub fn new(
        component: Arc<str>,
        regarding: Regarding,
        severity: Severity,
        reason: &'static str,
        message: &str,
    ) -> Self {
        Self { component, regarding, severity, reason, message: clipped(message, MESSAGE_BYTES) }
    }

    /// The same note, standing for several with other texts.
    #[must_use]
    pub fn combined(mut self) -> Self {
        self.message = clipped(&format!("{COMBINED}{}", self.message), MESSAGE_BYTES);
        self
    }

    /// One number per object and speaker: the unit of the spam limit and of ordering.
    pub fn object_key(&self) -> u64 {
        let object = &self.regarding;
        hash_of(&(
            0u8,
            &self.component,
            &object.kind,
            &object.namespace,
            &object.name,
            &object.uid,
            &object.api_version,
        ))
    }

    /// One number for notes that differ in their text alone.
    pub fn similar_key(&self) -> u64 {
        hash_of(&(1u8, self.object_key(), self.severity, self.reason))
    }

    /// One number for equal notes.
    pub fn equal_key(&self) -> u64 {
        hash_of(&(2u8, self.similar_key(), &self.message))
    }

    /// One number for the text.
    pub fn message_key(&self) -> u64 {
        hash_of(&(3u8, &self.message))
    }

    /// The event's name: `<object>.<hex>`. The object's part is cut where the whole would be too long
    /// (client-go takes a random name then).
    pub fn event_name(&self, stamp: u64) -> String {
        let tail = format!(".{stamp:x}");
        let name = &self.regarding.name;
        let room = NAME_BYTES - tail.len();
        let head = name.get(..name.len().min(room)).unwrap_or(name);
        format!("{}{tail}", head.trim_end_matches(['.', '-']))
    }
}

/// An event with its counters, ready to be written.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Identity for [`super::outbox::Outbox::finished`].
    pub key: u64,
    /// What is said.
    pub note: Note,
    /// Name of the event object.
    pub name: String,
    /// How often it happened, all told.
    pub count: u32,
    /// First time.
    pub first: Timestamp,
    /// Last time.
    pub last: Timestamp,
    /// Whether the event object is known to exist, so that a patch is enough.
    pub exists: bool,
    /// Writes of it that failed before this one.
    pub tries: u32,
}

impl Letter {
    /// The whole event, as client-go creates it.
    pub fn create_body(&self) -> Value {
        let object = &self.note.regarding;
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": self.name, "namespace": object.event_namespace() },
            "involvedObject": {
                "kind": object.kind,
                "namespace": object.namespace,
                "name": object.name,
                "uid": object.uid,
                "apiVersion": object.api_version,
                "resourceVersion": object.resource_version,
            },
            "reason": self.note.reason,
            "message": self.note.message,
            "source": { "component": &*self.note.component },
            "firstTimestamp": seconds(self.first),
            "lastTimestamp": seconds(self.last),
            "count": self.count,
            "type": self.note.severity.as_str(),
            "eventTime": null,
            "reportingComponent": &*self.note.component,
            "reportingInstance": "",
        })
    }

    /// What changes when it happened again. The message is part of it because a combined event carries the latest.
    pub fn patch_body(&self) -> Value {
        json!({ "count": self.count, "lastTimestamp": seconds(self.last), "message": self.note.message })
    }
}

fn seconds(stamp: Timestamp) -> String {
    stamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Fixed keys, so that a run repeats; 64 bits make two of 4096 notes alike once in about 2^40 runs.
fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// `text`, at most `limit` bytes long: what is cut off ends on a character and is marked with `...`.
fn clipped(text: &str, limit: usize) -> String {
    const MARK: &str = "...";
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut short = String::with_capacity(end + MARK.len());
    short.push_str(text.get(..end).unwrap_or_default());
    short.push_str(MARK);
    short
}

#[cfg(test)]
mod tests {
    use super::clipped;

    #[test]
    fn text_within_the_limit_stays() {
        assert_eq!(clipped("abc", 3), "abc");
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(clipped("aaéééé", 7), "aaé...");
    }
}
