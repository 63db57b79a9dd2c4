//! The Lease as client-go writes it: reading, deciding, writing. Pure: the time comes as an argument.
//!
//! Promises:
//! - a record counts as expired by the time since **this process saw it change**, never by its own stamps, so
//!   clocks that differ do no harm;
//! - only the five fields of the election and the configured labels are changed, everything else stays;
//! - a record that lacks fields (other libraries leave them out) is understood.

use super::LeaseConfig;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The Lease as it was last seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The object, or nothing if there was none.
    pub lease: Option<Value>,
    /// When its `spec` was first seen as it is, on the scale of the caller.
    pub since: Duration,
}

/// What a candidate does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is no Lease: create it.
    Create,
    /// Nobody holds it (any more): write ourselves into it.
    Take,
    /// It is ours already: renew it.
    Renew,
    /// Somebody else holds it, at least until then.
    Wait {
        /// When the record expires unless it changes.
        until: Duration,
    },
}

// === impl Seen ===

impl Seen {
    /// Takes in what an answer or a watch showed at `now`.
    pub fn observe(&mut self, lease: Option<Value>, now: Duration) {
        let changed = match (&self.lease, &lease) {
            (Some(old), Some(new)) => old.get("spec") != new.get("spec"),
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        };
        if changed {
            self.since = now;
        }
        self.lease = lease;
    }

    /// Who holds the Lease; empty when nobody does.
    pub fn holder(&self) -> &str {
        self.spec("holderIdentity").and_then(Value::as_str).unwrap_or_default()
    }

    /// What `config`'s candidate does next.
    pub fn step(&self, config: &LeaseConfig, now: Duration) -> Step {
        if self.lease.is_none() {
            return Step::Create;
        }
        let holder = self.holder();
        if holder == config.identity {
            return Step::Renew;
        }
        // A record without a duration is given ours.
        let seconds = self.spec("leaseDurationSeconds").and_then(Value::as_u64).filter(|seconds| *seconds > 0);
        let until = self.since.saturating_add(seconds.map_or(config.duration, Duration::from_secs));
        if holder.is_empty() || until <= now { Step::Take } else { Step::Wait { until } }
    }

    fn spec(&self, field: &str) -> Option<&Value> {
        self.lease.as_ref()?.get("spec")?.get(field)
    }

    /// The Lease as `config`'s candidate holds it from `wall` on. A change of holder counts as a transition.
    pub fn held(&self, config: &LeaseConfig, wall: Timestamp) -> Value {
        let ours = self.holder() == config.identity;
        let transitions = self.spec("leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
        let stamp = json!(micro_time(wall));
        let mut fields = vec![
            ("holderIdentity", json!(config.identity)),
            ("leaseDurationSeconds", json!(config.duration_seconds())),
            ("renewTime", stamp.clone()),
        ];
        if !ours || self.spec("acquireTime").is_none_or(Value::is_null) {
            fields.push(("acquireTime", stamp));
        }
        let count = if self.lease.is_none() { 0 } else { transitions.saturating_add(i64::from(!ours)) };
        fields.push(("leaseTransitions", json!(count)));
        let mut lease = self.lease.clone().unwrap_or_else(|| new_lease(config));
        set(&mut lease, "spec", fields);
        if !config.labels.is_empty() {
            let labels = config.labels.iter().map(|(key, value)| (key.as_str(), json!(value))).collect();
            set(object_in(&mut lease, "metadata"), "labels", labels);
        }
        lease
    }

    /// The Lease given back at `wall`: no holder, and a duration of one second for readers that look at it.
    pub fn released(&self, wall: Timestamp) -> Option<Value> {
        let mut lease = self.lease.clone()?;
        let stamp = json!(micro_time(wall));
        let fields = vec![
            ("holderIdentity", json!("")),
            ("leaseDurationSeconds", json!(1)),
            ("acquireTime", stamp.clone()),
            ("renewTime", stamp),
        ];
        set(&mut lease, "spec", fields);
        Some(lease)
    }

    /// A field of the object's metadata; empty when absent.
    pub fn metadata(&self, field: &str) -> &str {
        let metadata = self.lease.as_ref().and_then(|lease| lease.get("metadata"));
        metadata.and_then(|metadata| metadata.get(field)).and_then(Value::as_str).unwrap_or_default()
    }
}

fn new_lease(config: &LeaseConfig) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": config.name, "namespace": config.namespace },
    })
}

/// The object in `field` of `parent`, made where there is none.
fn object_in<'a>(parent: &'a mut Value, field: &str) -> &'a mut Value {
    if !parent.is_object() {
        *parent = Value::Object(Map::new());
    }
    let child = &mut parent[field];
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child
}

