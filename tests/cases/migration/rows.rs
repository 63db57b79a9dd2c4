//! Runs one row of the migration table through the room's functions and says what came out, in the words of the table.

use csi_provisioner::claim::plan;
use csi_provisioner::migration::deletion::deletable;
use csi_provisioner::migration::object::VolumeObject;
use csi_provisioner::migration::region::RegionRule;
use csi_provisioner::migration::{self, Plugin, TranslateError};
use csi_provisioner::migration::{affinity, aws_ebs, azure_disk, azure_file, gce_pd, topology};
use csi_provisioner::model::class::TopologyTerm;
use csi_provisioner::model::{Claim, Class, Driver, Volume};
use csi_provisioner::volume::finalizer::{Upkeep, upkeep};
use csi_provisioner::volume::{delete, ownership};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What the room makes of the row's input.
pub(crate) fn observe(case: &Value) -> Value {
    let input = &case["input"];
    match case["group"].as_str().unwrap_or_default() {
        "names" => names(input, is_question(case)),
        "storage-class" => storage_class(case, input),
        "inline-to-csi" => inline(case, input),
        "pv-to-csi" => to_csi(case, input),
        "pv-to-in-tree" => answer("pv", by_entry(case, migration::volume_to_in_tree, Plugin::volume_to_in_tree)),
        "there-and-back" => there_and_back(plugin(case), &input["pv"]),
        "topology-to-in-tree" => topology_to_in_tree(input),
        "topology-to-csi" => topology_of(input, topology::to_csi),
        "allowed-topologies" => {
            let terms: Vec<TopologyTerm> = read(&input["terms"]);
            json!({ "terms": terms_json(&topology::allowed_topologies(&terms, text(&input["csi_key"]))) })
        }
        "add-topology" => add_topology(input),
        "replace-topology" => {
            let mut pv = object(&input["pv"]);
            affinity::rename(&mut pv, text(&input["old_key"]), text(&input["new_key"]));
            json!({ "node_affinity": pv.into_value()["spec"]["nodeAffinity"] })
        }
        "region-from-zones" => {
            let rule = if plugin(case) == Plugin::AwsEbs { RegionRule::Aws } else { RegionRule::Gce };
            answer("value", rule.region_of(texts(&input["zones"]), "the row"))
        }
        "identifiers" => identifiers(case, input),
        "access-modes" => {
            let modes = input["access_modes"].as_array().map(|_| texts(&input["access_modes"]));
            json!({ "access_modes": gce_pd::repair_access_modes(modes.as_deref()) })
        }
        "provision-migrated" => provision(input),
        "delete-migrated" => delete(input),
        "volume-ownership" => json!({ "value": ownership::is_ours(&volume(input), &known(input)) }),
        "should-delete" => {
            let (volume, driver) = (volume(input), known(input));
            json!({ "value": ownership::is_ours(&volume, &driver) && delete::should_delete(&volume) })
        }
        "finalizer" => {
            let (volume, driver) = (volume(input), known(input));
            let lacks = ownership::is_ours(&volume, &driver) && upkeep(&volume) == Upkeep::Add;
            json!({ "finalizers": lacks.then_some([csi_provisioner::model::volume::VOLUME_FINALIZER]) })
        }
        "should-provision" => json!({ "value": plan::is_ours(&claim(input), &driver(input)) }),
        "request-after-translation" => request(plugin(case), input),
        other => panic!("no way to run group {other}"),
    }
}

// === What the input says ===

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("the row's object has the shape of the API")
}

fn object(pv: &Value) -> VolumeObject {
    VolumeObject::read(pv).expect("the row's volume has the shape of the API")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("the row gives a text")
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("the row gives a list").iter().map(text).collect()
}

fn plugin(case: &Value) -> Plugin {
    let name = format!("kubernetes.io/{}", text(&case["plugin"]));
    Plugin::by_in_tree(&name).expect("the row names a migrated plug-in")
}

fn is_question(case: &Value) -> bool {
    text(&case["name"]).starts_with("is ")
}

fn driver(input: &Value) -> Driver {
    let in_tree_name = input["in_tree_name"].as_str().map(str::to_owned);
    Driver { name: text(&input["driver"]).to_owned(), in_tree_name, ..Driver::default() }
}

/// The driver behind `known_names`: its own name and perhaps the in-tree one.
fn known(input: &Value) -> Driver {
    let names = texts(&input["known_names"]);
    let name = |index: usize| names.get(index).map(|name| (*name).to_owned());
    Driver { name: name(0).unwrap_or_default(), in_tree_name: name(1), ..Driver::default() }
}

fn class(provisioner: &Value) -> Class {
    read(&json!({ "provisioner": provisioner }))
}

fn claim(input: &Value) -> Claim {
    read(&json!({ "metadata": { "annotations": input["claim_annotations"] } }))
}

