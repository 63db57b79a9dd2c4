//! Rows of the table of the cluster's volume controllers, run through the sandbox's binder.
//!
//! A row gives objects and one call; it says which objects, events and writes must come of it. Rows that need an
//! in-tree plug-in, a failing API, a change in the middle of an operation or a switched-off gate are left out here:
//! the sandbox has none of these.

use csi_provisioner::sandbox::apiserver::validate::quantity::Quantity;
use csi_provisioner::sandbox::binder::objects::{key, name};
use csi_provisioner::sandbox::binder::plan::{Action, Objects, Plan, View};
use csi_provisioner::sandbox::binder::{claim, provision, reclaim, search, volume};
use csi_provisioner::sandbox::protection::{finalizers_of_claim, finalizers_of_volume};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const TABLE: &str = include_str!("cases/cases-cluster-controllers.json");
/// What of a row the binder here does not have.
const BEYOND: [&str; 4] = ["plugin", "apiErrors", "beforeOperation", "gates"];

fn rows(group: &str) -> Vec<Value> {
    let table: Vec<Value> = serde_json::from_str(TABLE).expect("the table");
    table.into_iter().filter(|row| row["group"] == group).collect()
}

/// The state that a row plays in.
#[derive(Default)]
struct Stage {
    view: View,
    writes: Vec<String>,
    events: BTreeSet<String>,
    woken: Vec<String>,
    error: Option<String>,
}

impl Stage {
    fn new(given: &Value) -> Self {
        let keyed = |field: &str, key: fn(&Value) -> String| -> Objects {
            let objects = given[field].as_array().cloned().unwrap_or_default();
            objects.into_iter().map(|object| (key(&object), Arc::new(object))).collect()
        };
        let named = |object: &Value| name(object).to_owned();
        let view = View {
            volumes: keyed("volumes", named),
            claims: keyed("claims", key),
            live_claims: keyed("claimsOnlyInApi", key),
            classes: keyed("classes", named),
            pods: keyed("pods", key),
        };
        Self { view, ..Self::default() }
    }

    fn sync(&mut self, call: &str, target: &str) {
        let plan = match call {
            "syncClaim" => claim::sync_claim(&self.view, target),
            _ => volume::sync_volume(&self.view, target),
        };
        self.carry_out(plan);
    }

    fn carry_out(&mut self, plan: Plan) {
        for action in plan.actions {
            match action {
                Action::WriteVolume(object) => self.write("update PersistentVolume", object, false),
                Action::WriteVolumeStatus(object) => self.write("updateStatus PersistentVolume", object, false),
                Action::WriteClaim(object) => self.write("update PersistentVolumeClaim", object, true),
                Action::WriteClaimStatus(object) => self.write("updateStatus PersistentVolumeClaim", object, true),
                Action::Tell(note) => {
                    let text = |field: &str| note.regarding[field].as_str().unwrap_or_default().to_owned();
                    let slash = if text("namespace").is_empty() { "" } else { "/" };
                    let object = format!("{}/{}{slash}{}", text("kind"), text("namespace"), text("name"));
                    let kind = if note.warning { "Warning" } else { "Normal" };
                    self.events.insert(format!("{kind} {} {object}", note.reason));
                }
                Action::WakeClaim(claim) => self.woken.push(claim),
                Action::Provision(claim) => self.carry_out(provision::provision(&self.view, &claim)),
                Action::Delete(volume) => self.carry_out(reclaim::delete(&self.view, &volume)),
                Action::Recycle(volume) => self.carry_out(reclaim::recycle(&self.view, &volume)),
            }
        }
        self.error = self.error.take().or(plan.error);
    }

    fn write(&mut self, verb: &str, object: Value, is_claim: bool) {
        let (objects, key) = if is_claim {
            (&mut self.view.claims, key(&object))
        } else {
            (&mut self.view.volumes, name(&object).to_owned())
        };
        self.writes.push(format!("{verb} {key}"));
        objects.insert(key, Arc::new(object));
    }

    fn objects(&self) -> Value {
        let list = |objects: &Objects| objects.values().map(|object| plain((**object).clone())).collect::<Vec<_>>();
        // The table shows what the API holds.
        let mut claims = self.view.claims.clone();
        claims.extend(self.view.live_claims.clone());
        json!({"volumes": list(&self.view.volumes), "claims": list(&claims)})
    }
}

