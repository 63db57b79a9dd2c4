//! Reads and writes single API objects as JSON.
//!
//! Promises:
//! - an object that is changed is read and written whole, as a [`Value`], so that fields unknown to us survive;
//! - one request per call, no retries (a repeated creation or a lease renewal behind a back-off would do harm);
//! - no empty or path-like name ever reaches the server: deleting "" would delete the whole collection;
//! - nothing of an answer's content is logged or quoted in an error.
//!
//! The deadline of each call is the client's ([`super::limiter`]), unless the caller sets a shorter one. Not here: typed access, watches ([`super::watch`]).

use super::error::{ApiError, ApiErrorKind, DeadlinePassed, Verb};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::timeout;

/// Largest answer that is read, in bytes: far above a page of lists and the 1.5 MiB of the largest object.
pub(super) const ANSWER_LIMIT: usize = 64 << 20;
/// Largest negative answer that is read, in bytes.
const REFUSAL_LIMIT: usize = 64 << 10;
/// Objects per page of a list.
const PAGE: &str = "250";

/// Access to single objects through one client.
#[derive(Clone)]
pub struct Objects {
    client: Client,
    /// Shorter than the client's own, if set.
    deadline: Option<Duration>,
}

/// Where an object or a collection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// `/api/v1` or `/apis/<group>/<version>`.
    root: String,
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<&'static str>,
}

/// The patch formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// RFC 6902: a list of operations; a `test` operation makes it conditional.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes strategic merge; built-in types only.
    Strategic,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMeta,
    items: Option<Vec<T>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PageMeta {
    r#continue: Option<String>,
}

// === impl Path ===

impl Path {
    /// A resource of the core group, by its plural: `persistentvolumes`.
    pub fn core(resource: &str) -> Self {
        Self::at("/api/v1".to_owned(), resource)
    }

    /// A resource of a named group.
    pub fn group(group: &str, version: &str, resource: &str) -> Self {
        Self::at(format!("/apis/{group}/{version}"), resource)
    }

    /// Within this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// The object of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// A part of the object, such as `status`.
    #[must_use]
    pub fn subresource(mut self, subresource: &'static str) -> Self {
        self.subresource = Some(subresource);
        self
    }

    fn at(root: String, resource: &str) -> Self {
        Self { root, resource: resource.to_owned(), namespace: None, name: None, subresource: None }
    }

    /// URL path of the collection.
    pub(super) fn collection(&self) -> Result<String, ApiError> {
        let mut url = self.root.clone();
        if let Some(namespace) = &self.namespace {
            url.push_str("/namespaces/");
            push_segment(&mut url, namespace, "namespace", &self.resource)?;
        }
        url.push('/');
        url.push_str(&self.resource);
        Ok(url)
    }

    /// URL path of the object.
    fn object(&self) -> Result<String, ApiError> {
        let mut url = self.collection()?;
        url.push('/');
        push_segment(&mut url, self.name.as_deref().unwrap_or_default(), "name", &self.resource)?;
        if let Some(subresource) = self.subresource {
            let _ = write!(url, "/{subresource}");
        }
        Ok(url)
    }
}

/// Appends one percent-encoded path segment.
fn push_segment(url: &mut String, segment: &str, what: &str, resource: &str) -> Result<(), ApiError> {
    if matches!(segment, "" | "." | "..") || segment.contains('/') {
        let text = format!("{segment:?} is no {what} of an object in {resource}");
        return Err(ApiError::new(ApiErrorKind::BadRequest, text));
    }
    push_encoded(url, segment);
    Ok(())
}

/// Appends text with everything but the unreserved characters percent-encoded (RFC 3986, 2.3).
fn push_encoded(url: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            _ => {
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
}

/// Appends the parameters that have a value.
pub(super) fn with_query<'q>(path: &str, query: impl Iterator<Item = (&'q str, &'q str)>) -> String {
    let mut url = path.to_owned();
    for (index, (key, value)) in query.filter(|(_, value)| !value.is_empty()).enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        url.push_str(key);
        url.push('=');
        push_encoded(&mut url, value);
    }
    url
}

// === impl Patch ===

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

// === impl Objects ===

impl Objects {
    /// Access through this client, with its limit and deadline.
    pub fn new(client: Client) -> Self {
        Self { client, deadline: None }
    }

    /// The same, with this time for each call, waiting for the limiter included.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Reads one object: as [`Value`] to change and write it, or as a slim type to look at it.
    pub async fn get<T: DeserializeOwned>(&self, path: &Path) -> Result<T, ApiError> {
        parse(&self.call(Method::GET, path.object()?, "", None).await?)
    }

