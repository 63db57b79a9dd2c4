//! Changes of an object's list of finalizers: one entry more or less, the order of the others stays.

use serde_json::Value;

/// The list with `finalizer` at its end; `None` if it is there already.
pub fn added(finalizers: &[String], finalizer: &str) -> Option<Vec<String>> {
    let there = finalizers.iter().any(|have| have == finalizer);
    (!there).then(|| finalizers.iter().cloned().chain([finalizer.to_owned()]).collect())
}

/// The list without `finalizer`; `None` if it is not there.
pub fn removed(finalizers: &[String], finalizer: &str) -> Option<Vec<String>> {
    let left: Vec<String> = finalizers.iter().filter(|have| *have != finalizer).cloned().collect();
    (left.len() < finalizers.len()).then_some(left)
}

/// Changes the list of an object that is written back whole; false if nothing is to be changed. An object without a list
/// has an empty one.
pub fn change(object: &mut Value, finalizer: &str, to: fn(&[String], &str) -> Option<Vec<String>>) -> bool {
    let listed = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let before: Vec<String> = listed.filter_map(Value::as_str).map(str::to_owned).collect();
    let Some(after) = to(&before, finalizer) else { return false };
    object["metadata"]["finalizers"] = Value::from(after);
    true
}

#[cfg(test)]
mod tests {
    use super::{added, change, removed};
    use serde_json::json;

    #[test]
    fn one_entry_is_changed_and_the_order_of_the_others_stays() {
        let mut object = json!({ "metadata": { "finalizers": ["b", "ours", "a"] } });
        assert!(change(&mut object, "ours", removed) && !change(&mut object, "ours", removed));
        assert_eq!(object["metadata"]["finalizers"], json!(["b", "a"]));
        assert!(change(&mut object, "ours", added) && !change(&mut object, "ours", added));
        assert_eq!(object["metadata"]["finalizers"], json!(["b", "a", "ours"]));
    }

    #[test]
    fn object_without_a_list_gets_one() {
        let mut object = json!({ "metadata": { "name": "x" } });
        assert!(!change(&mut object, "ours", removed) && change(&mut object, "ours", added));
        assert_eq!(object["metadata"]["finalizers"], json!(["ours"]));
    }
}
