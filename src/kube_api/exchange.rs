//! One JSON request and its answer: the smallest way to the API server, for the event sender and the Lease.
//!
//! Promises: every call has a deadline of its own, a refusal carries the status code, nothing is retried.
//! It knows no object kind; what a code means is decided by the caller.

use super::objects::retry_after;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::time::Duration;
use thiserror::Error;
use tokio::time::timeout;

/// Content type of a whole object.
pub const JSON: &str = "application/json";
/// Content type of a patch whose lists merge by key, which client-go uses for events.
pub const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";

/// The longest text taken over from an answer, in bytes: a proxy may answer with a whole web page.
const TEXT_BYTES: usize = 512;

/// Why a call gave no object.
#[derive(Debug, Error)]
pub enum Failure {
    /// The API server (or a proxy before it) answered with an error status.
    #[error("the API server answered {code}: {message}")]
    Status {
        /// HTTP status code.
        code: u16,
        /// The API's own text, bounded.
        message: String,
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
    },
    /// No complete answer within the time the caller gave.
    #[error("no answer from the API server within {0:?}")]
    Deadline(Duration),
    /// The request did not get through or the answer broke off.
    #[error("the API server could not be reached: {0}")]
    Transport(String),
    /// The answer was a success but no JSON.
    #[error("the API server's answer is not JSON: {0}")]
    Unreadable(String),
}

impl Failure {
    /// The HTTP status code, where there was one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            Self::Deadline(_) | Self::Transport(_) | Self::Unreadable(_) => None,
        }
    }

    /// How long the server asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Deadline(_) | Self::Transport(_) | Self::Unreadable(_) => None,
        }
    }

    /// Whether the object's namespace is going away, so that nothing new is taken into it.
    pub fn is_end_of_namespace(&self) -> bool {
        match self {
            Self::Status { code, message, .. } => *code == 403 && message.contains("is being terminated"),
            Self::Deadline(_) | Self::Transport(_) | Self::Unreadable(_) => false,
        }
    }
}

/// A request without its connection.
#[derive(Clone, Debug)]
pub struct Call {
    /// HTTP method.
    pub method: Method,
    /// Path and query, from `/api` or `/apis` on.
    pub path: String,
    /// Content type and body of a write.
    pub body: Option<(&'static str, Value)>,
}

/// Sends `call` and reads the whole answer within `deadline`.
pub async fn exchange(client: &Client, call: Call, deadline: Duration) -> Result<Value, Failure> {
    match timeout(deadline, send(client, call)).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::Deadline(deadline)),
    }
}

async fn send(client: &Client, call: Call) -> Result<Value, Failure> {
    let response = client.send(request(call)?).await.map_err(|error| Failure::Transport(told(&error)))?;
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let body = response.into_body().collect().await.map_err(|error| Failure::Transport(told(&error)))?.to_bytes();
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|error| Failure::Unreadable(error.to_string()));
    }
    Err(Failure::Status { code: status.as_u16(), message: refusal_text(&body), retry_after })
}

fn request(call: Call) -> Result<Request<Body>, Failure> {
    let builder = Request::builder().method(call.method).uri(call.path).header(header::ACCEPT, JSON);
    let built = match call.body {
        None => builder.body(Body::empty()),
        Some((kind, value)) => {
            builder.header(header::CONTENT_TYPE, kind).body(Body::from(value.to_string().into_bytes()))
        }
    };
    built.map_err(|error| Failure::Transport(format!("the request cannot be built: {error}")))
}

/// The `message` of a Status object, or the beginning of whatever came instead.
fn refusal_text(body: &[u8]) -> String {
    let status: Option<Value> = serde_json::from_slice(body).ok();
    let message = status.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str);
    match message {
        Some(message) => clipped(message, TEXT_BYTES),
        None => clipped(&String::from_utf8_lossy(body), TEXT_BYTES),
    }
}

/// An error with all its causes: kube's outer texts alone do not say what went wrong.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    clipped(&text, TEXT_BYTES)
}

/// `text`, at most `limit` bytes long: what is cut off ends on a character and is marked with `...`.
pub fn clipped(text: &str, limit: usize) -> String {
    const MARK: &str = "...";
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut short = String::with_capacity(end + MARK.len());
    short.push_str(text.get(..end).unwrap_or_default());
    short.push_str(MARK);
    short
}

#[cfg(test)]
mod tests {
    use super::clipped;

    #[test]
    fn text_within_the_limit_stays() {
        assert_eq!(clipped("abc", 3), "abc");
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(clipped("aaéééé", 7), "aaé...");
    }
}