fn volume(input: &Value) -> Volume {
    let csi = input["pv_csi_driver"].as_str().map(|driver| json!({ "driver": driver }));
    read(&json!({
        "metadata": {
            "annotations": input["pv_annotations"],
            "finalizers": input["finalizers"],
            "deletionTimestamp": input["deletion_timestamp"],
        },
        "spec": { "csi": csi, "persistentVolumeReclaimPolicy": input["reclaim_policy"] },
        "status": { "phase": input["phase"] },
    }))
}

// === What came out ===

fn answer<T: Into<Value>>(field: &str, result: Result<T, TranslateError>) -> Value {
    match result {
        Ok(value) => Value::Object(Map::from_iter([(field.to_owned(), value.into())])),
        Err(error) => json!({ "error": true, "condition": error.condition() }),
    }
}

fn found(value: Option<&str>) -> Value {
    value.map_or_else(|| json!({ "error": true }), |value| json!({ "value": value }))
}

fn terms_json(terms: &[TopologyTerm]) -> Value {
    let expressions = |term: &TopologyTerm| {
        let each = term.match_label_expressions.iter();
        each.map(|one| json!({ "key": one.key, "values": one.values })).collect::<Value>()
    };
    terms.iter().map(|term| json!({ "matchLabelExpressions": expressions(term) })).collect()
}

fn class_json(class: &Class) -> Value {
    json!({
        "metadata": { "name": class.metadata.name },
        "provisioner": class.provisioner,
        "parameters": class.parameters,
        "reclaimPolicy": class.reclaim_policy,
        "mountOptions": class.mount_options,
        "volumeBindingMode": class.volume_binding_mode,
        "allowedTopologies": terms_json(&class.allowed_topologies),
    })
}

// === One function per group ===

fn names(input: &Value, is_question: bool) -> Value {
    let found_name = match (input["in_tree"].as_str(), input["driver"].as_str()) {
        (Some(in_tree), _) => migration::driver_name(in_tree),
        (None, Some(driver)) => migration::in_tree_name(driver),
        (None, None) => None,
    };
    if is_question { json!({ "value": found_name.is_some() }) } else { found(found_name) }
}

fn storage_class(case: &Value, input: &Value) -> Value {
    // No class is no value of the type: reading it fails.
    let Ok(mut class) = serde_json::from_value::<Class>(input["storage_class"].clone()) else {
        return json!({ "error": true });
    };
    let translated = match input["in_tree"].as_str() {
        Some(in_tree) => {
            in_tree.clone_into(&mut class.provisioner);
            migration::translate_class(&class)
        }
        None => plugin(case).translate_class(&class),
    };
    answer("storage_class", translated.map(|class| class_json(&class)))
}

fn inline(case: &Value, input: &Value) -> Value {
    let namespace = input["pod_namespace"].as_str().unwrap_or_default();
    let result = match input["entry"].as_str() {
        Some("dispatcher") => migration::inline_to_csi(&input["volume"], namespace),
        _ => plugin(case).inline_to_csi(&input["volume"], namespace),
    };
    answer("pv", result)
}

type Entry = fn(&Value) -> Result<Value, TranslateError>;
type PluginEntry = fn(Plugin, &Value) -> Result<Value, TranslateError>;

fn by_entry(case: &Value, dispatcher: Entry, of_plugin: PluginEntry) -> Result<Value, TranslateError> {
    let pv = &case["input"]["pv"];
    if case["input"]["entry"] == "dispatcher" { dispatcher(pv) } else { of_plugin(plugin(case), pv) }
}

fn to_csi(case: &Value, input: &Value) -> Value {
    if input["entry"] == "is-migratable" {
        return json!({ "value": migration::is_migratable(&input["pv"]) });
    }
    answer("pv", by_entry(case, migration::volume_to_csi, Plugin::volume_to_csi))
}

fn there_and_back(plugin: Plugin, pv: &Value) -> Value {
    let csi = match plugin.volume_to_csi(pv) {
        Ok(csi) => csi,
        Err(error) => return json!({ "error": true, "condition": error.condition() }),
    };
    match plugin.volume_to_in_tree(&csi) {
        Ok(back) => json!({ "csi_pv": csi, "identical": back == *pv, "back_pv": back }),
        Err(_) => json!({ "csi_pv": csi, "back_error": true }),
    }
}

fn topology_of(input: &Value, run: impl Fn(&mut VolumeObject, &str) -> Result<(), TranslateError>) -> Value {
    let mut pv = object(&input["pv"]);
    let result = run(&mut pv, text(&input["csi_key"]));
    let terms = pv.terms().to_vec();
    json!({
        "error": result.is_err(),
        "labels": pv.into_value()["metadata"]["labels"],
        "node_selector_terms": terms,
    })
}