    /// Reads which kinds the API group and version of `path` have.
    pub async fn kinds<T: DeserializeOwned>(&self, path: &Path) -> Result<T, ApiError> {
        parse(&self.call(Method::GET, path.root.clone(), "", None).await?)
    }

    /// Reads all objects of a collection, page by page. `query` adds parameters such as `labelSelector`.
    ///
    /// [`ApiErrorKind::Gone`] when the list took so long that its pages no longer fit together.
    pub async fn list<T: DeserializeOwned>(&self, path: &Path, query: &[(&str, &str)]) -> Result<Vec<T>, ApiError> {
        let collection = path.collection()?;
        let mut items = Vec::new();
        let mut token = None::<String>;
        loop {
            let paging = [("limit", PAGE), ("continue", token.as_deref().unwrap_or_default())];
            let url = with_query(&collection, query.iter().chain(&paging).copied());
            let page: Page<T> = parse(&self.call(Method::GET, url, "", None).await?)?;
            items.extend(page.items.into_iter().flatten());
            token = page.metadata.r#continue.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(items);
            }
        }
    }

    /// Creates an object in a collection.
    pub async fn create(&self, path: &Path, object: &Value) -> Result<Value, ApiError> {
        parse(&self.call(Method::POST, path.collection()?, "application/json", Some(object)).await?)
    }

    /// Writes a whole object; the server compares the resource version inside, if there is one.
    pub async fn replace(&self, path: &Path, object: &Value) -> Result<Value, ApiError> {
        parse(&self.call(Method::PUT, path.object()?, "application/json", Some(object)).await?)
    }

    /// Changes parts of an object.
    pub async fn patch(&self, path: &Path, format: Patch, change: &Value) -> Result<Value, ApiError> {
        parse(&self.call(Method::PATCH, path.object()?, format.content_type(), Some(change)).await?)
    }

    /// Deletes an object; with `uid` only that very one, else [`ApiErrorKind::Conflict`].
    pub async fn delete(&self, path: &Path, uid: Option<&str>) -> Result<(), ApiError> {
        let options =
            uid.map(|uid| json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}));
        self.call(Method::DELETE, path.object()?, "application/json", options.as_ref()).await.map(drop)
    }

    async fn call(&self, method: Method, url: String, kind: &str, body: Option<&Value>) -> Result<Vec<u8>, ApiError> {
        let verb = if method == Method::POST { Verb::Create } else { Verb::Other };
        let mut request = Request::builder().method(method).uri(url).header(header::ACCEPT, "application/json");
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let call = async {
            let answer = open(&self.client, request.body(Body::from(body)), verb).await?;
            read_to_end(answer.into_body(), ANSWER_LIMIT).await
        };
        match self.deadline {
            None => call.await,
            Some(deadline) => timeout(deadline, call)
                .await
                .unwrap_or_else(|_| Err(ApiError::new(ApiErrorKind::Deadline, DeadlinePassed(deadline).to_string()))),
        }
    }
}

/// Sends a request and returns a positive answer, its body unread.
pub(super) async fn open(
    client: &Client,
    request: http::Result<Request<Body>>,
    verb: Verb,
) -> Result<Response<Body>, ApiError> {
    let request = request.map_err(|error| ApiError::new(ApiErrorKind::BadRequest, error.to_string()))?;
    let answer = client.send(request).await.map_err(|error| ApiError::from_transport(&error))?;
    let code = answer.status();
    if code.is_success() {
        return Ok(answer);
    }
    let retry_after = retry_after(answer.headers());
    // A refusal whose text cannot be read is still a refusal.
    let text = read_to_end(answer.into_body(), REFUSAL_LIMIT).await.unwrap_or_default();
    Err(ApiError::from_answer(code.as_u16(), &text, retry_after, verb))
}

/// Reads a whole body, without a second copy.
pub(super) async fn read_to_end(mut body: Body, limit: usize) -> Result<Vec<u8>, ApiError> {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::from_transport(&error))?;
        if let Some(data) = frame.data_ref() {
            if text.len() + data.len() > limit {
                let message = format!("the answer is longer than {limit} bytes");
                return Err(ApiError::new(ApiErrorKind::Unreadable, message));
            }
            text.extend_from_slice(data);
        }
    }
    Ok(text)
}

/// Seconds of a `Retry-After` header; dates are not used by API servers and count as absent.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

pub(super) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(text).map_err(|error| ApiError::unreadable(&error))
}

#[cfg(test)]
mod tests;
