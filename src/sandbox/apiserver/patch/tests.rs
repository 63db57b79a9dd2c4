//! The laws of the three patches.

use super::*;
use crate::sandbox::apiserver::resources::by_plural;
use proptest::prelude::*;
use serde_json::{Map, json};

fn patched(plural: &str, kind: PatchKind, old: &Value, patch: &Value) -> Value {
    apply(kind, by_plural(plural).expect("served"), old, patch).expect("patch applies")
}

fn strategic(plural: &str, old: &Value, patch: &Value) -> Value {
    patched(plural, PatchKind::Strategic, old, patch)
}

#[test]
fn finalizers_form_a_set_in_a_strategic_patch() {
    let old = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch = json!({"metadata": {"finalizers": ["b", "c"]}});
    assert_eq!(strategic("persistentvolumes", &old, &patch), json!({"metadata": {"finalizers": ["a", "b", "c"]}}));
}

#[test]
fn finalizers_are_taken_out_by_name() {
    let old = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch =
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"]}});
    assert_eq!(strategic("persistentvolumes", &old, &patch), json!({"metadata": {"finalizers": ["b"]}}));
}

#[test]
fn finalizers_are_replaced_by_a_merge_patch() {
    let old = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch = json!({"metadata": {"finalizers": ["c"]}});
    assert_eq!(patched("secrets", PatchKind::Merge, &old, &patch), json!({"metadata": {"finalizers": ["c"]}}));
}

#[test]
fn owners_merge_by_uid() {
    let old = json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "x"}, {"uid": "2", "name": "y"}]}});
    let patch = json!({"metadata": {"ownerReferences": [
        {"uid": "2", "$patch": "delete"}, {"uid": "1", "controller": true}, {"uid": "3", "name": "z"}]}});
    let wanted = json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "x", "controller": true}, {"uid": "3", "name": "z"}]}});
    assert_eq!(strategic("persistentvolumeclaims", &old, &patch), wanted);
}