fn topology_to_in_tree(input: &Value) -> Value {
    let rule = match text(&input["region_parser"]) {
        "gce" => Some(RegionRule::Gce),
        "aws" => Some(RegionRule::Aws),
        _ => None,
    };
    topology_of(input, |pv, key| topology::to_in_tree(pv, key, rule))
}

fn add_topology(input: &Value) -> Value {
    let mut pv = object(&json!({}));
    let result = topology::append_zones(&mut pv, text(&input["csi_key"]), &texts(&input["zones"]));
    answer("node_affinity", result.map(|()| pv.into_value()["spec"]["nodeAffinity"].clone()))
}

fn identifiers(case: &Value, input: &Value) -> Value {
    let given = |field: &str| input[field].as_str();
    if let Some(id) = given("volume_id") {
        return answer("value", aws_ebs::volume_id(id, "the row"));
    }
    if let (Some(handle), Some(node_id)) = (given("handle"), given("node_id")) {
        let driver = given("driver").unwrap_or_else(|| plugin(case).driver_name());
        return answer("value", migration::repair_handle(driver, handle, node_id));
    }
    if let Some(handle) = given("handle") {
        let parts = azure_file::parse_handle(handle, "the row").map(|parts| {
            json!({
                "resource_group": parts.resource_group, "account": parts.account,
                "share": parts.share, "disk": parts.disk,
            })
        });
        return answer("value", parts);
    }
    match given("uri") {
        Some(uri) if is_question(case) => json!({ "value": azure_disk::is_managed(uri) }),
        Some(uri) => answer("value", azure_disk::disk_name(uri, "the row")),
        None => found(azure_file::account_of_secret(text(&input["secret_name"]))),
    }
}

fn provision(input: &Value) -> Value {
    let driver = driver(input);
    if !plan::is_ours(&claim(input), &driver) {
        return json!({ "CreateVolume_called": false, "error": "ignored" });
    }
    let translated = migration::is_translated(&class(&input["class_provisioner"]), &driver);
    json!({
        "CreateVolume_called": true,
        "class_translated": translated,
        "pv_translated_back": translated,
        "migrated_metric_label": crate::asking::label_of(&driver, translated),
    })
}

/// The rows with made-up names run with a plug-in whose handle is the same in both forms.
fn delete(input: &Value) -> Value {
    let stand_in = Plugin::Cinder;
    let pv = match (input.get("pv"), input["pv_migratable"].as_bool()) {
        (Some(pv), _) => pv.clone(),
        (None, Some(true)) => json!({ "spec": { "cinder": { "volumeID": input["translated_handle"] } } }),
        (None, _) => json!({ "spec": { "csi": { "volumeHandle": input["handle"] } } }),
    };
    let owner = match input["driver"].as_str() {
        Some("test-driver") => stand_in,
        Some(name) => Plugin::by_driver(name).expect("the row names a driver of a migrated plug-in"),
        None => Plugin::of_volume(&pv).unwrap_or(stand_in),
    };
    let driver = Driver {
        name: owner.driver_name().to_owned(),
        in_tree_name: Some(owner.in_tree_name().to_owned()),
        ..Driver::default()
    };
    let of_class = match input["class_provisioner"].as_str() {
        Some("in-tree-plugin") => json!(stand_in.in_tree_name()),
        _ => input["class_provisioner"].clone(),
    };
    match deletable(&pv, &driver) {
        Err(_) => json!({ "DeleteVolume_called": false, "error": true }),
        Ok(found) => json!({
            "DeleteVolume_volume_id": found.handle,
            "class_translated": found.migrated && migration::is_translated(&class_or_none(&of_class), &driver),
            "migrated_metric_label": crate::asking::label_of(&driver, found.migrated),
        }),
    }
}

fn class_or_none(provisioner: &Value) -> Class {
    if provisioner.is_null() { Class::default() } else { class(provisioner) }
}

/// What the claim room sends of a translated class: no reserved parameters, and the file system of the one parameter that
/// names it.
fn request(plugin: Plugin, input: &Value) -> Value {
    const RESERVED: &str = "csi.storage.k8s.io/";
    let class: Class = read(&json!({ "parameters": input["class_parameters"] }));
    let translated = match plugin.translate_class(&class) {
        Ok(translated) => translated,
        Err(error) => return json!({ "error": true, "condition": error.condition() }),
    };
    let names_fs = |key: &str| key.eq_ignore_ascii_case("fstype") || key == format!("{RESERVED}fstype");
    let named: Vec<&String> = translated.parameters.iter().filter(|(key, _)| names_fs(key)).map(|one| one.1).collect();
    if named.len() > 1 {
        return json!({ "error": true });
    }
    let sent: Map<String, Value> = translated
        .parameters
        .iter()
        .filter(|(key, _)| !key.starts_with(RESERVED))
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    json!({ "error": false, "parameters": sent, "mount_fs_type": named.first() })
}
