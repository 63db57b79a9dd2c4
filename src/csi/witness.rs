//! Hears whether the driver itself ended a call.
//!
//! The client library makes up a status for everything that goes wrong on our side, and its code cannot be told from the
//! driver's. This layer sits under the library and keeps the `grpc-status` that really came over the wire, in headers or
//! trailers. It does not know what the status means ([`super::failure`]).
//!
//! It also takes `grpc-status-details-bin` away: the interface wants it empty, nobody reads it, and the library panics
//! when it is not base64.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tonic::body::Body;
use tower::Service;

/// What the driver said at the end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Testimony {
    /// `grpc-status`, 0 = OK.
    pub number: i32,
    /// `grpc-message`, decoded; invalid UTF-8 is replaced.
    pub message: String,
}

/// Handle of one call: travels in the request's extensions, filled by [`Witnessed`].
#[derive(Clone, Debug, Default)]
pub(super) struct Witness(Arc<Mutex<Option<Testimony>>>);

impl Witness {
    /// What was heard so far.
    pub fn heard(&self) -> Option<Testimony> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the status out of headers or trailers; the first one counts. A value that is no number is no status: such an
    /// answer is unreadable, not final.
    fn hear(&self, headers: &mut HeaderMap) {
        headers.remove("grpc-status-details-bin");
        let Some(number) = headers.get("grpc-status").and_then(|value| value.to_str().ok()?.parse().ok()) else {
            return;
        };
        let message = headers.get("grpc-message").map(|value| percent_decoded(value.as_bytes())).unwrap_or_default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Testimony { number, message });
    }
}

/// The layer.
#[derive(Clone, Debug)]
pub(super) struct Witnessed<S>(pub S);

impl<S> Service<Request<Body>> for Witnessed<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let witness = request.extensions().get::<Witness>().cloned().unwrap_or_default();
        let answer = self.0.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            witness.hear(response.headers_mut());
            Ok(response.map(|body| Body::new(Overheard { body, witness })))
        })
    }
}

/// A body whose trailers are heard.
struct Overheard {
    body: Body,
    witness: Witness,
}

impl HttpBody for Overheard {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        Pin::new(&mut self.body).poll_frame(context).map_ok(|mut frame| {
            if let Some(trailers) = frame.trailers_mut() {
                self.witness.hear(trailers);
            }
            frame
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Undoes the percent encoding of `grpc-message`; a broken escape stands for itself.
fn percent_decoded(encoded: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%')
            .then(|| after.split_at_checked(2))
            .flatten()
            .and_then(|(hex, tail)| Some((u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?, tail)));
        let (byte, tail) = escaped.unwrap_or((byte, after));
        decoded.push(byte);
        rest = tail;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::percent_decoded;
    use proptest::prelude::*;

    #[test]
    fn message_escapes_are_undone_and_broken_ones_kept() {
        assert_eq!(percent_decoded(b"100%25 of %C3%A4 %zz %4"), "100% of \u{e4} %zz %4");
    }

    #[test]
    fn message_with_invalid_text_is_repaired() {
        assert_eq!(percent_decoded(b"a%FFb"), "a\u{fffd}b");
    }

    proptest! {
        #[test]
        fn any_bytes_decode(bytes: Vec<u8>) {
            prop_assert!(percent_decoded(&bytes).chars().count() <= bytes.len());
        }
    }
}
