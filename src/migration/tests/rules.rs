//! Rules that the table of rows does not hold: what is refused on purpose, and how errors read.

use crate::migration::azure_file::account_of_secret;
use crate::migration::deletion::deletable;
use crate::migration::tables::{BETA_ZONE, STABLE_REGION, STABLE_ZONE};
use crate::migration::{Plugin, TranslateError, is_migratable, translate_class, volume_to_csi, volume_to_in_tree};
use crate::model::{Class, Driver};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn class_of(plugin: Plugin, parameters: &Value) -> Class {
    let class = json!({
        "metadata": { "name": "old" }, "provisioner": plugin.in_tree_name(), "parameters": parameters,
    });
    serde_json::from_value(class).unwrap()
}

fn condition_of_class(plugin: Plugin, parameters: &Value) -> Option<&'static str> {
    translate_class(&class_of(plugin, parameters)).err().map(|error| error.condition())
}

fn driver_of(plugin: Plugin) -> Driver {
    Driver {
        name: plugin.driver_name().to_owned(),
        in_tree_name: Some(plugin.in_tree_name().to_owned()),
        ..Driver::default()
    }
}

// Weak point W2: the recorded behaviour depends on the order of a map.

#[test]
fn zone_and_zones_that_differ_are_refused() {
    let parameters = json!({ "zone": "us-east-1a", "zones": "us-east-1b" });
    assert_eq!(condition_of_class(Plugin::AwsEbs, &parameters), Some("parameters-contradict"));
}

#[test]
fn zone_and_zones_that_agree_are_accepted() {
    let translated =
        translate_class(&class_of(Plugin::AwsEbs, &json!({ "zone": "us-east-1a", "zones": "us-east-1a" }))).unwrap();
    assert_eq!(translated.allowed_topologies[0].match_label_expressions[0].values, ["us-east-1a"]);
}

#[test]
fn key_in_two_spellings_with_two_values_is_refused() {
    let parameters = json!({ "fstype": "ext4", "fsType": "xfs" });
    for plugin in [Plugin::AwsEbs, Plugin::GcePd, Plugin::Cinder, Plugin::Vsphere] {
        assert_eq!(condition_of_class(plugin, &parameters), Some("parameters-contradict"), "{plugin:?}");
    }
}

#[test]
fn plug_in_that_does_not_rename_keeps_both_spellings() {
    let parameters = json!({ "fstype": "ext4", "fsType": "xfs" });
    let translated = translate_class(&class_of(Plugin::AzureDisk, &parameters)).unwrap();
    assert_eq!(json!(translated.parameters), parameters);
}

#[test]
fn automatic_iops_increase_cannot_be_switched_off_next_to_iops_per_gb() {
    let parameters = json!({ "iopsPerGB": "5", "allowautoiopspergbincrease": "false" });
    assert_eq!(condition_of_class(Plugin::AwsEbs, &parameters), Some("parameters-contradict"));
}

#[test]
fn portworx_secret_given_twice_with_two_names_is_refused() {
    let parameters = json!({
        "openstorage.io/auth-secret-name": "a", "csi.storage.k8s.io/provisioner-secret-name": "b",
    });
    assert_eq!(condition_of_class(Plugin::Portworx, &parameters), Some("parameters-contradict"));
}

#[test]
fn contradiction_names_the_class_and_both_parameters_as_spelled() {
    let error = translate_class(&class_of(Plugin::GcePd, &json!({ "FSType": "ext4", "fstype": "xfs" }))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "StorageClass \"old\": parameters FSType and fstype set the same thing to different values; remove one of them"
    );
}

// Weak point W7: deletion used to accept volumes of foreign plug-ins.

#[test]
fn volume_of_another_plug_in_is_not_deleted_and_the_error_names_its_driver() {
    let pv = json!({ "metadata": { "name": "pv-1" }, "spec": { "gcePersistentDisk": { "pdName": "d" } } });
    let error = deletable(&pv, &driver_of(Plugin::AwsEbs)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "PersistentVolume \"pv-1\": its kubernetes.io/gce-pd volume belongs to driver \"pd.csi.storage.gke.io\", \
         not to \"ebs.csi.aws.com\"; run that driver"
    );
}

#[test]
fn volume_with_two_sources_is_not_migratable() {
    let pv = json!({ "spec": { "cinder": { "volumeID": "c" }, "gcePersistentDisk": { "pdName": "d" } } });
    assert!(!is_migratable(&pv));
}

#[test]
fn volume_with_csi_and_in_tree_source_is_not_migratable() {
    let pv = json!({ "spec": { "cinder": { "volumeID": "c" }, "csi": { "driver": "x" } } });
    assert!(!is_migratable(&pv));
}

#[test]
fn source_of_null_counts_as_absent() {
    let pv = json!({ "spec": { "cinder": { "volumeID": "c" }, "gcePersistentDisk": null, "csi": null } });
    assert!(is_migratable(&pv));
}

// Errors.

#[test]
fn field_of_a_wrong_type_is_named_with_its_path() {
    let term = json!({ "matchExpressions": [{ "key": 5 }] });
    let pv = json!({
        "metadata": { "name": "pv-1" },
        "spec": {
            "cinder": { "volumeID": "c" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{}, term] } },
        },
    });
    assert_eq!(
        volume_to_csi(&pv).unwrap_err().to_string(),
        "PersistentVolume \"pv-1\": field spec.nodeAffinity.required.nodeSelectorTerms[1].matchExpressions[0].key \
         must be a text; correct the field"
    );
}

