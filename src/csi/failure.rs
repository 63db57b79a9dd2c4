//! What a call that did not end with OK says, and who said it. Pure.
//!
//! Promises:
//! - `from_driver` is true only for a non-zero `grpc-status` that came over the wire, and not for a CANCELLED that our deadline caused;
//! - everything that our side makes up (transport, reset, decoding, size, deadline) is `from_driver = false`, with the
//!   nearest code for people: volumes may or may not exist behind it (provisioning.md 6, first paragraph);
//! - the text is valid, bounded, on one line and without the secrets of the call, whatever the driver sent.

use super::veil::Veil;
use super::witness::Testimony;
use crate::model::CallError;
use crate::model::request::Code;
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;
use tonic::Status;

/// Longest text of a failure in bytes: it goes into events and the log.
const LONGEST_MESSAGE: usize = 4096;

/// Explains a failed call.
///
/// `expired`: the deadline had passed when the call ended. A CANCELLED then is the deadline's doing, on our side or on the
/// driver's, who was told the same deadline: nobody decided anything. `veil` hides the secrets of the call.
pub(super) fn explain(
    status: &Status,
    heard: Option<Testimony>,
    expired: bool,
    timeout: Duration,
    veil: &Veil,
) -> CallError {
    let driver = heard.filter(|testimony| testimony.number != 0);
    let code = driver.as_ref().map_or(status.code(), |testimony| tonic::Code::from_i32(testimony.number));
    if expired && code == tonic::Code::Cancelled {
        return out_of_time(timeout);
    }
    match driver {
        // Hidden before it is cut: half a secret is one too.
        Some(testimony) => {
            let message = presentable(&veil.hide(&testimony.message));
            CallError { code: meaning(code), from_driver: true, message }
        }
        None => own(status, veil),
    }
}

/// Our own deadline passed without an answer.
pub(super) fn out_of_time(timeout: Duration) -> CallError {
    let message = format!("no answer from the CSI driver within {timeout:?}; it may still be working on the call");
    CallError { code: Code::DeadlineExceeded, from_driver: false, message }
}

/// The connection was lost, and nobody has introduced itself since.
pub(super) fn away(timeout: Duration) -> CallError {
    let message = format!(
        "the connection to the CSI driver was lost and it has not come back within {timeout:?}; nothing was asked of it"
    );
    CallError { code: Code::Unavailable, from_driver: false, message }
}

/// A failure that the client library made up.
fn own(status: &Status, veil: &Veil) -> CallError {
    let code = match status.source() {
        // Sources come from the transport only: socket, HTTP/2. The library scatters them over Unknown, Internal,
        // ResourceExhausted and others; for people they are all the same.
        Some(_) => Code::Unavailable,
        // The library calls an answer over the limit OUT_OF_RANGE; for drivers that code means the size of a volume.
        None if status.code() == tonic::Code::OutOfRange => Code::ResourceExhausted,
        None => meaning(status.code()),
    };
    let mut message = format!("no usable answer from the CSI driver: {}", status.message());
    let mut cause = status.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.ends_with(&text) {
            // Writing to a string cannot fail.
            let _ = write!(message, ": {text}");
        }
        cause = error.source();
    }
    CallError { code, from_driver: false, message: presentable(&veil.hide(&message)) }
}

/// The library's code in our words. OK is no failure: a call that failed with it was ended by nobody we know.
fn meaning(code: tonic::Code) -> Code {
    match code {
        tonic::Code::Ok | tonic::Code::Unknown => Code::Unknown,
        tonic::Code::Cancelled => Code::Canceled,
        tonic::Code::InvalidArgument => Code::InvalidArgument,
        tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::PermissionDenied => Code::PermissionDenied,
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::FailedPrecondition => Code::FailedPrecondition,
        tonic::Code::Aborted => Code::Aborted,
        tonic::Code::OutOfRange => Code::OutOfRange,
        tonic::Code::Unimplemented => Code::Unimplemented,
        tonic::Code::Internal => Code::Internal,
        tonic::Code::Unavailable => Code::Unavailable,
        tonic::Code::DataLoss => Code::DataLoss,
        tonic::Code::Unauthenticated => Code::Unauthenticated,
    }
}

/// One line without control characters, at most [`LONGEST_MESSAGE`] bytes.
fn presentable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(LONGEST_MESSAGE));
    for letter in text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }) {
        if shown.len() + letter.len_utf8() > LONGEST_MESSAGE {
            break;
        }
        shown.push(letter);
    }
    shown
}

#[cfg(test)]
mod tests;
