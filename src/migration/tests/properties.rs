//! Properties over arbitrary input: nothing panics, nothing unknown is lost, and what the rules call reversible is.

use crate::migration::deletion::deletable;
use crate::migration::object::VolumeObject;
use crate::migration::tables::{BETA_REGION, BETA_ZONE, STABLE_REGION, STABLE_ZONE};
use crate::migration::{Plugin, TranslateError};
use crate::migration::{
    inline_to_csi, is_migratable, repair_handle, translate_class, volume_to_csi, volume_to_in_tree,
};
use crate::model::{Class, Driver};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

// === Arbitrary input ===

fn any_plugin() -> impl Strategy<Value = Plugin> {
    select(Plugin::ALL.to_vec())
}

/// Names that some rule looks for, so that arbitrary objects come close to real ones.
fn any_key() -> impl Strategy<Value = String> {
    let known = [
        "metadata",
        "name",
        "labels",
        "annotations",
        "spec",
        "csi",
        "driver",
        "volumeHandle",
        "volumeAttributes",
        "fsType",
        "readOnly",
        "partition",
        "nodeStageSecretRef",
        "claimRef",
        "namespace",
        "accessModes",
        "nodeAffinity",
        "required",
        "nodeSelectorTerms",
        "matchExpressions",
        "key",
        "operator",
        "values",
        "volumeID",
        "pdName",
        "diskURI",
        "kind",
        "cachingMode",
        "shareName",
        "secretName",
        "secretNamespace",
        "volumePath",
        "storagePolicyName",
        STABLE_ZONE,
        BETA_ZONE,
        STABLE_REGION,
        BETA_REGION,
    ];
    let fields = Plugin::ALL.map(Plugin::source_field);
    let known: Vec<String> = known.into_iter().chain(fields).map(str::to_owned).collect();
    prop_oneof![9 => select(known), 1 => ".{0,6}"]
}

