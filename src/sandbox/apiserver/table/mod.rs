//! Table answers, which kubectl prints as they come.
//!
//! Promises: the columns of the real server for every served kind, and ages counted by the server's own clock.

pub mod apps;
mod cells;
pub mod core;
pub mod snapshot;
pub mod storage;

use cells::Row;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One column: heading, JSON type and priority (1 is shown only in wide output).
type Head = (&'static str, &'static str, u8);

/// The columns of a kind, and how a row is filled.
pub struct Columns {
    heads: &'static [Head],
    cells: fn(&Row) -> Vec<Value>,
}

impl std::fmt::Debug for Columns {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.heads.iter().map(|head| head.0)).finish()
    }
}

/// Name and age, for kinds without columns of their own.
pub static PLAIN: Columns =
    Columns { heads: &[("Name", "string", 0), ("Age", "string", 0)], cells: |row| vec![row.name(), row.age()] };

/// How much of each object a row carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Only its metadata.
    Metadata,
    /// All of it.
    Object,
    /// Nothing.
    None,
}

/// Builds a table; watches send the columns only once.
pub fn table(
    columns: &Columns,
    objects: &[Arc<Value>],
    metadata: &Map<String, Value>,
    shape: (Include, bool),
    now: Timestamp,
) -> Value {
    let (include, with_heads) = shape;
    let row = |object: &Arc<Value>| {
        let cells = (columns.cells)(&Row { object, now });
        json!({"cells": cells, "object": carried(object, include)})
    };
    let heads: Vec<Value> = columns.heads.iter().map(head).collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": if with_heads { Value::from(heads) } else { Value::Null },
        "rows": objects.iter().map(row).collect::<Vec<Value>>(),
    })
}

fn head((name, kind, priority): &Head) -> Value {
    let format = if *name == "Name" { "name" } else { "" };
    json!({"name": name, "type": kind, "format": format, "description": "", "priority": priority})
}

fn carried(object: &Value, include: Include) -> Value {
    match include {
        Include::Metadata => partial(object),
        Include::Object => object.clone(),
        Include::None => Value::Null,
    }
}

/// The object cut down to its metadata.
pub fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}
