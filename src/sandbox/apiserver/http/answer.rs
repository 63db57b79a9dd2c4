//! Answers: status, JSON, tables, event streams.

use super::service::{Body, BoxError};
use crate::sandbox::apiserver::listing::{Page, list_metadata};
use crate::sandbox::apiserver::refusal::Refusal;
use crate::sandbox::apiserver::resources::Resource;
use crate::sandbox::apiserver::table::{Include, partial, table};
use crate::sandbox::apiserver::watching::{End, EventKind, Watch};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use k8s_openapi::jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

const JSON: &str = "application/json";

/// In which form objects are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Plain,
    /// As rows of a table.
    Table(Include),
    /// Only their metadata.
    Partial,
}

impl Form {
    /// The first form of an `Accept` header that the server has; `None` if there is none (406).
    pub fn accepted(accept: &str, include: &str) -> Option<Self> {
        if accept.is_empty() {
            return Some(Self::Plain);
        }
        let include = match include {
            "Object" => Include::Object,
            "None" => Include::None,
            _ => Include::Metadata,
        };
        accept.split(',').find_map(|choice| {
            let mut parts = choice.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let shape = parts.find_map(|part| part.strip_prefix("as="));
            match (media, shape) {
                (JSON, Some("Table")) => Some(Self::Table(include)),
                (JSON, Some("PartialObjectMetadata" | "PartialObjectMetadataList")) => Some(Self::Partial),
                (JSON | "*/*" | "application/*", None) => Some(Self::Plain),
                _ => None,
            }
        })
    }
}

/// A JSON answer.
pub fn json(code: u16, value: &impl Serialize) -> Response<Body> {
    json_as(code, value, JSON)
}

/// A JSON answer with a content type of its own.
pub fn json_as(code: u16, value: &impl Serialize, content_type: &'static str) -> Response<Body> {
    finish(code, content_type, full(Bytes::from(encoded(value))))
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    // Maps with text keys and plain values always encode.
    serde_json::to_vec(value).unwrap_or_default()
}

/// A plain text.
pub fn text(code: u16, text: &'static str) -> Response<Body> {
    finish(code, "text/plain; charset=utf-8", full(Bytes::from_static(text.as_bytes())))
}

/// A refusal.
pub fn refusal(refusal: &Refusal) -> Response<Body> {
    let mut answer = json(refusal.code(), &refusal.to_status());
    if let Some(seconds) = refusal.details.retry_after_secs {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// One object.
pub fn object(code: u16, resource: &Resource, object: Value, form: Form, now: Timestamp) -> Response<Body> {
    json(code, &*shaped(resource, &Arc::new(object), form, (true, now)))
}

/// A list as it goes out; written without copying its objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainList<'a> {
    kind: String,
    api_version: String,
    metadata: Map<String, Value>,
    items: Vec<Item<'a>>,
}

/// An object in a list; built-in kinds do not repeat their kind there.
struct Item<'a> {
    object: &'a Value,
    bare: bool,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.object.as_object().filter(|_| self.bare) {
            Some(fields) => {
                serializer.collect_map(fields.iter().filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion")))
            }
            None => self.object.serialize(serializer),
        }
    }
}

/// One line of a watch.
#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    object: &'a Value,
}

/// A list.
pub fn list(resource: &Resource, page: &Page, form: Form, now: Timestamp) -> Response<Body> {
    let metadata = list_metadata(page);
    let value = match form {
        Form::Table(include) => table(resource.columns, &page.items, &metadata, (include, true), now),
        Form::Plain => {
            let items = page.items.iter().map(|object| Item { object, bare: !resource.custom }).collect();
            let kind = format!("{}List", resource.kind);
            return json(200, &PlainList { kind, api_version: resource.api_version(), metadata, items });
        }
        Form::Partial => json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "items": page.items.iter().map(|item| partial(item)).collect::<Vec<Value>>(),
        }),
    };
    json(200, &value)
}

fn shaped<'a>(
    resource: &Resource,
    object: &'a Arc<Value>,
    form: Form,
    (heads, now): (bool, Timestamp),
) -> Cow<'a, Value> {
    let made = match form {
        Form::Plain => return Cow::Borrowed(&**object),
        Form::Partial => partial(object),
        Form::Table(include) => {
            let mut metadata = Map::new();
            if let Some(version) = object.pointer("/metadata/resourceVersion") {
                metadata.insert("resourceVersion".into(), version.clone());
            }
            table(resource.columns, std::slice::from_ref(object), &metadata, (include, heads), now)
        }
    };
    Cow::Owned(made)
}

/// A stream of events, one JSON document per line.
pub fn watch(
    resource: &'static Resource,
    opened: Watch,
    form: Form,
    now: impl Fn() -> Timestamp + Send + 'static,
) -> Response<Body> {
    let body = StreamBody::new(lines(resource, opened, form, now));
    let mut answer = finish(200, JSON, Body::new(body));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}

fn lines(
    resource: &'static Resource,
    opened: Watch,
    form: Form,
    now: impl Fn() -> Timestamp + Send + 'static,
) -> impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send {
    let first = true;
    futures::stream::unfold(Some((opened, first, now)), move |state| async move {
        let (mut watch, first, now) = state?;
        match watch.next().await {
            Ok(event) => {
                let object = match event.kind {
                    EventKind::Error => Cow::Borrowed(&*event.object),
                    EventKind::Bookmark if matches!(form, Form::Table(_)) => Cow::Owned(bookmark_table(&event.object)),
                    _ => shaped(resource, &event.object, form, (first, now())),
                };
                let mut line = encoded(&Line { r#type: event.kind.text(), object: &object });
                line.push(b'\n');
                Some((Ok(Frame::data(Bytes::from(line))), Some((watch, false, now))))
            }
            Err(End::Orderly) => None,
            Err(End::Cut) => Some((Err("connection cut by a fault rule".into()), None)),
        }
    })
    .fuse()
}

fn bookmark_table(bookmark: &Value) -> Value {
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": bookmark.pointer("/metadata/resourceVersion")},
        "columnDefinitions": null, "rows": [{"cells": [], "object": partial(bookmark)}],
    })
}

fn full(bytes: Bytes) -> Body {
    Body::new(Full::new(bytes).map_err(|never| match never {}))
}

fn finish(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_form_that_is_offered_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(Form::accepted(table, ""), Some(Form::Table(Include::Metadata)));
        assert_eq!(Form::accepted("application/vnd.kubernetes.protobuf,application/json", ""), Some(Form::Plain));
        let partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(Form::accepted(partial, ""), Some(Form::Partial));
        assert_eq!(Form::accepted("application/vnd.kubernetes.protobuf", ""), None);
    }
}
