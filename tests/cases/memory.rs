//! What is remembered of a claim's places: the whole request that was sent, kept until it is resolved.

use super::table::read;
use csi_provisioner::claim::book::Book;
use csi_provisioner::claim::plan::{Attempt, VolumeFacts};
use csi_provisioner::claim::unresolved::Creation;
use csi_provisioner::model::{Accessibility, CreateRequest, Segments};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The row's operations, by all of its claims in turn.
pub fn operations(input: &Value) -> Value {
    let book = Book::new(Duration::from_mins(5));
    let (mut result, mut isolated) = (json!({ "error": null }), true);
    for operation in input["operations"].as_array().expect("operations") {
        for number in 0..input["parallel_claims"].as_u64().expect("a number") {
            let uid = operation["claim"].as_str().map_or_else(|| format!("claim-{number}"), str::to_owned);
            match operation["op"].as_str().expect("an operation") {
                "set-labels" | "set-keys" | "set-terms" => book.set(&uid, remembered(&uid, places(operation, &uid))),
                "get" => match places_of(&book, &uid) {
                    Some(places) => {
                        isolated &=
                            operation.get("claim").is_some() || places.iter().all(|place| place.contains_key(&uid));
                        result["entry"] = json!({ "terms": places });
                    }
                    None => result["error"] = json!({ "condition": "memory-entry-missing" }),
                },
                "remove" => book.clear(&uid),
                // What was handed over is the memory's own: there is nothing left that the caller could change.
                "caller-changes-its-value" => {}
                other => panic!("unknown operation {other}"),
            }
        }
    }
    result["isolated"] = json!(isolated);
    result["entries_after"] = json!(book.open_creations().iter().sum::<usize>());
    result
}

/// The terms of an operation. Where the row gives keys or labels only their owner matters.
fn places(operation: &Value, uid: &str) -> Vec<Segments> {
    match operation["value"].as_array() {
        Some(terms) if terms.iter().all(Value::is_object) => terms.iter().map(read).collect(),
        Some(_) | None => vec![Segments::from([(uid.to_owned(), operation["value"].to_string())])],
    }
}

fn remembered(uid: &str, places: Vec<Segments>) -> Creation {
    let accessibility = Some(Accessibility { requisite: Arc::new(places), first: 0 });
    let request = CreateRequest { accessibility, ..CreateRequest::default() };
    let facts = VolumeFacts { volume_name: format!("pvc-{uid}"), ..VolumeFacts::default() };
    Creation::Unresolved(Arc::new(Attempt { request, facts }))
}

fn places_of(book: &Book, uid: &str) -> Option<Vec<Segments>> {
    match book.creation(uid)? {
        Creation::Unresolved(attempt) => Some(attempt.request.accessibility.as_ref()?.requisite.to_vec()),
        Creation::Created(_) | Creation::Discarding(_) => None,
    }
}
