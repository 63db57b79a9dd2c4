//! A driver for tests that lives in this process and answers by script, so that the clock can be paused.

use super::{CallObserver, Calls, Transport};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Request, Response};
use http_body_util::{BodyExt, Full};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tonic::body::Body;

/// One scripted answer.
pub enum Answer {
    Reply(Vec<u8>),
    Status(i32),
    Broken,
    Silence,
}

impl Answer {
    /// OK with this message.
    pub fn reply(message: &impl prost::Message) -> Self {
        Self::Reply(message.encode_to_vec())
    }
}

/// What the observer was told: driver, method, code, migrated.
pub type Told = (String, &'static str, String, Option<bool>);

#[derive(Default)]
pub struct Seen(Mutex<Vec<Told>>);

impl Seen {
    pub fn told(&self) -> Vec<Told> {
        self.0.lock().expect("lock").clone()
    }
}

impl CallObserver for Seen {
    fn call_ended(&self, driver: &str, method: &'static str, code: &str, migrated: Option<bool>, _seconds: f64) {
        self.0.lock().expect("lock").push((driver.to_owned(), method, code.to_owned(), migrated));
    }
}

/// Calls to a driver that gives these answers, then none.
pub fn driver(answers: impl IntoIterator<Item = Answer>) -> (Calls, Arc<Seen>) {
    let script: Arc<Mutex<VecDeque<_>>> = Arc::new(Mutex::new(answers.into_iter().collect()));
    let service = tower::service_fn(move |_: Request<Body>| {
        let answer = script.lock().expect("lock").pop_front().unwrap_or(Answer::Silence);
        async move {
            match answer {
                Answer::Reply(message) => Ok(reply(&message)),
                Answer::Status(code) => Ok(Response::builder()
                    .header("content-type", "application/grpc")
                    .header("grpc-status", code)
                    .body(Body::empty())
                    .expect("response")),
                Answer::Broken => Err(std::io::Error::other("no such socket")),
                Answer::Silence => std::future::pending().await,
            }
        }
    });
    let seen = Arc::new(Seen::default());
    let calls = Calls::new(Transport::new(service), Duration::from_secs(10), seen.clone());
    (calls, seen)
}

fn reply(message: &[u8]) -> Response<Body> {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).expect("small"));
    framed.put_slice(message);
    let trailers = HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), 0.into())]);
    let body = Full::<Bytes>::from(framed.freeze()).with_trailers(std::future::ready(Some(Ok(trailers))));
    Response::builder().header("content-type", "application/grpc").body(Body::new(body)).expect("response")
}
