//! The server as a tower service.
//!
//! Promises: a request is carried out in a task of its own, so that it ends even when its caller goes away, as a
//! request on a real network does; a cut connection is an error of the call, never an answer.

use super::answer::{self, Form};
use super::objects::Asked;
use super::query::Query;
use super::reviews;
use super::route::{Document, Route, Target, route};
use crate::sandbox::apiserver::ApiServer;
use crate::sandbox::apiserver::discovery;
use crate::sandbox::apiserver::faults::{Call, Effect, Plan};
use crate::sandbox::apiserver::refusal::{Reason, Refusal};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, header, request::Parts};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Any error of a call.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A call that got no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// A fault cut the connection.
    #[error("connection cut by a fault rule {0}")]
    Cut(&'static str),
    /// The request's body did not arrive.
    #[error("the body of the request did not arrive")]
    Body(#[source] BoxError),
    /// The handler died or was stopped with the runtime.
    #[error("the request was not carried out to its end")]
    Handler(#[source] tokio::task::JoinError),
}
/// The body of an answer.
pub type Body = axum::body::Body;

/// Largest body taken, as on the real server.
const BODY_MAX: usize = 3 * 1024 * 1024;
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The server as a tower service; cheap to clone.
#[derive(Clone, Debug)]
pub struct ApiService(ApiServer);

impl ApiServer {
    /// A service for `kube::Client::new` and the like, without any socket.
    pub fn service(&self) -> ApiService {
        ApiService(self.clone())
    }

    /// The server as an axum router. A connection cannot be cut before the answer here: instead the answer's body
    /// breaks. [`super::serve::serve`] can.
    pub fn router(&self) -> axum::Router {
        let service = self.service();
        axum::Router::new().fallback(move |request: Request<Body>| {
            let service = service.clone();
            async move { service.answer(request).await.unwrap_or_else(broken) }
        })
    }
}

fn broken(error: NoAnswer) -> Response<Body> {
    Response::new(Body::from_stream(futures::stream::once(async move { Err::<Bytes, NoAnswer>(error) })))
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = NoAnswer;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, NoAnswer>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { service.answer(request).await })
    }
}

impl ApiService {
    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Result<Response<Body>, NoAnswer>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, BODY_MAX).collect().await.map(http_body_util::Collected::to_bytes);
        let server = self.0.clone();
        let body = match body {
            Ok(body) => body,
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                let message = format!("limit is {BODY_MAX}");
                return Ok(answer::refusal(&Refusal::plain(Reason::RequestEntityTooLarge, message)));
            }
            Err(error) => return Err(NoAnswer::Body(error)),
        };
        tokio::spawn(async move { handle(&server, &parts, &body).await }).await.map_err(NoAnswer::Handler)?
    }
}

async fn handle(server: &ApiServer, parts: &Parts, body: &Bytes) -> Result<Response<Body>, NoAnswer> {
    match route(parts.uri.path()) {
        Route::Objects(target) => handle_objects(server, parts, &target, body).await,
        Route::Document(document) => Ok(describe(&document, text(&parts.headers, header::ACCEPT))),
        Route::Review(kind) => {
            Ok(answer::json(201, &reviews::answer(kind, &serde_json::from_slice(body).unwrap_or_default())))
        }
        Route::UnknownKind => {
            let message = "the server could not find the requested resource";
            Ok(answer::refusal(&Refusal::plain(Reason::NotFound, message)))
        }
        Route::Nowhere => Ok(answer::text(404, "404 page not found\n")),
    }
}

async fn handle_objects(
    server: &ApiServer,
    parts: &Parts,
    target: &Target,
    body: &Bytes,
) -> Result<Response<Body>, NoAnswer> {
    let query = match Query::of(&parts.uri) {
        Ok(query) => query,
        Err(refusal) => return Ok(answer::refusal(&refusal)),
    };
    let Some(verb) = target.verb(&parts.method, query.flag("watch")) else {
        let message = "the server does not allow this method on the requested resource";
        return Ok(answer::refusal(&Refusal::plain(Reason::MethodNotAllowed, message)));
    };
    let call = call(parts, target, verb, body);
    let number = server.log().begin(call.clone());
    let plan = server.faults().plan(&call);
    tokio::time::sleep(plan.delay).await;
    let done = match early(&plan, &call, target) {
        Some(replaced) => replaced,
        None => late(&plan, carry_out(server, parts, (target, &call, &query), body, plan.stale_by)),
    };
    tokio::time::sleep(plan.answer_late).await;
    let answer = done?;
    server.log().answered(number, answer.status().as_u16());
    Ok(answer)
}