fn any_text() -> impl Strategy<Value = String> {
    let drivers = Plugin::ALL.map(|plugin| plugin.driver_name().to_owned());
    prop_oneof![
        ".{0,12}",
        "(us|é|-)(-[a-z0-9é]{0,3}){0,6}",
        "[A-Z/#:_a-zé-]{0,24}",
        select(drivers.to_vec()),
        select(vec![STABLE_ZONE.to_owned(), BETA_ZONE.to_owned(), "topology.gke.io/zone".to_owned()]),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any_key(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A valid in-tree source that both directions keep as it is.
fn reversible_source(plugin: Plugin, id: &str, fs_type: &str, read_only: bool, partition: i32) -> Value {
    let mut source = match plugin {
        Plugin::GcePd => json!({ "pdName": id }),
        Plugin::AzureDisk => {
            let uri = format!("/subscriptions/1/resourceGroups/2/providers/Microsoft.Compute/disks/{id}");
            json!({ "diskName": id, "diskURI": uri, "kind": "Managed", "fsType": "", "readOnly": false })
        }
        Plugin::AzureFile => json!({ "shareName": id, "secretName": "s", "secretNamespace": "n" }),
        Plugin::AwsEbs | Plugin::Cinder | Plugin::Portworx => json!({ "volumeID": id }),
        // The way back takes the path from an attribute that only the driver sets.
        Plugin::Vsphere => json!({ "volumePath": "" }),
    };
    if !fs_type.is_empty() && plugin != Plugin::AzureFile {
        source["fsType"] = fs_type.into();
    }
    if read_only && !matches!(plugin, Plugin::Portworx | Plugin::Vsphere) {
        source["readOnly"] = true.into();
    }
    if partition != 0 && matches!(plugin, Plugin::AwsEbs | Plugin::GcePd) {
        source["partition"] = partition.into();
    }
    source
}

prop_compose! {
    /// A volume object of a plug-in without topology.
    fn any_volume()(
        plugin in any_plugin(),
        id in "[a-z][a-z0-9-]{0,12}",
        fs_type in "(ext4|xfs)?",
        read_only in any::<bool>(),
        partition in 0..8i32,
    ) -> (Plugin, Value) {
        let source = reversible_source(plugin, &id, &fs_type, read_only, partition);
        let mut pv = json!({ "metadata": { "name": "pv-1" }, "spec": { "accessModes": ["ReadWriteOnce"] } });
        pv["spec"][plugin.source_field()] = source;
        (plugin, pv)
    }
}

prop_compose! {
    /// The same with zone labels and affinity whose zones both clouds' rules understand.
    fn any_zoned_volume(zone_keys: Vec<&'static str>)(
        (plugin, mut pv) in any_volume(),
        zone_key in select(zone_keys),
        label in option::of(vec("us-east-1[a-c]", 1..3)),
        affinity in option::of(vec(vec("us-west-2[a-c]", 1..3), 1..3)),
        unknown in any_text(),
    ) -> (Plugin, Value) {
        if let Some(zones) = label {
            pv["metadata"]["labels"] = json!({ (zone_key): zones.join("__"), "app": unknown });
        }
        if let Some(terms) = affinity {
            let term = |zones: &Vec<String>| json!({
                "matchExpressions": [
                    { "key": zone_key, "operator": "In", "values": zones, "newField": unknown },
                    { "key": "other", "operator": "Exists" },
                ],
                "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }],
            });
            let terms: Vec<Value> = terms.iter().map(term).collect();
            pv["spec"]["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": terms } });
        }
        (plugin, pv)
    }
}

prop_compose! {
    fn any_class()(
        provisioner in prop_oneof![
            9 => any_plugin().prop_map(|plugin| plugin.in_tree_name().to_owned()),
            1 => any_text(),
        ],
        parameters in btree_map(
            prop_oneof![
                select(vec!["fstype", "FSType", "zone", "Zone", "zones", "iopsPerGB", "datastore", "storagePolicyName",
                    "csi.storage.k8s.io/fstype", "allowautoiopspergbincrease", "openstorage.io/auth-secret-name",
                    "csi.storage.k8s.io/node-stage-secret-name"]).prop_map(str::to_owned),
                any_text(),
            ],
            select(vec!["", "a", "7", "a,b", "true"]), 0..5),
        topologies in vec(vec((select(vec![STABLE_ZONE, BETA_ZONE, STABLE_REGION, "x"]), vec("[a-z0-9]{0,2}", 0..3)), 0..3), 0..2),
    ) -> Class {
        let expressions = |term: &Vec<(&str, Vec<String>)>| {
            term.iter().map(|(key, values)| json!({ "key": key, "values": values })).collect::<Value>()
        };
        let terms: Vec<Value> =
            topologies.iter().map(|term| json!({ "matchLabelExpressions": expressions(term) })).collect();
        serde_json::from_value(json!({
            "metadata": { "name": "old" }, "provisioner": provisioner, "parameters": parameters,
            "mountOptions": ["debug"], "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": terms,
        })).unwrap()
    }
}

// === Nothing panics ===

/// Every entry that takes JSON from outside.
fn translate_everything(value: &Value) {
    let driver = Driver { name: Plugin::GcePd.driver_name().to_owned(), ..Driver::default() };
    let _ = (is_migratable(value), volume_to_csi(value), volume_to_in_tree(value), deletable(value, &driver));
    let _ = inline_to_csi(value, "ns");
    for plugin in Plugin::ALL {
        let _ = (plugin.volume_to_csi(value), plugin.volume_to_in_tree(value), plugin.inline_to_csi(value, ""));
    }
}

/// All places of a JSON value, as pointers.
fn places(value: &Value, here: &str, out: &mut Vec<String>) {
    out.push(here.to_owned());
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, inner)| places(inner, &format!("{here}/{}", escape(key)), out));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, inner)| places(inner, &format!("{here}/{index}"), out));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

