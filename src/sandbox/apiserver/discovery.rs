//! What the server says about itself: groups, kinds, version, `OpenAPI`.
//!
//! Promises: both forms of discovery (one document per group, and aggregated), and as much `OpenAPI` as kubectl needs
//! to leave the checking of fields to the server. There are no schemas, so `kubectl explain` has nothing to show.

use super::resources::{RESOURCES, Resource, groups};
use serde_json::{Map, Value, json};

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Kinds that are only asked, never stored: group, plural, kind.
pub const REVIEWS: [(&str, &str, &str); 5] = [
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    ("authentication.k8s.io", "tokenreviews", "TokenReview"),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
];

/// Every group with its version, the asked-only ones last.
fn all_groups() -> Vec<(&'static str, &'static str)> {
    let mut found = groups();
    for (group, _, _) in REVIEWS {
        if !found.contains(&(group, "v1")) {
            found.push((group, "v1"));
        }
    }
    found
}

fn of_group(group: &str, version: &str) -> Vec<&'static Resource> {
    RESOURCES.iter().filter(|it| it.group == group && it.version == version).collect()
}

fn singular(kind: &str) -> String {
    kind.to_lowercase()
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// `/api`.
pub fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/apis`.
pub fn group_list() -> Value {
    let named = all_groups().into_iter().filter(|(group, _)| !group.is_empty());
    let items: Vec<Value> = named.map(|(group, version)| group_entry(group, version)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": items})
}

fn group_entry(group: &str, version: &str) -> Value {
    let entry = json!({"groupVersion": api_version(group, version), "version": version});
    json!({"name": group, "versions": [entry], "preferredVersion": entry})
}

/// `/apis/<group>`.
pub fn one_group(name: &str) -> Option<Value> {
    let (group, version) = all_groups().into_iter().find(|(group, _)| *group == name && !group.is_empty())?;
    let mut entry = group_entry(group, version);
    if let Some(fields) = entry.as_object_mut() {
        fields.insert("kind".into(), json!("APIGroup"));
        fields.insert("apiVersion".into(), json!("v1"));
    }
    Some(entry)
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub fn resource_list(group: &str, version: &str) -> Option<Value> {
    let mut items: Vec<Value> = Vec::new();
    for resource in of_group(group, version) {
        items.push(json!({
            "name": resource.plural, "singularName": singular(resource.kind), "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": VERBS, "shortNames": resource.short,
        }));
        for (name, verbs, kind) in subresources(resource) {
            items.push(json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced,
                "kind": kind, "verbs": verbs,
            }));
        }
    }
    for (_, plural, kind) in reviews_of(group, version) {
        items.push(json!({"name": plural, "singularName": singular(kind), "namespaced": false, "kind": kind, "verbs": ["create"]}));
    }
    if items.is_empty() {
        return None;
    }
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version), "resources": items,
    }))
}

fn reviews_of(group: &str, version: &str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let is_v1 = version == "v1";
    REVIEWS.into_iter().filter(move |review| is_v1 && review.0 == group)
}

fn subresources(resource: &Resource) -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
    let mut found = Vec::new();
    if resource.has_status() {
        found.push(("status", vec!["get", "patch", "update"], resource.kind));
    }
    for name in resource.subresources {
        let (verb, kind) = if *name == "binding" { ("create", "Binding") } else { ("update", resource.kind) };
        found.push((name, vec![verb], kind));
    }
    found
}

/// `/api` or `/apis` in the aggregated form.
pub fn aggregated(core: bool) -> Value {
    let items: Vec<Value> = all_groups()
        .into_iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, version)| {
            let mut metadata = Map::new();
            if !core {
                metadata.insert("name".into(), json!(group));
            }
            let versions = json!([{"version": version, "freshness": "Current", "resources": aggregated_resources(group, version)}]);
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resources(group: &str, version: &str) -> Vec<Value> {
    let kind_of = |kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut items: Vec<Value> = Vec::new();
    for resource in of_group(group, version) {
        let subresources: Vec<Value> = subresources(resource)
            .into_iter()
            .map(|(name, verbs, kind)| json!({"subresource": name, "responseKind": kind_of(kind), "verbs": verbs}))
            .collect();
        items.push(json!({
            "resource": resource.plural, "responseKind": kind_of(resource.kind),
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": singular(resource.kind), "verbs": VERBS, "shortNames": resource.short,
            "subresources": subresources,
        }));
    }
    for (_, plural, kind) in reviews_of(group, version) {
        items.push(json!({
            "resource": plural, "responseKind": kind_of(kind), "scope": "Cluster", "singularResource": singular(kind),
            "verbs": ["create"],
        }));
    }
    items
}

/// `/version`.
pub fn version() -> Value {
    json!({
        "major": "1", "minor": "37", "gitVersion": "v1.37.0-sandbox", "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
    })
}

/// `/openapi/v3`: where the documents are.
pub fn openapi_index() -> Value {
    let mut paths = Map::new();
    for (group, version) in groups() {
        let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash=1")}));
    }
    json!({"paths": paths})
}

/// `/openapi/v3/...`: that each kind can be patched, and that the server checks fields.
pub fn openapi_document(group: &str, version: &str) -> Option<Value> {
    let resources = of_group(group, version);
    if resources.is_empty() {
        return None;
    }
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let parameter =
        json!({"name": "fieldValidation", "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let mut paths = Map::new();
    for resource in resources {
        let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let operation = json!({
            "operationId": format!("patch{}", resource.kind),
            "parameters": [parameter],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        });
        paths.insert(format!("{root}{namespace}/{}/{{name}}", resource.plural), json!({"patch": operation}));
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "csi-sandbox", "version": "v1.37.0"},
        "paths": paths,
        "components": {"schemas": {}},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_discovery_name_the_same_kinds() {
        for (group, version) in all_groups() {
            let plain = resource_list(group, version).expect("a group has kinds");
            let names: Vec<String> = plain["resources"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|it| it["name"].as_str())
                .filter(|name| !name.contains('/'))
                .map(str::to_owned)
                .collect();
            let joined: Vec<String> = aggregated_resources(group, version)
                .iter()
                .filter_map(|it| it["resource"].as_str())
                .map(str::to_owned)
                .collect();
            assert_eq!(names, joined);
        }
    }

    #[test]
    fn every_kind_tells_that_the_server_checks_fields() {
        for resource in RESOURCES {
            let document = openapi_document(resource.group, resource.version).expect("a document");
            let paths = document["paths"].as_object().expect("paths");
            let told = paths.values().any(|path| {
                path["patch"]["x-kubernetes-group-version-kind"]["kind"] == resource.kind
                    && path["patch"]["parameters"][0]["name"] == "fieldValidation"
            });
            assert!(told, "{}", resource.kind);
        }
    }
}