#[test]
fn access_modes_are_replaced_as_a_whole() {
    let old = json!({"spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}});
    let patch = json!({"spec": {"accessModes": ["ReadWriteMany"]}});
    let wanted = json!({"spec": {"accessModes": ["ReadWriteMany"]}});
    assert_eq!(strategic("persistentvolumeclaims", &old, &patch), wanted);
}

#[test]
fn conditions_merge_by_type_and_follow_the_given_order() {
    let old = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other"}]}});
    let patch = json!({"status": {
        "$setElementOrder/conditions": [{"type": "Other"}, {"type": "Ready"}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let wanted = json!({"status": {"conditions": [{"type": "Other"}, {"type": "Ready", "status": "True"}]}});
    assert_eq!(strategic("nodes", &old, &patch), wanted);
}

#[test]
fn container_lists_merge_inside_the_container() {
    let old = json!({"spec": {"containers": [{"name": "a", "env": [{"name": "x", "value": "1"}]}]}});
    let patch = json!({"spec": {"containers": [{"name": "a", "env": [{"name": "y", "value": "2"}]}]}});
    // What is new comes first, as on the real server.
    let env = json!([{"name": "y", "value": "2"}, {"name": "x", "value": "1"}]);
    assert_eq!(strategic("pods", &old, &patch)["spec"]["containers"][0]["env"], env);
}

#[test]
fn map_is_replaced_on_demand() {
    let old = json!({"spec": {"a": 1, "b": 2}});
    let patch = json!({"spec": {"$patch": "replace", "c": 3}});
    assert_eq!(strategic("pods", &old, &patch), json!({"spec": {"c": 3}}));
}

#[test]
fn order_to_the_server_is_not_stored_where_there_is_nothing_to_merge_with() {
    let patch =
        json!({"metadata": {"labels": {"$patch": "replace", "a": "b"}}, "spec": {"$retainKeys": ["c"], "c": 1}});
    assert_eq!(
        strategic("pods", &json!({"metadata": {"name": "p"}}), &patch),
        json!({"metadata": {"name": "p"}, "spec": {"c": 1}})
    );
}

#[test]
fn retained_keys_drop_the_others() {
    let old = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    assert_eq!(strategic("deployments", &old, &patch), json!({"spec": {"strategy": {"type": "Recreate"}}}));
}

#[test]
fn list_item_without_its_key_is_refused() {
    let patch = json!({"metadata": {"ownerReferences": [{"name": "x"}]}});
    let old = json!({"metadata": {"ownerReferences": [{"uid": "1"}]}});
    let secrets = by_plural("secrets").expect("served");
    assert_eq!(apply(PatchKind::Strategic, secrets, &old, &patch).map_err(|it| it.code()), Err(500));
}

#[test]
fn json_patch_steps_build_on_each_other() {
    let old = json!({"metadata": {"annotations": {"a/b": "1"}, "finalizers": ["x", "y"]}});
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers/1", "value": "y"},
        {"op": "remove", "path": "/metadata/finalizers/1"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "z"},
        {"op": "move", "from": "/metadata/annotations/a~1b", "path": "/metadata/annotations/c"},
        {"op": "copy", "from": "/metadata/annotations/c", "path": "/metadata/annotations/d"},
        {"op": "replace", "path": "/metadata/annotations/d", "value": "2"}]);
    let wanted = json!({"metadata": {"annotations": {"c": "1", "d": "2"}, "finalizers": ["x", "z"]}});
    assert_eq!(patched("secrets", PatchKind::Json, &old, &patch), wanted);
}

#[test]
fn failed_test_is_a_422() {
    let secrets = by_plural("secrets").expect("served");
    let patch = json!([{"op": "test", "path": "/metadata/name", "value": "b"}]);
    let old = json!({"metadata": {"name": "a"}});
    assert_eq!(apply(PatchKind::Json, secrets, &old, &patch).map_err(|it| it.code()), Err(422));
}

#[test]
fn unknown_patch_type_is_a_415() {
    assert_eq!(PatchKind::of_content_type("application/apply-patch+yaml").map_err(|it| it.code()), Err(415));
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..9).prop_map(Value::from),
        "[a-c]{1,2}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

fn map() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", tree(), 0..4).prop_map(|map| Value::Object(Map::from_iter(map)))
}

fn names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::btree_set("[a-e]", 0..5).prop_map(|set| set.into_iter().collect())
}

/// The merge patch that leads from one map to another.
fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            Some(held) if held == value => {}
            // A map in place of something else, or the other way round, is a replacement; null first for maps.
            Some(held) if held.is_object() && value.is_object() => {
                patch.insert(key.clone(), difference(held, value));
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

proptest! {
    #[test]
    fn merge_patch_of_the_difference_leads_to_the_new_object(old in map(), new in map()) {
        prop_assert_eq!(patched("secrets", PatchKind::Merge, &old, &difference(&old, &new)), new);
    }

    #[test]
    fn patching_twice_is_patching_once(old in map(), patch in map()) {
        for kind in [PatchKind::Merge, PatchKind::Strategic] {
            let once = patched("secrets", kind, &old, &patch);
            prop_assert_eq!(&patched("secrets", kind, &once, &patch), &once);
        }
    }

    #[test]
    fn empty_patch_changes_nothing(old in map()) {
        for kind in [PatchKind::Merge, PatchKind::Strategic] {
            prop_assert_eq!(&patched("secrets", kind, &old, &json!({})), &old);
        }
    }

    #[test]
    fn strategic_patch_without_merging_lists_is_a_merge_patch(old in map(), patch in map()) {
        let merged = patched("secrets", PatchKind::Merge, &old, &patch);
        prop_assert_eq!(patched("secrets", PatchKind::Strategic, &old, &patch), merged);
    }

    #[test]
    fn set_list_gains_what_is_added_and_loses_what_is_deleted(held in names(), more in names(), gone in names()) {
        let old = json!({"metadata": {"finalizers": held.clone()}});
        let gone: Vec<String> = gone.into_iter().filter(|name| !more.contains(name)).collect();
        let patch = json!({"metadata": {"finalizers": more.clone(), "$deleteFromPrimitiveList/finalizers": gone.clone()}});
        let new = strategic("secrets", &old, &patch);
        let list: Vec<&str> = new["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for name in ["a", "b", "c", "d", "e"] {
            let owned = name.to_owned();
            let wanted = more.contains(&owned) || (held.contains(&owned) && !gone.contains(&owned));
            prop_assert_eq!(list.iter().filter(|it| **it == name).count(), usize::from(wanted), "{}", name);
        }
    }
}