proptest! {
    #[test]
    fn any_json_is_answered(value in any_json()) {
        translate_everything(&value);
    }

    #[test]
    fn volume_with_one_place_replaced_by_any_json_is_answered(
        (_, mut pv) in any_zoned_volume(vec![STABLE_ZONE, BETA_ZONE]), junk in any_json(), at in any::<prop::sample::Index>(), csi in any::<bool>(),
    ) {
        if csi {
            pv = volume_to_csi(&pv).unwrap_or(pv);
        }
        let mut all: Vec<String> = Vec::new();
        places(&pv, "", &mut all);
        let place: &String = at.get(&all);
        *pv.pointer_mut(place).unwrap() = junk;
        translate_everything(&pv);
    }

    #[test]
    fn any_handle_and_node_id_are_answered(handle in any_text(), parts in vec(any_text(), 0..8), plugin in any_plugin()) {
        let _ = repair_handle(plugin.driver_name(), &handle, &parts.join("/"));
        let _ = repair_handle(plugin.driver_name(), &parts.join("/"), &handle);
    }

    // === Classes ===

    #[test]
    fn class_translation_keeps_what_no_rule_names(class in any_class()) {
        if let Ok(out) = translate_class(&class) {
            prop_assert_eq!(out.metadata, class.metadata);
            prop_assert_eq!(out.mount_options, class.mount_options);
            prop_assert_eq!(out.reclaim_policy, class.reclaim_policy);
            prop_assert_eq!(out.volume_binding_mode, class.volume_binding_mode);
        }
    }

    #[test]
    fn class_is_refused_only_for_what_contradicts_itself_or_has_no_translation(class in any_class()) {
        let known = Plugin::by_in_tree(&class.provisioner).is_some();
        match translate_class(&class) {
            Ok(_) => prop_assert!(known),
            Err(TranslateError::NoTranslation { .. }) => prop_assert!(!known),
            Err(error) => prop_assert!(
                matches!(error, TranslateError::ZonesGivenTwice { .. } | TranslateError::ParametersContradict { .. }),
                "{}", error
            ),
        }
    }

    // vSphere is left out: it drops every parameter that it does not know, its own renamed ones among them.
    #[test]
    fn second_class_translation_changes_nothing(class in any_class(), plugin in any_plugin()) {
        if plugin != Plugin::Vsphere && let Ok(once) = plugin.translate_class(&class) {
            let twice = plugin.translate_class(&once).unwrap();
            prop_assert_eq!(twice.parameters, once.parameters);
            prop_assert_eq!(twice.allowed_topologies, once.allowed_topologies);
            prop_assert_eq!(twice.provisioner, once.provisioner);
        }
    }

    // === Volumes ===

    #[test]
    fn volume_without_topology_comes_back_as_it_was((plugin, pv) in any_volume()) {
        let csi = volume_to_csi(&pv).unwrap();
        prop_assert_eq!(&csi["spec"]["csi"]["driver"], plugin.driver_name());
        prop_assert_eq!(volume_to_in_tree(&csi).unwrap(), pv);
    }

    // Not so with beta keys: the region comes back stable and each way back appends the beta one to it.
    #[test]
    fn second_way_there_and_back_changes_nothing((_, pv) in any_zoned_volume(vec![STABLE_ZONE])) {
        let once = volume_to_in_tree(&volume_to_csi(&pv).unwrap()).unwrap();
        let twice = volume_to_in_tree(&volume_to_csi(&once).unwrap()).unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn labels_never_change_on_the_way_to_csi((_, pv) in any_zoned_volume(vec![STABLE_ZONE, BETA_ZONE])) {
        prop_assert_eq!(&volume_to_csi(&pv).unwrap()["metadata"], &pv["metadata"]);
    }

    #[test]
    fn existing_labels_survive_there_and_back((_, pv) in any_zoned_volume(vec![STABLE_ZONE, BETA_ZONE])) {
        let back = volume_to_in_tree(&volume_to_csi(&pv).unwrap()).unwrap();
        for (key, value) in pv["metadata"]["labels"].as_object().unwrap_or(&Map::new()) {
            prop_assert_eq!(&back["metadata"]["labels"][key], value);
        }
    }

    #[test]
    fn unknown_fields_survive_both_ways((_, mut pv) in any_zoned_volume(vec![STABLE_ZONE, BETA_ZONE]), extra in any_json()) {
        pv["later"] = extra.clone();
        pv["spec"]["later"] = extra.clone();
        pv["metadata"]["later"] = extra.clone();
        let csi = volume_to_csi(&pv).unwrap();
        for out in [volume_to_in_tree(&csi).unwrap(), csi] {
            for place in [&out["later"], &out["spec"]["later"], &out["metadata"]["later"]] {
                prop_assert_eq!(place, &extra);
            }
        }
    }

    #[test]
    fn expressions_keep_their_unknown_fields_and_neighbours((_, pv) in any_zoned_volume(vec![STABLE_ZONE, BETA_ZONE])) {
        let before = VolumeObject::read(&pv).unwrap();
        let after = VolumeObject::read(&volume_to_csi(&pv).unwrap()).unwrap();
        for (old, new) in before.terms().iter().zip(after.terms()) {
            prop_assert_eq!(&old["matchFields"], &new["matchFields"]);
            prop_assert_eq!(&old["matchExpressions"][1], &new["matchExpressions"][1]);
            prop_assert_eq!(&old["matchExpressions"][0]["newField"], &new["matchExpressions"][0]["newField"]);
            prop_assert_eq!(&old["matchExpressions"][0]["values"], &new["matchExpressions"][0]["values"]);
        }
    }
}
