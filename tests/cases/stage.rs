//! A simulated world in which the objects of a row stand, and what can be seen of it: events, metrics, objects, calls.
//!
//! The table gives UIDs and driver names that no API server would take: they are exchanged on the way in and out.

use csi_provisioner::sandbox::apiserver::DeleteOptions;
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, VOLUMES, text};
use csi_provisioner::sandbox::simulate::seat::Running;
use csi_provisioner::sandbox::simulate::{Options, World};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The driver's name here; the table's has a slash.
pub const DRIVER: &str = "foo.bar.baz";
/// Holds an object that is being deleted and that nobody else holds.
const HOLD: &str = "example.com/hold";

/// The world of a row.
pub struct Stage {
    pub world: World,
    /// The table's words and the world's.
    words: Vec<(String, String)>,
}

/// What can be counted.
#[derive(Default)]
pub struct Seen {
    metrics: BTreeMap<(String, String), u64>,
    events: BTreeMap<(String, String, String), i64>,
    steps: usize,
    deletions: usize,
}

impl Stage {
    /// An empty world; `words` are exchanged besides what is learned later.
    pub fn new(driver: DriverOptions, flags: &[&str], words: &[(&str, &str)]) -> Self {
        let usual = ["--kube-api-qps=1000", "--kube-api-burst=1000", "--durable-intent=uncertain"];
        let flags = usual.iter().chain(["--durable-intent-namespace=default"].iter()).chain(flags);
        let flags = flags.map(|flag| (*flag).to_owned()).collect();
        let world = World::new(Options { seed: 1, driver, flags, alone: true });
        let node = json!({ "metadata": { "name": "node-1", "labels": { "zone": "a" } } });
        world.add("nodes", node);
        let registered = json!({ "name": world.driver.name(), "nodeID": "node-1", "topologyKeys": ["zone"] });
        world.add("csinodes", json!({ "metadata": { "name": "node-1" }, "spec": { "drivers": [registered] } }));
        let words = words.iter().map(|(table, here)| ((*table).to_owned(), (*here).to_owned())).collect();
        Self { world, words }
    }

    /// The table's value in this world's words.
    pub fn here(&self, value: &Value) -> Value {
        let words = self.words.iter().map(|(table, here)| (table.as_str(), here.as_str()));
        exchanged(value, words)
    }

    /// This world's value in the table's words.
    fn there(&self, value: &Value) -> Value {
        let words = self.words.iter().map(|(table, here)| (here.as_str(), table.as_str()));
        exchanged(value, words)
    }

    /// The table's UID of one here.
    fn uid(&self, here: &str) -> String {
        self.there(&json!(here)).as_str().unwrap_or_default().to_owned()
    }

    /// Adds a claim of the table and learns its UID.
    pub fn add_claim(&mut self, claim: &Value) {
        let uid = text(claim, "/metadata/uid").to_owned();
        let stored = self.world.add(CLAIMS, self.here(claim));
        // Longer words first, so that none is taken for the beginning of another.
        self.words.insert(0, (uid, text(&stored, "/metadata/uid").to_owned()));
    }

