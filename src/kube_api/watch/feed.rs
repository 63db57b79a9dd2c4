//! The events of one open stream.

use super::WatchSettings;
use crate::kube_api::error::{ApiError, ApiErrorKind, StatusBody, Verb};
use crate::kube_api::objects::{open, with_query};
use bytes::{Buf, BytesMut};
use http::{Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// A server that does not even begin to answer within this time is not going to.
const OPEN_DEADLINE: Duration = Duration::from_secs(30);
/// Longest event, in bytes: ten times the largest object that etcd takes.
const EVENT_LIMIT: usize = 16 << 20;
/// A buffer that grew beyond this for one large object is given back.
const KEPT_BUFFER: usize = 64 << 10;
/// Annotation of the bookmark at the end of a streamed list.
const LIST_END: &str = "k8s.io/initial-events-end";

/// An open stream.
pub(super) struct Feed {
    body: Body,
    buffer: BytesMut,
    /// So much of the buffer is known to hold no end of line.
    scanned: usize,
}

/// One event.
#[derive(Deserialize)]
#[serde(tag = "type", content = "object", rename_all = "UPPERCASE")]
pub(super) enum Event<K> {
    Added(K),
    Modified(K),
    Deleted(K),
    Bookmark(Mark),
    Error(StatusBody),
    /// An event that cannot be read; its resource version.
    #[serde(skip)]
    PassedOver(String),
}

/// The part of a bookmark that matters.
#[derive(Deserialize)]
pub(super) struct Mark {
    metadata: MarkMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MarkMeta {
    resource_version: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Name and version of an object of any type.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Name {
    pub(super) metadata: NameMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NameMeta {
    namespace: Option<String>,
    name: Option<String>,
    resource_version: Option<String>,
}

#[derive(Deserialize)]
struct Peek {
    object: Name,
}

// === impl Mark ===

impl Mark {
    pub(super) fn version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// Whether it stands at the end of a streamed list.
    pub(super) fn ends_list(&self) -> bool {
        self.metadata.annotations.as_ref().and_then(|all| all.get(LIST_END)).is_some_and(|value| value == "true")
    }
}

impl StatusBody {
    /// The error that an `ERROR` event carries.
    pub(super) fn into_error(self) -> ApiError {
        ApiError::from_status(&self, 500, None, Verb::Other)
    }
}

// === impl Feed ===

impl Feed {
    /// Opens a stream of `time`: from `version` on, or with a list first.
    pub(super) async fn open(
        client: &Client,
        url: &str,
        settings: &WatchSettings,
        version: Option<&str>,
        time: Duration,
    ) -> Result<Self, ApiError> {
        let seconds = time.as_secs().to_string();
        // No version: the list shows the newest state, as of now.
        let (list, not_older) = if version.is_none() { ("true", "NotOlderThan") } else { ("", "") };
        let query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("sendInitialEvents", list),
            ("resourceVersionMatch", not_older),
            ("resourceVersion", version.unwrap_or_default()),
            ("timeoutSeconds", seconds.as_str()),
            ("labelSelector", settings.labels.as_str()),
        ];
        let request = Request::get(with_query(url, query.into_iter()))
            .header(header::ACCEPT, "application/json")
            .header(header::ACCEPT_ENCODING, "identity");
        let answer = timeout(OPEN_DEADLINE, open(client, request.body(Body::empty()), Verb::Other)).await;
        let answer = answer
            .map_err(|_| ApiError::new(ApiErrorKind::Deadline, format!("no answer within {OPEN_DEADLINE:?}")))??;
        Ok(Self { body: answer.into_body(), buffer: BytesMut::new(), scanned: 0 })
    }

    /// The next event; `None` when the stream has ended, whole or within an event. Dropping the future loses nothing.
    pub(super) async fn next<K: DeserializeOwned>(&mut self, name: &str) -> Result<Option<Event<K>>, ApiError> {
        loop {
            let unscanned = self.buffer.get(self.scanned..).unwrap_or_default();
            if let Some(length) = unscanned.iter().position(|byte| *byte == b'\n').map(|at| self.scanned + at) {
                let line = self.buffer.get(..length).unwrap_or_default();
                let event = if line.trim_ascii().is_empty() { None } else { Some(read(name, line)) };
                self.consume(length + 1);
                match event {
                    Some(event) => return event.map(Some),
                    None => continue,
                }
            }
            self.scanned = self.buffer.len();
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| ApiError::from_transport(&error))?;
            if let Some(data) = frame.data_ref() {
                self.buffer.extend_from_slice(data);
            }
            if self.buffer.len() > EVENT_LIMIT {
                let message = format!("an event is longer than {EVENT_LIMIT} bytes");
                return Err(ApiError::new(ApiErrorKind::Unreadable, message));
            }
        }
    }

    fn consume(&mut self, length: usize) {
        self.buffer.advance(length.min(self.buffer.len()));
        self.scanned = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BUFFER {
            self.buffer = BytesMut::new();
        }
    }
}

/// Reads one line of the stream.
fn read<K: DeserializeOwned>(name: &str, line: &[u8]) -> Result<Event<K>, ApiError> {
    let error = match serde_json::from_slice(line) {
        Ok(event) => return Ok(event),
        Err(error) => error,
    };
    if let Ok(Peek { object }) = serde_json::from_slice(line) {
        tell_unreadable(name, &object.metadata);
        return Ok(Event::PassedOver(object.metadata.resource_version.unwrap_or_default()));
    }
    // Some servers and proxies send a bare `Status` instead of an `ERROR` event.
    match serde_json::from_slice::<StatusBody>(line) {
        Ok(status) if status.is_status() => Err(status.into_error()),
        Ok(_) | Err(_) => Err(ApiError::unreadable(&error)),
    }
}

/// Says that an object was left out, without its content.
pub(super) fn tell_unreadable(resource: &str, object: &NameMeta) {
    let namespace = object.namespace.as_deref().unwrap_or_default();
    let name = object.name.as_deref().unwrap_or_default();
    tracing::warn!(target: "watch", resource, namespace, name, "an object has a field of an unexpected type and is left out");
}
