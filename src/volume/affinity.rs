//! Whether a node lies within a volume's node affinity: in node deployments each instance deletes only what its node
//! reaches (provisioning.md 7.5 point 3).

use crate::model::Segments;
use serde::Deserialize;
use serde_json::Value;

/// A node affinity that cannot be judged, so that nobody may delete the volume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say it")]
pub enum AffinityFault {
    #[error("spec.nodeAffinity is not readable: {0}")]
    Unreadable(String),
    #[error("spec.nodeAffinity uses the unknown operator {0:?}")]
    UnknownOperator(String),
    #[error("spec.nodeAffinity compares {0:?} as a number, but does not give one")]
    NoNumber(String),
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Affinity {
    required: Option<Selector>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    node_selector_terms: Vec<Term>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    match_expressions: Vec<Expression>,
    match_fields: Vec<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

/// Whether a node with these labels reaches the volume. No affinity or no labels: yes.
pub fn reaches(affinity: Option<&Value>, labels: &Segments) -> Result<bool, AffinityFault> {
    let Some(affinity) = affinity.filter(|_| !labels.is_empty()) else { return Ok(true) };
    let affinity = Option::<Affinity>::deserialize(affinity)
        .map_err(|error| AffinityFault::Unreadable(error.to_string().chars().take(256).collect()))?;
    let Some(selector) = affinity.and_then(|affinity| affinity.required) else { return Ok(true) };
    // Terms are alternatives, and a term without any requirement matches nothing. A term that asks for fields of the
    // Node object cannot be met by labels.
    let usable = selector.node_selector_terms.iter().filter(|term| !term.match_expressions.is_empty());
    for term in usable.filter(|term| term.match_fields.is_empty()) {
        if all_hold(&term.match_expressions, labels)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn all_hold(expressions: &[Expression], labels: &Segments) -> Result<bool, AffinityFault> {
    let mut all = true;
    for expression in expressions {
        all &= holds(expression, labels)?;
    }
    Ok(all)
}

fn holds(expression: &Expression, labels: &Segments) -> Result<bool, AffinityFault> {
    let label = labels.get(&expression.key);
    let listed = || label.is_some_and(|label| expression.values.contains(label));
    Ok(match expression.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        "Gt" | "Lt" => {
            let limit: i64 = expression
                .values
                .first()
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| AffinityFault::NoNumber(expression.key.chars().take(256).collect()))?;
            let number: Option<i64> = label.and_then(|label| label.parse().ok());
            number.is_some_and(|number| if expression.operator == "Gt" { number > limit } else { number < limit })
        }
        other => return Err(AffinityFault::UnknownOperator(other.chars().take(256).collect())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn on(labels: &[(&str, &str)], terms: &Value) -> Result<bool, AffinityFault> {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        reaches(Some(&json!({ "required": { "nodeSelectorTerms": terms } })), &labels)
    }

    fn term(operator: &str, values: &[&str]) -> Value {
        json!([{ "matchExpressions": [{ "key": "n", "operator": operator, "values": values }] }])
    }

    #[test]
    fn terms_are_alternatives_of_expressions_that_must_all_hold() {
        let expression = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
        let terms = json!([
            { "matchExpressions": [expression("zone", "a"), expression("rack", "1")] },
            { "matchExpressions": [expression("zone", "b")] },
        ]);
        assert_eq!(on(&[("zone", "a"), ("rack", "1")], &terms), Ok(true));
        assert_eq!(on(&[("zone", "a"), ("rack", "2")], &terms), Ok(false));
        assert_eq!(on(&[("zone", "b")], &terms), Ok(true));
    }

    #[test]
    fn every_operator_is_known() {
        for (operator, values, result) in [
            ("In", vec!["5"], true),
            ("NotIn", vec!["5"], false),
            ("Exists", vec![], true),
            ("DoesNotExist", vec![], false),
            ("Gt", vec!["4"], true),
            ("Lt", vec!["5"], false),
        ] {
            assert_eq!(on(&[("n", "5")], &term(operator, &values)), Ok(result), "{operator}");
        }
        assert_eq!(on(&[("n", "5")], &term("Near", &[])), Err(AffinityFault::UnknownOperator("Near".to_owned())));
        assert_eq!(on(&[("n", "5")], &term("Gt", &["x"])), Err(AffinityFault::NoNumber("n".to_owned())));
    }

    #[test]
    fn term_without_requirement_matches_nothing() {
        assert_eq!(on(&[("n", "5")], &json!([{}])), Ok(false));
        assert_eq!(on(&[("n", "5")], &json!([{ "matchFields": [{}], "matchExpressions": [] }])), Ok(false));
    }

    #[test]
    fn volume_or_node_without_topology_is_reached() {
        assert_eq!(reaches(None, &Segments::from([("n".to_owned(), "5".to_owned())])), Ok(true));
        assert_eq!(on(&[], &term("In", &["x"])), Ok(true));
    }

    #[test]
    fn unreadable_affinity_is_an_error() {
        assert!(matches!(on(&[("n", "5")], &json!("x")), Err(AffinityFault::Unreadable(_))));
    }
}