    /// Adds a volume object of the table with its phase, and deletes it if the table says so.
    pub fn add_volume(&self, volume: &Value) {
        let wanted = self.here(volume);
        let mut object = wanted.clone();
        let owner = text(&object, "/metadata/annotations/pv.kubernetes.io~1provisioned-by").to_owned();
        let spec = object["spec"].as_object_mut().expect("a spec");
        spec.entry("capacity").or_insert(json!({ "storage": "1Mi" }));
        spec.entry("accessModes").or_insert(json!(["ReadWriteOnce"]));
        if !owner.is_empty() && spec.remove("nfs").is_some() {
            // The rows stub the plug-in; here it is a real CSI driver, which deletes by handle.
            spec.insert("csi".to_owned(), json!({ "driver": owner, "volumeHandle": "handle-1" }));
        }
        let deleted = wanted["metadata"]["deletionTimestamp"].is_string();
        if deleted && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
            object["metadata"]["finalizers"] = json!([HOLD]);
        }
        let mut stored = self.world.add(VOLUMES, object);
        stored["status"] = wanted["status"].clone();
        self.world.server.update_status(VOLUMES, "", stored).expect("the phase");
        if deleted {
            let name = text(&wanted, "/metadata/name");
            self.world.server.delete(VOLUMES, "", name, &DeleteOptions::default()).expect("deleted");
        }
    }

    /// Everything that is counted, so far.
    pub fn seen(&self, sidecar: &Running) -> Seen {
        let mut seen = Seen::default();
        for line in sidecar.metrics().lines().filter(|line| line.starts_with("controller_")) {
            let (series, value) = line.rsplit_once(' ').expect("a sample");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            if name.ends_with("_total") {
                let key = (name.to_owned(), labels.trim_end_matches('}').to_owned());
                seen.metrics.insert(key, value.parse().expect("a number"));
            }
        }
        let mut by_populator = 0;
        for event in self.world.all("events") {
            let count = event["count"].as_i64().unwrap_or(1);
            let key = [&event["involvedObject"]["name"], &event["type"], &event["reason"]];
            let [object, kind, reason] = key.map(|part| part.as_str().unwrap_or_default().to_owned());
            *seen.events.entry((object, reason, kind)).or_default() += count;
            by_populator += usize::from(text(&event, "/source/component") == "external-provisioner");
        }
        let trace = self.world.trace.text();
        let unreachable = trace.lines().filter(|line| line.contains("cut before CreateVolume")).count();
        let without_secret = self.world.requests_of("get", "secrets", Some(404));
        seen.steps = self.world.calls.of("CreateVolume").len() + unreachable + without_secret + by_populator;
        seen.deletions = self.world.calls.of("DeleteVolume").len();
        seen
    }

    /// Texts of the warnings about an object.
    pub fn warnings(&self, object: &str) -> Vec<String> {
        let events = self.world.events_about(object).into_iter();
        events.filter(|(reason, ..)| reason != "Provisioning").map(|(_, text, _)| text).collect()
    }

    /// How many creations are open in a state.
    pub fn open(sidecar: &Running, state: &str) -> f64 {
        sample(sidecar, &format!("csi_provisioner_open_creations{{state=\"{state}\"}}"))
    }

    /// What happened since `before`, and what there is, in the table's words.
    pub fn report(&self, sidecar: &Running, before: &Seen) -> Value {
        let now = self.seen(sidecar);
        let metrics = now.metrics.iter().filter_map(|(key, value)| {
            let more = value - before.metrics.get(key).unwrap_or(&0);
            (more > 0).then(|| json!({ "name": key.0, "labels": labels(&key.1), "value": more }))
        });
        let events = now.events.iter().filter_map(|(key, count)| {
            let (object, reason, kind) = key;
            (*count > before.events.get(key).copied().unwrap_or_default())
                .then(|| json!({ "object": object, "type": kind, "reason": reason }))
        });
        self.there(&json!({
            "metrics": sorted_metrics(metrics.collect()),
            "events": events.collect::<Vec<_>>(),
            "calls": { "provision_step": now.steps - before.steps, "delete_step": now.deletions - before.deletions },
            "claims_in_progress_after": self.in_progress(sidecar),
            "unsaved_volumes": self.unsaved(sidecar),
            "volumes_after": self.world.all(VOLUMES).into_iter().map(without_hold).collect::<Vec<_>>(),
            "claims_after": self.world.all(CLAIMS),
        }))
    }

    /// UIDs of claims whose creation is open: those with a record, if the sidecar's own count says the same.
    fn in_progress(&self, sidecar: &Running) -> Value {
        let name = |record: &Value| text(record, "/metadata/name").to_owned();
        let records: Vec<String> = self.world.all("configmaps").iter().map(name).collect();
        let counted = Self::open(sidecar, "unresolved");
        if same_count(records.len(), counted) {
            // The UID is the end of the name, behind the driver's mark.
            let uid = |record: &String| self.uid(record.get(record.len().saturating_sub(36)..).unwrap_or_default());
            json!(records.iter().map(uid).collect::<Vec<_>>())
        } else {
            json!(format!("{counted} open creations, records {records:?}"))
        }
    }

    /// Names of volumes without object, if the sidecar's own count says the same.
    fn unsaved(&self, sidecar: &Running) -> Value {
        let objects = self.world.all(VOLUMES);
        let saved: BTreeSet<&str> = objects.iter().map(|object| text(object, "/metadata/name")).collect();
        let backend = self.world.driver.backend();
        let names: Vec<&str> = backend.volumes().values().map(|volume| volume.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().filter(|name| !saved.contains(name)).collect();
        let counted = Self::open(sidecar, "unsaved");
        if same_count(names.len(), counted) { json!(names) } else { json!(format!("{counted} unsaved, not {names:?}")) }
    }
}

/// The value with words exchanged, wherever they stand.
fn exchanged<'a>(value: &Value, words: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let text = words.fold(value.to_string(), |text, (from, to)| text.replace(from, to));
    serde_json::from_str(&text).expect("still JSON")
}

fn same_count(count: usize, counted: f64) -> bool {
    u32::try_from(count).is_ok_and(|count| (f64::from(count) - counted).abs() < 0.5)
}

fn sample(sidecar: &Running, series: &str) -> f64 {
    let page = sidecar.metrics();
    let line = page.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0.0, |value| value.trim().parse().expect("a number"))
}

/// `class="a",source=""` as an object.
fn labels(text: &str) -> Value {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.to_owned(), json!(value.trim_matches('"'))));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// In the table's order: by name.
fn sorted_metrics(mut metrics: Vec<Value>) -> Vec<Value> {
    metrics.sort_by_key(|metric| metric["name"].to_string());
    metrics
}

/// Without the finalizer that only stands for "being deleted".
fn without_hold(mut object: Value) -> Value {
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != HOLD);
    }
    object
}
