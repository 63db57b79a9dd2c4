//! The two wires of a cable: to the API server and to the driver. Both sides live in this process, and both carry a
//! request out even if its caller is gone.

use super::cable::{Cable, Side};
use super::calls::End;
use super::socket::{Socket, Twist};
use super::trace::digest;
use crate::csi::proto::v1;
use crate::sandbox::apiserver::{ApiService, Body};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use prost::Message;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::service::Routes;
use tower::{BoxError, Service};

type Answer<B> = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

/// To the API server.
#[derive(Clone)]
pub(super) struct ApiWire {
    pub(super) cable: Cable,
    pub(super) server: ApiService,
}

impl<B> Service<Request<B>> for ApiWire
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answer<Body>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().carry(request))
    }
}

impl ApiWire {
    async fn carry<B>(self, request: Request<B>) -> Result<Response<Body>, BoxError>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        let asked = format!("{} {} #{:016x}", parts.method, parts.uri, digest(&body));
        let (who, trace) = (self.cable.who(), self.cable.trace());
        let cut = self.cable.leaves().await;
        if cut == Some(Side::Before) {
            trace.note(who, format_args!("cut before {asked}"));
            return Err("connection refused".into());
        }
        trace.note(who, format_args!("-> {asked}"));
        let request = Request::from_parts(parts, Full::new(body));
        let answer = self.cable.counting(self.server.answer(request)).await;
        if cut == Some(Side::After) {
            trace.note(who, format_args!("cut after {asked}"));
            return Err("connection reset".into());
        }
        match answer {
            Ok(answer) => {
                trace.note(who, format_args!("<- {} {asked}", answer.status().as_u16()));
                Ok(answer)
            }
            Err(broken) => {
                trace.note(who, format_args!("<- broken {asked}"));
                Err(broken.into())
            }
        }
    }
}

/// To the driver.
#[derive(Clone)]
pub(super) struct DriverWire {
    pub(super) cable: Cable,
    pub(super) socket: Socket,
    pub(super) driver: Routes,
}

impl Service<Request<tonic::body::Body>> for DriverWire {
    type Response = Response<tonic::body::Body>;
    type Error = BoxError;
    type Future = Answer<tonic::body::Body>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.clone().carry(request))
    }
}

impl DriverWire {
    async fn carry(self, request: Request<tonic::body::Body>) -> Result<Response<tonic::body::Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let method = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        let (subject, mark) = (subject(&method, &body), digest(&body));
        let asked = format!("{method} {subject} #{mark:016x}");
        let (who, trace) = (self.cable.who().to_owned(), self.cable.trace().clone());
        let cut = self.cable.leaves().await;
        let cut = cut.or_else(|| self.socket.cuts(&method, &subject));
        if cut == Some(Side::Before) || !self.socket.dial() {
            self.socket.broke();
            trace.note(&who, format_args!("cut before {asked}"));
            return Err("connection refused".into());
        }
        trace.note(&who, format_args!("-> {asked}"));
        let running = self.cable.calls().sent(&who, &method, &subject, mark);
        let request = Request::from_parts(parts, tonic::body::Body::new(Full::new(body)));
        let answered = self.cable.counting(self.socket.connected(ask(self.driver.clone(), request))).await;
        let answer = match answered {
            Some(answer) if cut.is_none() => answer,
            Some(_) | None => {
                self.socket.broke();
                running.ended(End::Broken);
                trace.note(&who, format_args!("cut after {asked}"));
                return Err("connection reset".into());
            }
        };
        let (code, mut answer) = answer?;
        if let Some(twist) = self.socket.twist(&method, code) {
            trace.note(&who, format_args!("{twist:?} in the answer to {asked}"));
            answer = twisted(answer, twist).await?;
        }
        running.ended(End::Code(code));
        trace.note(&who, format_args!("<- {code} {asked}"));
        Ok(answer)
    }
}

/// The whole answer and its gRPC code.
async fn ask(
    mut driver: Routes,
    request: Request<tonic::body::Body>,
) -> Result<(i32, Response<tonic::body::Body>), BoxError> {
    let (parts, body) = driver.call(request).await?.into_parts();
    let body = body.collect().await?;
    let of = |headers: &http::HeaderMap| headers.get("grpc-status").and_then(|code| code.to_str().ok()?.parse().ok());
    let code = body.trailers().and_then(of).or_else(|| of(&parts.headers)).unwrap_or(-1);
    let trailers = body.trailers().cloned();
    let bytes = body.to_bytes();
    let body = Full::new(bytes).with_trailers(async move { trailers.map(Ok) });
    Ok((code, Response::from_parts(parts, tonic::body::Body::new(body))))
}

async fn twisted(answer: Response<tonic::body::Body>, twist: Twist) -> Result<Response<tonic::body::Body>, BoxError> {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().cloned();
    let bytes = body.to_bytes();
    let mut reply = v1::CreateVolumeResponse::decode(bytes.get(5..).unwrap_or_default())?;
    match (twist, reply.volume.as_mut()) {
        (Twist::Size(size), Some(volume)) => volume.capacity_bytes = size,
        (Twist::NoSource, Some(volume)) => volume.content_source = None,
        (Twist::NoVolume, _) => reply.volume = None,
        (Twist::Size(_) | Twist::NoSource, None) => {}
    }
    let message = reply.encode_to_vec();
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len())?.to_be_bytes());
    framed.extend(message);
    let body = Full::new(Bytes::from(framed)).with_trailers(async move { trailers.map(Ok) });
    Ok(Response::from_parts(parts, tonic::body::Body::new(body)))
}

/// What a call is about.
fn subject(method: &str, body: &Bytes) -> String {
    // A gRPC message follows a flag and its length.
    let message = body.get(5..).unwrap_or_default();
    let found = match method {
        "CreateVolume" => v1::CreateVolumeRequest::decode(message).map(|request| request.name),
        "DeleteVolume" => v1::DeleteVolumeRequest::decode(message).map(|request| request.volume_id),
        _ => Ok(String::new()),
    };
    found.unwrap_or_default()
}