fn set(parent: &mut Value, field: &str, values: Vec<(&str, Value)>) {
    let object = object_in(parent, field);
    for (key, value) in values {
        object[key] = value;
    }
}

/// The API's `MicroTime`: always six digits.
fn micro_time(stamp: Timestamp) -> String {
    format!("{stamp:.6}")
}

/// A name as the Go sidecar makes it: each character outside `[a-zA-Z0-9-]` becomes `-`, and a `-` at the end gets
/// an `X` (provisioning.md 12.3).
pub fn sanitized(text: &str) -> String {
    let mut name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if name.ends_with('-') {
        name.push('X');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{LeaseConfig, Seen, Step, sanitized};
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn config() -> LeaseConfig {
        LeaseConfig::new("lock", "ns", "me")
    }

    fn seen(spec: &Value) -> Seen {
        Seen { lease: Some(json!({ "metadata": { "name": "lock" }, "spec": spec })), since: Duration::from_secs(100) }
    }

    fn wall() -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }

    #[test]
    fn driver_name_becomes_a_lease_name() {
        assert_eq!(sanitized("hostpath.csi.k8s.io"), "hostpath-csi-k8s-io");
    }

    #[test]
    fn dash_at_the_end_gets_an_x() {
        assert_eq!(sanitized("a/b."), "a-b-X");
    }

    #[test]
    fn absent_lease_is_created() {
        assert_eq!(Seen::default().step(&config(), Duration::ZERO), Step::Create);
    }

    #[test]
    fn released_lease_is_taken_at_once() {
        let released = seen(&json!({ "holderIdentity": "", "leaseDurationSeconds": 1 }));
        assert_eq!(released.step(&config(), Duration::from_secs(100)), Step::Take);
    }

    #[test]
    fn lease_whose_holder_is_absent_is_taken() {
        assert_eq!(seen(&json!({})).step(&config(), Duration::from_secs(100)), Step::Take);
    }

    #[test]
    fn held_lease_is_waited_for_as_long_as_the_holder_said() {
        let held = seen(&json!({ "holderIdentity": "go", "leaseDurationSeconds": 30 }));
        assert_eq!(held.step(&config(), Duration::from_secs(129)), Step::Wait { until: Duration::from_secs(130) });
        assert_eq!(held.step(&config(), Duration::from_secs(130)), Step::Take);
    }

    #[test]
    fn expiry_counts_from_the_last_change_seen_here() {
        let mut held = seen(&json!({ "holderIdentity": "go", "renewTime": "a" }));
        held.observe(seen(&json!({ "holderIdentity": "go", "renewTime": "a" })).lease, Duration::from_secs(105));
        assert_eq!(held.since, Duration::from_secs(100));
        held.observe(seen(&json!({ "holderIdentity": "go", "renewTime": "b" })).lease, Duration::from_secs(110));
        assert_eq!(held.since, Duration::from_secs(110));
    }

    #[test]
    fn new_lease_has_the_fields_of_the_go_sidecar() {
        let mut config = config();
        config.labels = [("k".to_owned(), "v".to_owned())].into();
        let expected = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "lock", "namespace": "ns", "labels": { "k": "v" } },
            "spec": {
                "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "acquireTime": "2023-11-14T22:13:20.000000Z", "renewTime": "2023-11-14T22:13:20.000000Z",
            }
        });
        assert_eq!(Seen::default().held(&config, wall()), expected);
    }

    #[test]
    fn taking_counts_a_transition_and_keeps_foreign_fields() {
        let held = seen(&json!({ "holderIdentity": "go", "leaseTransitions": 3, "strategy": "x" }));
        let spec = &held.held(&config(), wall())["spec"];
        assert_eq!((&spec["leaseTransitions"], &spec["strategy"]), (&json!(4), &json!("x")));
    }

    #[test]
    fn renewing_changes_the_renew_time_alone() {
        let held = seen(&json!({ "holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "a",
            "renewTime": "b", "leaseTransitions": 3 }));
        let mut expected = held.lease.clone().unwrap();
        expected["spec"]["renewTime"] = json!("2023-11-14T22:13:20.000000Z");
        assert_eq!(held.held(&config(), wall()), expected);
    }

    #[test]
    fn released_lease_has_no_holder_and_a_second_to_live() {
        let held = seen(&json!({ "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 3 }));
        let stamp = "2023-11-14T22:13:20.000000Z";
        assert_eq!(
            held.released(wall()).unwrap()["spec"],
            json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": stamp, "renewTime": stamp,
                "leaseTransitions": 3 })
        );
    }
}
