//! Label and field selectors of lists and watches.
//!
//! Promises: the syntax of the real server (`a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a` for labels;
//! `path=value`, `path!=value` for fields); a field that the kind does not offer is an error, not an empty answer.

use super::refusal::Refusal;
use super::resources::Resource;
use serde_json::Value;
use std::collections::BTreeSet;

/// What a list or watch is limited to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// All of these label rules.
    pub labels: Vec<LabelRule>,
    /// All of these field rules.
    pub fields: Vec<FieldRule>,
}

/// One rule on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelRule {
    /// The label has one of the values.
    In(String, BTreeSet<String>),
    /// The label is absent or has another value.
    NotIn(String, BTreeSet<String>),
    /// The label is there.
    Exists(String),
    /// The label is absent.
    Absent(String),
}

/// One rule on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    path: String,
    value: String,
    equal: bool,
}

impl Selection {
    /// Reads both selectors for a kind.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Refusal> {
        Ok(Self { namespace: None, labels: parse_labels(labels)?, fields: parse_fields(resource, fields)? })
    }

    /// Limits to a namespace; an empty one means all.
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        self
    }

    /// Whether anything but the namespace narrows the selection.
    pub fn narrows(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Whether the object belongs to the selection.
    pub fn takes(&self, object: &Value) -> bool {
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
            && self.labels.iter().all(|rule| rule.takes(object))
            && self.fields.iter().all(|rule| rule.takes(object))
    }
}

impl LabelRule {
    fn takes(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        match self {
            Self::In(key, values) => label(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => label(key).is_none_or(|value| !values.contains(value)),
            Self::Exists(key) => label(key).is_some(),
            Self::Absent(key) => label(key).is_none(),
        }
    }
}

impl FieldRule {
    fn takes(&self, object: &Value) -> bool {
        (field_text(object, &self.path) == self.value) == self.equal
    }
}

fn field_text(object: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(object, |value, part| value.get(part));
    match (path, found) {
        // An event's source is told by its component.
        ("source", _) => field_text(object, "source.component"),
        ("spec.unschedulable" | "spec.hostNetwork", None) => "false".to_owned(),
        (_, Some(Value::String(text))) => text.clone(),
        (_, None | Some(Value::Null | Value::Array(_) | Value::Object(_))) => String::new(),
        (_, Some(other)) => other.to_string(),
    }
}

fn parse_fields(resource: &Resource, text: &str) -> Result<Vec<FieldRule>, Refusal> {
    text.split(',').filter(|part| !part.is_empty()).map(|part| parse_field(resource, part)).collect()
}

fn parse_field(resource: &Resource, part: &str) -> Result<FieldRule, Refusal> {
    let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
        (path, value, false)
    } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (path, value, true)
    } else {
        let message = format!("Unable to find \"{}\": invalid field selector: \"{part}\"", resource.qualified());
        return Err(Refusal::bad_request(message));
    };
    let known = path == "metadata.name" || (resource.namespaced && path == "metadata.namespace");
    if !known && !resource.selectable.contains(&path) {
        return Err(Refusal::bad_request(format!(
            "Unable to find \"{}\" that match label selector \"\", field selector \"{part}\": field label not supported: {path}",
            resource.qualified()
        )));
    }
    Ok(FieldRule { path: path.to_owned(), value: value.replace("\\,", ",").replace("\\=", "="), equal })
}

fn parse_labels(text: &str) -> Result<Vec<LabelRule>, Refusal> {
    split_outside_parentheses(text).into_iter().filter(|part| !part.trim().is_empty()).map(parse_label).collect()
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn parse_label(part: &str) -> Result<LabelRule, Refusal> {
    let part = part.trim();
    let one = |value: &str| BTreeSet::from([value.trim().to_owned()]);
    let key = |text: &str| text.trim().to_owned();
    let rule = if let Some((name, values)) = split_set(part, " notin ") {
        LabelRule::NotIn(name, values)
    } else if let Some((name, values)) = split_set(part, " in ") {
        LabelRule::In(name, values)
    } else if let Some((name, value)) = part.split_once("!=") {
        LabelRule::NotIn(key(name), one(value))
    } else if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        LabelRule::In(key(name), one(value))
    } else if let Some(name) = part.strip_prefix('!') {
        LabelRule::Absent(key(name))
    } else {
        LabelRule::Exists(key(part))
    };
    let (LabelRule::In(name, _) | LabelRule::NotIn(name, _) | LabelRule::Exists(name) | LabelRule::Absent(name)) =
        &rule;
    if name.is_empty() || name.contains([' ', '(', ')', '=', '!']) {
        return Err(Refusal::bad_request(format!("unable to parse requirement: \"{part}\" is not a label rule")));
    }
    Ok(rule)
}

fn split_set(part: &str, word: &str) -> Option<(String, BTreeSet<String>)> {
    let (name, rest) = part.split_once(word)?;
    let inside = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((name.trim().to_owned(), inside.split(',').map(|value| value.trim().to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::apiserver::resources::by_plural;
    use serde_json::json;

    fn takes(labels: &str, fields: &str) -> bool {
        let pods = by_plural("pods").expect("served");
        let pod = json!({"metadata": {"name": "a", "namespace": "n", "labels": {"tier": "web", "zone": "z1"}}, "spec": {"nodeName": "n1"}});
        Selection::parse(pods, labels, fields).expect("well-formed").takes(&pod)
    }

    #[test]
    fn label_rules_are_anded() {
        assert!(takes("tier=web,zone in (z1, z2),!gone,zone", ""));
        assert!(!takes("tier=web,zone notin (z1,z2)", ""));
        assert!(takes("absent!=x", ""));
        assert!(!takes("tier==db", ""));
    }

    #[test]
    fn field_rules_follow_the_path() {
        assert!(takes("", "spec.nodeName=n1,metadata.namespace!=m"));
        assert!(takes("", "status.phase="));
        assert!(!takes("", "spec.nodeName!=n1"));
    }

    #[test]
    fn unknown_field_is_refused() {
        let pods = by_plural("pods").expect("served");
        assert_eq!(Selection::parse(pods, "", "spec.color=red").map_err(|it| it.code()), Err(400));
    }

    #[test]
    fn broken_label_rule_is_refused() {
        let pods = by_plural("pods").expect("served");
        assert_eq!(Selection::parse(pods, "a in (b", "").map_err(|it| it.code()), Err(400));
    }
}
