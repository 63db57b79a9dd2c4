//! Holds the room `migration` to its table: every row must come out as written, and must fail as soon as any one of its
//! asserted values is falsified.
//!
//! Rows that differ on purpose stand in [`DIFFERS`] with the weak point that they repair; values that another room
//! decides stand in [`DECIDED_ELSEWHERE`]. How a row is run is in `migration/rows.rs`.

#[path = "migration/rows.rs"]
mod rows;

use serde_json::{Map, Value, json};

const TABLE: &str = include_str!("cases-migration.json");

/// Rows whose expectation records a defect that is not repeated: row, weak point of the migration rules, and what comes
/// out instead. The recorded expectation must not hold for them.
const DIFFERS: [(&str, &str, &str); 3] = [
    // Two parameters ask for different file systems: refused, where the order of a map used to pick one.
    ("request-after-translation-009", "W2", r#"{"error": true}"#),
    // A storage policy on a pod volume ended in a crash.
    (
        "inline-to-csi-025",
        "W4",
        r#"{"pv": {"metadata": {"name": "csi.vsphere.vmware.com-[ds] v.vmdk"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "[ds] v.vmdk",
                    "volumeAttributes": {"storagepolicyname": "gold"}}}}}"#,
    ),
    // Another plug-in's volume used to reach this driver with a handle that means nothing to it.
    ("delete-migrated-004", "W7", r#"{"error": true, "DeleteVolume_called": false}"#),
];

/// Values of a row that this room does not decide: group, field, and why. They are left out of the comparison.
const DECIDED_ELSEWHERE: [(&str, &str, &str); 5] = [
    ("provision-migrated", "state", "the state of a claim is the claim room's"),
    ("provision-migrated", "reason_contains", "a present text; texts are free"),
    ("should-provision", "then", "the class is read again by the claim room before the call"),
    ("request-after-translation", "state", "the state of a claim is the claim room's"),
    ("inline-to-csi", "note", "words about the row"),
];

/// Runs all rows, then each again with every asserted value falsified in turn. Panics with the list of what went wrong.
pub fn run() {
    let table: Value = serde_json::from_str(TABLE).expect("the table is JSON");
    let cases = table["cases"].as_array().expect("the table has cases");
    assert_eq!(Some(cases.len() as u64), table["count"].as_u64(), "the table is complete");
    let mut failures = Vec::new();
    let mut falsified = 0;
    for case in cases {
        let id = case["id"].as_str().expect("a row has an id");
        let observed = rows::observe(case);
        let recorded = asserted(case);
        let expected = match DIFFERS.iter().find(|(row, _, _)| *row == id) {
            None => recorded,
            Some((_, weak_point, instead)) => {
                if difference(&recorded, &observed).is_none() {
                    failures.push(format!("{id}: holds as recorded, so it does not differ by {weak_point}"));
                }
                serde_json::from_str(instead).expect("the table of differences is JSON")
            }
        };
        if let Some(difference) = difference(&expected, &observed) {
            failures.push(format!("{id} ({}): {difference}", case["name"]));
        }
        let wrong = falsifications(&expected);
        if wrong.is_empty() {
            failures.push(format!("{id}: asserts nothing"));
        }
        falsified += wrong.len();
        let unnoticed = wrong.iter().filter(|wrong| difference(wrong, &observed).is_none());
        failures.extend(unnoticed.map(|wrong| format!("{id}: passes although falsified to {wrong}")));
    }
    println!("migration: {} rows", cases.len());
    println!("migration: {falsified} falsified values, {} rows differ on purpose", DIFFERS.len());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// What the row asserts of this room.
fn asserted(case: &Value) -> Value {
    let mut expected = case["expected"].as_object().expect("a row has an expectation").clone();
    for (group, field, _why) in DECIDED_ELSEWHERE {
        if case["group"] == group {
            expected.remove(field);
        }
    }
    // Of an error the table asserts only that it is one.
    expected.remove("message");
    if let Some(text) = expected.remove("back_error") {
        expected.insert("back_error".to_owned(), json!(text.is_string()));
    }
    Value::Object(expected)
}

/// The first expected field that was observed otherwise. An error counts whether the row speaks of one or not.
fn difference(expected: &Value, observed: &Value) -> Option<String> {
    let fields = expected.as_object().expect("an expectation is an object");
    let unexpected = |field: &&str| observed[field] == true && !fields.contains_key(*field);
    if let Some(field) = ["error", "back_error"].iter().find(|field| unexpected(field)) {
        return Some(format!("unexpected {field}, observed {observed}"));
    }
    fields.iter().find_map(|(field, value)| {
        let seen = observed.get(field).unwrap_or(&Value::Null);
        (plain(value) != plain(seen)).then(|| format!("{field}: expected {value}, observed {observed}"))
    })
}

/// The value without what counts as absent: null, empty maps and empty lists. Empty texts and false stay, because some
/// rows are about them.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| (key.clone(), plain(value)));
            let kept: Map<String, Value> = fields.filter(|(_, value)| !value.is_null()).collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Value::Array(list) if list.is_empty() => Value::Null,
        Value::Array(list) => list.iter().map(plain).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The expectation once per leaf, with that leaf falsified.
fn falsifications(expected: &Value) -> Vec<Value> {
    match expected {
        Value::Object(map) if !map.is_empty() => {
            let of_field = |(key, value): (&String, &Value)| {
                let put = |wrong| {
                    let mut map = map.clone();
                    map.insert(key.clone(), wrong);
                    Value::Object(map)
                };
                falsifications(value).into_iter().map(put).collect::<Vec<_>>()
            };
            map.iter().flat_map(of_field).collect()
        }
        Value::Array(list) if !list.is_empty() => {
            let of_item = |(index, value): (usize, &Value)| {
                let put = |wrong| {
                    let mut list = list.clone();
                    list[index] = wrong;
                    Value::Array(list)
                };
                falsifications(value).into_iter().map(put).collect::<Vec<_>>()
            };
            list.iter().enumerate().flat_map(of_item).collect()
        }
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(number) => vec![json!(number.as_i64().unwrap_or_default() + 1)],
        Value::String(text) => vec![json!(format!("{text}-falsified"))],
        Value::Null | Value::Object(_) | Value::Array(_) => vec![json!("falsified")],
    }
}