#[test]
fn failed_region_names_the_volume_and_the_zone_and_prints_nothing_else_of_it() {
    let expression = json!({ "key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["z1"] });
    let pv = json!({
        "metadata": { "name": "pv-1", "annotations": { "note": "private" } },
        "spec": {
            "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } },
        },
    });
    let text = volume_to_in_tree(&pv).unwrap_err().to_string();
    assert!(text.starts_with("PersistentVolume \"pv-1\": zone \"z1\" is not of the form"), "{text}");
    assert!(!text.contains("private"), "{text}");
}

#[test]
fn every_condition_has_its_own_identifier() {
    let text = String::new;
    let errors = [
        TranslateError::NotAnObject { kind: "" },
        TranslateError::WrongType { object: text(), field: text(), expected: "" },
        TranslateError::NoTranslation { object: text(), name: text(), known_as: "" },
        TranslateError::NotMigratable { object: text() },
        TranslateError::SourceMissing { object: text(), field: text() },
        TranslateError::NotCsi { object: text() },
        TranslateError::OtherDriver { object: text(), plugin: "", owner: "", driver: text() },
        TranslateError::ZonesGivenTwice { object: text(), parameter: text() },
        TranslateError::ParametersContradict { object: text(), first: text(), second: text() },
        TranslateError::HandleInvalid { object: text(), handle: text(), expected: "" },
        TranslateError::NodeIdInvalid { node_id: text(), expected: "" },
        TranslateError::PartitionInvalid { object: text(), partition: text() },
        TranslateError::DiskKindUnsupported { object: text(), kind: text() },
        TranslateError::SecretNamespaceMissing { object: text() },
        TranslateError::ZonesMissing { object: text() },
        TranslateError::ZoneInvalid { object: text(), zone: text(), expected: "" },
        TranslateError::SeveralRegions { object: text(), regions: text() },
    ];
    let distinct: BTreeSet<_> = errors.iter().map(TranslateError::condition).collect();
    assert_eq!(distinct.len(), errors.len());
}

// Handles.

#[test]
fn disk_name_is_what_follows_the_last_mark_with_something_behind_it() {
    let uri = "https://a.example/vhds/vhds/";
    assert_eq!(crate::migration::azure_disk::disk_name(uri, "").as_deref(), Ok("vhds/"));
}

#[test]
fn uri_of_the_four_letters_alone_counts_as_managed() {
    assert!(crate::migration::azure_disk::is_managed("http"));
}

#[test]
fn account_of_a_secret_is_as_long_as_possible() {
    let name = "x-azure-storage-account-a-secret-b-secret-c";
    assert_eq!(account_of_secret(name), Some("a-secret-b"));
}

#[test]
fn secret_name_without_an_account_names_none() {
    assert_eq!(account_of_secret("azure-storage-account--secret"), None);
}

// Volumes.

fn labelled(plugin: Plugin, source: &Value, labels: &Value) -> Value {
    let mut pv = json!({ "metadata": { "name": "pv-1", "labels": labels } });
    pv["spec"][plugin.source_field()] = source.clone();
    pv
}

#[test]
fn empty_beta_zone_label_leaves_the_handle_to_the_stable_one() {
    let labels = json!({ BETA_ZONE: "", STABLE_ZONE: "us-east1-b" });
    let csi = volume_to_csi(&labelled(Plugin::GcePd, &json!({ "pdName": "d" }), &labels)).unwrap();
    assert_eq!(csi["spec"]["csi"]["volumeHandle"], "projects/UNSPECIFIED/zones/us-east1-b/disks/d");
}

#[test]
fn zone_label_becomes_a_term_where_the_list_of_terms_is_empty() {
    let mut pv = labelled(Plugin::Cinder, &json!({ "volumeID": "c" }), &json!({ STABLE_ZONE: "nova" }));
    pv["spec"]["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": [] } });
    let terms = &volume_to_csi(&pv).unwrap()["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"][0]["values"], json!(["nova"]));
}

#[test]
fn term_that_has_a_region_does_not_keep_the_next_one_from_getting_its_own() {
    let zone = |zone: &str| json!({ "key": "topology.gke.io/zone", "operator": "In", "values": [zone] });
    let region = json!({ "key": STABLE_REGION, "operator": "In", "values": ["us-east1"] });
    let pv = json!({ "spec": {
        "csi": { "driver": "pd.csi.storage.gke.io", "volumeHandle": "projects/p/zones/z/disks/d" },
        "nodeAffinity": { "required": { "nodeSelectorTerms": [
            { "matchExpressions": [region, zone("us-east1-a")] },
            { "matchExpressions": [zone("us-west1-a")] },
        ] } },
    } });
    let terms = &volume_to_in_tree(&pv).unwrap()["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"].as_array().map(Vec::len), Some(2));
    assert_eq!(terms[1]["matchExpressions"][1]["values"], json!(["us-west1"]));
}

#[test]
fn empty_attribute_leaves_the_file_system_of_an_azure_disk_to_the_field() {
    let pv = json!({ "spec": { "csi": {
        "driver": "disk.csi.azure.com", "fsType": "ext4", "volumeAttributes": { "fstype": "" },
        "volumeHandle": "/subscriptions/1/resourceGroups/2/providers/Microsoft.Compute/disks/d",
    } } });
    assert_eq!(volume_to_in_tree(&pv).unwrap()["spec"]["azureDisk"]["fsType"], "ext4");
}

#[test]
fn portworx_secret_without_a_name_is_ignored() {
    let mut pv = labelled(Plugin::Portworx, &json!({ "volumeID": "p" }), &Value::Null);
    pv["metadata"]["annotations"] = json!({ "openstorage.io/auth-secret-namespace": "ns" });
    assert_eq!(volume_to_csi(&pv).unwrap()["spec"]["csi"]["nodeStageSecretRef"], Value::Null);
}
