//! The rows of the table, with recommendations and deviations laid over what the reference does.

use super::deviations::{self, Deviation};
use serde_json::{Map, Value};

/// One row.
pub struct Row {
    pub id: String,
    pub group: String,
    pub name: String,
    pub input: Value,
    pub expected: Value,
}

const TABLE: &str = include_str!("cases-provisioning.json");

/// As they have to hold here.
pub fn rows() -> Vec<Row> {
    read_rows(deviations::DEVIATIONS)
}

/// As the table has them.
pub fn rows_as_recorded() -> Vec<Row> {
    read_rows(&[])
}

fn read_rows(deviations: &[Deviation]) -> Vec<Row> {
    let table: Value = serde_json::from_str(TABLE).expect("the table is JSON");
    table["cases"].as_array().expect("the table has cases").iter().map(|case| row(case, deviations)).collect()
}

fn row(case: &Value, deviations: &[Deviation]) -> Row {
    let text = |key: &str| case[key].as_str().expect("a text").to_owned();
    let mut expected = case["expected"].clone();
    if let Some(recommended) = case["recommended"].as_object() {
        let values = recommended.iter().filter(|(key, _)| *key != "note");
        lay_over(&mut expected, &Value::Object(values.map(|(key, value)| (key.clone(), value.clone())).collect()));
    }
    for deviation in deviations.iter().filter(|deviation| deviation.row == case["id"]) {
        let overlay = serde_json::from_str(deviation.expected).expect("a deviation is JSON");
        lay_over(&mut expected, &overlay);
    }
    Row { id: text("id"), group: text("group"), name: text("name"), input: case["input"].clone(), expected }
}

/// Objects merge field by field; everything else replaces.
pub fn lay_over(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                lay_over(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// A field of a row's input as a read type; absent reads as the default.
pub fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    let value = if value.is_null() { Value::Object(Map::new()) } else { value.clone() };
    serde_json::from_value(value).expect("the row has the shape of the API")
}

/// A list of objects as read types.
pub fn read_all<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<T> {
    value.as_array().into_iter().flatten().map(read).collect()
}

/// A list of texts; absent reads as empty.
pub fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}
