//! A client over a closure, for tests of this room: each request is handed over whole and answered by a pair of
//! status code and JSON.

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::future::Future;

/// What arrived.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Content type, or nothing.
    pub content_type: String,
    /// Body; `Null` without one.
    pub body: Value,
}

/// A client whose requests are answered by `handler`.
pub fn client<H, F>(handler: H) -> Client
where
    H: Fn(Arrived) -> F + Clone + Send + 'static,
    F: Future<Output = (u16, Value)> + Send,
{
    let service = tower::service_fn(move |request: Request<Body>| {
        let handler = handler.clone();
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let content_type = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
            let (status, answer) = handler(Arrived {
                method: parts.method,
                path: parts.uri.to_string(),
                content_type: content_type.unwrap_or_default().to_owned(),
                body: serde_json::from_slice(&bytes).unwrap_or_default(),
            })
            .await;
            let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
            Ok::<_, tower::BoxError>(response)
        }
    });
    Client::new(service, "default")
}
