//! Which lists of the served kinds merge, and by which key.
//!
//! Taken from the patch markers of the Kubernetes API types (`patchStrategy`, `patchMergeKey`), for the kinds
//! served. A list that is not named here is replaced as a whole.

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListRule {
    /// Objects with an equal key merge, others are added.
    ByKey(&'static str),
    /// Plain values form a set.
    Set,
    /// The patch's list takes the place of the old one.
    Replace,
}

const POD_LISTS: &[(&str, ListRule)] = &[
    ("containers", ListRule::ByKey("name")),
    ("initContainers", ListRule::ByKey("name")),
    ("ephemeralContainers", ListRule::ByKey("name")),
    ("volumes", ListRule::ByKey("name")),
    ("imagePullSecrets", ListRule::ByKey("name")),
    ("hostAliases", ListRule::ByKey("ip")),
    ("topologySpreadConstraints", ListRule::ByKey("topologyKey")),
    ("resourceClaims", ListRule::ByKey("name")),
    ("schedulingGates", ListRule::ByKey("name")),
];

const CONTAINER_LISTS: &[(&str, ListRule)] = &[
    ("env", ListRule::ByKey("name")),
    ("ports", ListRule::ByKey("containerPort")),
    ("volumeMounts", ListRule::ByKey("mountPath")),
    ("volumeDevices", ListRule::ByKey("devicePath")),
];

/// The rule for the list `field` inside the map at `path` (field names from the object's top, `*` for list items).
pub fn list_rule(plural: &str, path: &[&str], field: &str) -> ListRule {
    match (plural, path, field) {
        (_, ["metadata"] | [.., "template", "metadata"], "finalizers") | ("nodes", ["spec"], "podCIDRs") => {
            ListRule::Set
        }
        (_, ["metadata"] | [.., "template", "metadata"], "ownerReferences") => ListRule::ByKey("uid"),
        (_, ["status"], "conditions") | ("nodes", ["status"], "addresses") => ListRule::ByKey("type"),
        ("nodes", ["spec"], "taints") => ListRule::ByKey("key"),
        ("csinodes", ["spec"], "drivers") | ("serviceaccounts", [], "secrets" | "imagePullSecrets") => {
            ListRule::ByKey("name")
        }
        ("pods", ["status"], "podIPs" | "hostIPs") => ListRule::ByKey("ip"),
        ("pods", ["spec", rest @ ..], field)
        | (
            "deployments" | "replicasets" | "daemonsets" | "statefulsets",
            ["spec", "template", "spec", rest @ ..],
            field,
        ) => pod_rule(rest, field),
        _ => ListRule::Replace,
    }
}

fn pod_rule(path: &[&str], field: &str) -> ListRule {
    let lists = match path {
        [] => POD_LISTS,
        ["containers" | "initContainers" | "ephemeralContainers", "*"] => CONTAINER_LISTS,
        _ => return ListRule::Replace,
    };
    lists.iter().find(|(name, _)| *name == field).map_or(ListRule::Replace, |(_, rule)| *rule)
}