/// An object without what the table does not compare, quantities in one form.
fn plain(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("deletionTimestamp");
        if metadata.get("annotations").is_some_and(|map| map.as_object().is_some_and(serde_json::Map::is_empty)) {
            metadata.remove("annotations");
        }
    }
    if let Some(reference) = object.pointer_mut("/spec/claimRef").and_then(Value::as_object_mut) {
        reference.remove("resourceVersion");
        if reference.get("uid").is_some_and(|uid| uid == "") {
            reference.remove("uid");
        }
    }
    for pointer in ["/spec/capacity/storage", "/spec/resources/requests/storage", "/status/capacity/storage"] {
        if let Some(size) = object.pointer_mut(pointer) {
            let nanos = size.as_str().and_then(Quantity::parse).map(|quantity| quantity.nanos().to_string());
            *size = json!(nanos);
        }
    }
    object
}

fn expected_objects(expect: &Value) -> Value {
    let list = |field: &str| {
        let mut objects = expect[field].as_array().cloned().unwrap_or_default();
        objects.sort_by_key(key);
        objects.into_iter().map(plain).collect::<Vec<_>>()
    };
    json!({"volumes": list("volumes"), "claims": list("claims")})
}

fn expected_events(expect: &Value) -> BTreeSet<String> {
    let text = |event: &Value| {
        let field = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", field("type"), field("reason"), field("object"))
    };
    expect["events"].as_array().into_iter().flatten().map(text).collect()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Plays the single-call rows of a group; returns how many there were, and what differs.
fn single_calls(group: &str) -> (usize, Vec<String>) {
    let mut differences = Vec::new();
    let rows: Vec<Value> =
        rows(group).into_iter().filter(|row| BEYOND.iter().all(|it| row["given"].get(it).is_none())).collect();
    for row in &rows {
        let (given, expect) = (&row["given"], &row["expect"]);
        let mut stage = Stage::new(given);
        stage.sync(given["call"].as_str().unwrap_or_default(), given["target"].as_str().unwrap_or_default());
        let mut differ = |what: &str, is: String, wanted: String| {
            if is != wanted {
                differences.push(format!("{}: {what}\n     is {is}\n wanted {wanted}", row["name"]));
            }
        };
        differ("objects", stage.objects().to_string(), expected_objects(expect).to_string());
        differ("events", format!("{:?}", stage.events), format!("{:?}", expected_events(expect)));
        differ("writes", format!("{:?}", stage.writes), format!("{:?}", texts(&expect["writes"])));
        differ("error", format!("{:?}", stage.error), format!("{:?}", expect["error"].as_str().map(str::to_owned)));
        if expect.get("wokenClaims").is_some() {
            differ("woken claims", format!("{:?}", stage.woken), format!("{:?}", texts(&expect["wokenClaims"])));
        }
    }
    (rows.len(), differences)
}

#[test]
fn claims_are_synced_as_the_table_says() {
    let (played, differences) = single_calls("pv-controller/syncClaim");
    assert!(played >= 80, "only {played} rows");
    assert!(differences.is_empty(), "{} of {played}:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn volumes_are_synced_as_the_table_says() {
    let (played, differences) = single_calls("pv-controller/syncVolume");
    assert!(played >= 25, "only {played} rows");
    assert!(differences.is_empty(), "{} of {played}:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn best_match_is_the_tables() {
    let pool = rows("matching/pool").remove(0)["given"]["volumes"].clone();
    let mut differences = Vec::new();
    for row in rows("matching/best-match") {
        let given = &row["given"];
        let volumes = given.get("volumes").unwrap_or(&pool).as_array().cloned().unwrap_or_default();
        let volumes: Vec<Arc<Value>> = volumes.into_iter().map(Arc::new).collect();
        let found = search::find(&volumes, &given["claim"], given["lateBinding"] == true).expect("a valid selector");
        let found = found.map(|volume| name(volume).to_owned());
        if json!(found) != row["expect"]["match"] {
            differences.push(format!("{}: is {found:?}, wanted {}", row["name"], row["expect"]["match"]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn late_binding_and_default_class_are_the_tables() {
    let classes = |given: &Value| -> Value {
        let class = |class: &Value| {
            let mut metadata = json!({"name": class["name"], "annotations": class["annotations"]});
            metadata["creationTimestamp"] = class["creationTimestamp"].clone();
            json!({"metadata": metadata, "volumeBindingMode": class["volumeBindingMode"]})
        };
        json!({"classes": given["classes"].as_array().into_iter().flatten().map(class).collect::<Vec<_>>()})
    };
    for row in rows("default-class") {
        let view = Stage::new(&classes(&row["given"])).view;
        if row["expect"].get("default").is_some() {
            assert_eq!(json!(provision::default_class(&view)), row["expect"]["default"], "{}", row["name"]);
        }
    }
    for row in rows("late-binding") {
        let view = Stage::new(&classes(&row["given"])).view;
        let claim = json!({"spec": {"storageClassName": row["given"]["claimClass"]}});
        let late = provision::is_late_binding(&view, &claim);
        assert_eq!(json!(late.is_err()), row["expect"]["error"], "{}", row["name"]);
        assert_eq!(json!(late.unwrap_or(false)), row["expect"]["lateBinding"], "{}", row["name"]);
    }
}

#[test]
fn protection_of_volumes_is_the_tables() {
    for row in rows("pv-protection").into_iter().filter(|row| row["expect"].get("writes").is_some()) {
        let volume = json!({"metadata": meta(&row["given"]), "status": {"phase": row["given"]["phase"]}});
        let own = "kubernetes.io/pv-protection";
        assert_eq!(written(finalizers_of_volume(&volume), own), texts(&row["expect"]["writes"]), "{}", row["name"]);
    }
}

#[test]
fn protection_of_claims_is_the_tables() {
    let own = "kubernetes.io/pvc-protection";
    let simple = |row: &Value| {
        let given = &row["given"];
        given["gates"]["PersistentVolumeClaimUnusedSinceTime"] == false
            && row["expect"].get("writes").is_some()
            && given.get("event").is_none()
    };
    let rows: Vec<Value> = rows("pvc-protection").into_iter().filter(simple).collect();
    assert!(rows.len() >= 8, "only {} rows", rows.len());
    for row in rows {
        let given = &row["given"];
        let mut metadata = meta(given);
        if given.get("finalizers").is_none() {
            metadata["finalizers"] = json!([own]);
        }
        metadata["ownerReferences"] = json!([{"uid": "p", "controller": true}]);
        let pod = |pod: &Value| {
            let volume = match (&pod["uses"], &pod["ephemeral"]) {
                (Value::Bool(true), _) => json!({"name": "v", "persistentVolumeClaim": {"claimName": "web-v"}}),
                (_, Value::Bool(true)) => json!({"name": "v", "ephemeral": {}}),
                _ => json!({"name": "v", "emptyDir": {}}),
            };
            let mut metadata = meta(pod);
            metadata["name"] = json!("web");
            metadata["uid"] = json!("p");
            metadata["deletionGracePeriodSeconds"] = pod["deletionGracePeriodSeconds"].clone();
            json!({"metadata": metadata, "spec": {"nodeName": pod["node"], "volumes": [volume]}, "status": {"phase": pod["phase"]}})
        };
        let pods = ["pods", "podsOnlyInApi"].iter().flat_map(|list| given[*list].as_array().into_iter().flatten());
        let pods: Vec<Value> = pods.map(pod).collect();
        let wanted = finalizers_of_claim(&json!({"metadata": metadata}), &pods);
        assert_eq!(written(wanted, own), texts(&row["expect"]["writes"]), "{}", row["name"]);
    }
}

fn meta(given: &Value) -> Value {
    let mut metadata = json!({"namespace": "default", "name": "web-v", "uid": "u", "finalizers": given["finalizers"]});
    if given["deleting"] == true {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    metadata
}

/// The write in the words of the table.
fn written(finalizers: Option<Vec<String>>, own: &str) -> Vec<String> {
    let verb = |finalizers: Vec<String>| if finalizers.iter().any(|it| it == own) { "add" } else { "remove" };
    finalizers.map(verb).map(|verb| format!("update: {verb} {own}")).into_iter().collect()
}