fn carry_out(
    server: &ApiServer,
    parts: &Parts,
    (target, call, query): (&Target, &Call, &Query),
    body: &Bytes,
    stale_by: u64,
) -> Response<Body> {
    let Some(form) = Form::accepted(text(&parts.headers, header::ACCEPT), query.text("includeObject")) else {
        let message = "only the following media types are accepted: application/json";
        return answer::refusal(&Refusal::plain(Reason::NotAcceptable, message));
    };
    let content_type = text(&parts.headers, header::CONTENT_TYPE);
    let asked = Asked { server, target, call, query, form, content_type, body, stale_by };
    asked.carry_out().unwrap_or_else(|refusal| answer::refusal(&refusal))
}

fn call(parts: &Parts, target: &Target, verb: &str, body: &Bytes) -> Call {
    let in_body = || {
        let object: Value = serde_json::from_slice(body).unwrap_or_default();
        object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    Call {
        verb: verb.to_owned(),
        resource: target.resource.plural.to_owned(),
        subresource: target.subresource.clone(),
        namespace: target.namespace.clone(),
        name: if verb == "create" && target.name.is_empty() { in_body() } else { target.name.clone() },
        user_agent: text(&parts.headers, header::USER_AGENT).to_owned(),
    }
}

/// What a fault puts in place of the request.
fn early(plan: &Plan, call: &Call, target: &Target) -> Option<Result<Response<Body>, NoAnswer>> {
    match plan.early.as_ref()? {
        Effect::Cut => Some(Err(NoAnswer::Cut("before the request was carried out"))),
        Effect::Deny => {
            let group = target.resource.group;
            let why = format!(
                "User \"sandbox\" cannot {} resource \"{}\" in API group \"{group}\"",
                call.verb, target.resource.plural
            );
            Some(Ok(answer::refusal(&Refusal::forbidden(target.resource, &call.name, &why))))
        }
        Effect::Refuse { code, retry_after_secs } => Some(Ok(made_up(*code, *retry_after_secs))),
        _ => None,
    }
}

/// What a fault puts in place of the answer.
fn late(plan: &Plan, answer: Response<Body>) -> Result<Response<Body>, NoAnswer> {
    match &plan.late {
        Some(Effect::LoseAnswer) => Err(NoAnswer::Cut("before the answer")),
        Some(Effect::RefuseAfter { code }) => Ok(made_up(*code, None)),
        _ => Ok(answer),
    }
}

fn made_up(code: u16, retry_after_secs: Option<u32>) -> Response<Body> {
    let mut refusal = Refusal::plain(Reason::of_code(code), "refused by a fault rule");
    refusal.details.retry_after_secs = retry_after_secs;
    answer::refusal(&refusal)
}

fn describe(document: &Document, accept: &str) -> Response<Body> {
    let aggregated =
        accept.split(',').any(|choice| choice.contains("as=APIGroupDiscoveryList") && choice.contains("v=v2"));
    let found = match document {
        Document::Health => return answer::text(200, "ok"),
        Document::Core if aggregated => return answer::json_as(200, &discovery::aggregated(true), AGGREGATED),
        Document::Groups if aggregated => return answer::json_as(200, &discovery::aggregated(false), AGGREGATED),
        Document::Core => Some(discovery::core_versions()),
        Document::Groups => Some(discovery::group_list()),
        Document::Group(group) => discovery::one_group(group),
        Document::Kinds(group, version) => discovery::resource_list(group, version),
        Document::Version => Some(discovery::version()),
        Document::OpenApi => Some(discovery::openapi_index()),
        Document::OpenApiOf(group, version) => discovery::openapi_document(group, version),
    };
    found.map_or_else(|| answer::text(404, "404 page not found\n"), |value| answer::json(200, &value))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
