//! What a failed API call means.
//!
//! Promises:
//! - one total mapping: the API's own `Status.reason` decides first, then the HTTP status code, then the transport;
//! - a body that is not a `Status` (proxies answer in HTML) is an error like any other;
//! - texts are one line of bounded length, and no text quotes the content of an object, so that a Secret which cannot
//!   be parsed is not printed.
//!
//! Not here: whether to try again ([`super::queue`] and the rooms decide).

use serde::Deserialize;
use std::error::Error as StdError;
use std::fmt::Write as _;
use std::time::Duration;

/// Longest text kept of an API server's message, in bytes. Admission webhooks may answer with pages of text.
const MESSAGE_LIMIT: usize = 1024;

/// Longest wait that a server may ask for; a mistyped `Retry-After` must not stop work for ever.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// An API server that has just started answers 403 until it has read the roles. So many refusals of one and the same
/// thing, each after a back-off, count as that; the next one means that the right is missing.
pub const PASSING_REFUSALS: u32 = 4;

/// A failed API call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What it means.
    pub kind: ApiErrorKind,
    /// The API's own text or the chain of transport errors, in one line of bounded length.
    pub message: String,
}

/// The kinds of failure that some rule tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// The object, or its kind, is not there.
    NotFound,
    /// Creation met an object of that name.
    AlreadyExists,
    /// The object changed since it was read, or a precondition did not hold.
    Conflict,
    /// The resource version or continue token is too old.
    Gone,
    /// The object breaks a validation rule.
    Invalid,
    /// A right is missing, or admission said no.
    Forbidden,
    /// The credentials were not accepted.
    Unauthorized,
    /// The request makes no sense to the server.
    BadRequest,
    /// The server asks to come back later: 429, or 503 with a time to wait.
    TooManyRequests {
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
    },
    /// Any 5xx code.
    Server(u16),
    /// No complete answer within the deadline. A write may have happened.
    Deadline,
    /// No answer: not connected, cut, TLS. A write may have happened.
    Transport,
    /// The answer was positive but could not be read.
    Unreadable,
    /// Any other code.
    Other(u16),
}

/// The verb of a request: 409 without a reason means different things for different verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// POST.
    Create,
    /// Everything else.
    Other,
}

/// The deadline of one call passed; made by [`super::limiter`], found here in an error chain.
#[derive(Debug, thiserror::Error)]
#[error("no complete answer within {0:?}")]
pub(super) struct DeadlinePassed(pub(super) Duration);

/// The part of a `Status` that matters.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct StatusBody {
    kind: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    /// HTTP code; only needed for errors inside a watch stream.
    code: Option<u16>,
    details: Option<StatusDetails>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct StatusDetails {
    retry_after_seconds: Option<u64>,
}

/// `Status.reason`, as far as the API machinery defines it.
#[derive(Clone, Copy)]
enum Reason {
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    Forbidden,
    Unauthorized,
    BadRequest,
    TooManyRequests,
    /// Absent, `Unknown`, or one whose HTTP code says as much (`InternalError`, `Timeout`, `MethodNotAllowed`, ...).
    ByCode,
}

// === impl ApiErrorKind ===

impl ApiErrorKind {
    /// Whether repeating the same write cannot help: the server understood it and will never take it.
    pub fn is_final_refusal(&self) -> bool {
        match self {
            Self::Invalid | Self::BadRequest => true,
            Self::Other(code) => matches!(code, 405 | 406 | 413 | 415),
            Self::NotFound
            | Self::AlreadyExists
            | Self::Conflict
            | Self::Gone
            | Self::Forbidden
            | Self::Unauthorized
            | Self::TooManyRequests { .. }
            | Self::Server(_)
            | Self::Deadline
            | Self::Transport
            | Self::Unreadable => false,
        }
    }

    /// How long the server asked to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyRequests { retry_after } => *retry_after,
            Self::NotFound
            | Self::AlreadyExists
            | Self::Conflict
            | Self::Gone
            | Self::Invalid
            | Self::Forbidden
            | Self::Unauthorized
            | Self::BadRequest
            | Self::Server(_)
            | Self::Deadline
            | Self::Transport
            | Self::Unreadable
            | Self::Other(_) => None,
        }
    }

    /// At least how long to leave the server alone with this, if it asked for that: the wait it named or none.
    /// Whoever repeats the call waits that long or its own back-off, whichever is longer.
    pub fn busy(&self) -> Option<Duration> {
        matches!(self, Self::TooManyRequests { .. }).then(|| self.retry_after().unwrap_or_default().min(LONGEST_WAIT))
    }

    fn of(reason: Reason, code: u16, retry_after: Option<Duration>, verb: Verb) -> Self {
        match reason {
            Reason::NotFound => Self::NotFound,
            Reason::AlreadyExists => Self::AlreadyExists,
            Reason::Conflict => Self::Conflict,
            Reason::Gone => Self::Gone,
            Reason::Invalid => Self::Invalid,
            Reason::Forbidden => Self::Forbidden,
            Reason::Unauthorized => Self::Unauthorized,
            Reason::BadRequest => Self::BadRequest,
            Reason::TooManyRequests => Self::TooManyRequests { retry_after },
            Reason::ByCode => Self::of_code(code, retry_after, verb),
        }
    }

    fn of_code(code: u16, retry_after: Option<Duration>, verb: Verb) -> Self {
        match code {
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            // As client-go reads a 409 without a reason.
            409 if verb == Verb::Create => Self::AlreadyExists,
            409 => Self::Conflict,
            410 => Self::Gone,
            422 => Self::Invalid,
            429 => Self::TooManyRequests { retry_after },
            // An API server that starts or stops says when to come back; the request was not carried out.
            503 if retry_after.is_some() => Self::TooManyRequests { retry_after },
            500..=599 => Self::Server(code),
            0..=399 | 402 | 405..=408 | 411..=421 | 423..=428 | 430..=499 | 600..=u16::MAX => Self::Other(code),
        }
    }
}

// === impl ApiError ===

impl ApiError {
    /// An error of our own making, such as a name that no object can have.
    pub(super) fn new(kind: ApiErrorKind, message: impl AsRef<str>) -> Self {
        Self { kind, message: one_line(message.as_ref()) }
    }

    /// Reads a negative answer: HTTP code, body and the `Retry-After` header.
    pub(super) fn from_answer(code: u16, body: &[u8], retry_after: Option<Duration>, verb: Verb) -> Self {
        match serde_json::from_slice::<StatusBody>(body) {
            Ok(status) if status.is_status() => Self::from_status(&status, code, retry_after, verb),
            Ok(_) | Err(_) => {
                let text = one_line(&String::from_utf8_lossy(body));
                let kind = ApiErrorKind::of(Reason::ByCode, code, retry_after, verb);
                let message = if text.is_empty() { format!("HTTP {code}") } else { format!("HTTP {code}: {text}") };
                Self::new(kind, message)
            }
        }
    }

    /// Reads a `Status` object; `code` is used when the object names none.
    pub(super) fn from_status(status: &StatusBody, code: u16, header: Option<Duration>, verb: Verb) -> Self {
        let code = status.code.filter(|code| *code != 0).unwrap_or(code);
        let details = status.details.as_ref().and_then(|details| details.retry_after_seconds);
        let retry_after = header.or(details.filter(|seconds| *seconds > 0).map(Duration::from_secs));
        let reason = status.reason.as_deref().unwrap_or_default();
        let kind = ApiErrorKind::of(Reason::named(reason), code, retry_after, verb);
        match status.message.as_deref() {
            Some(message) if !message.is_empty() => Self::new(kind, message),
            Some(_) | None => Self::new(kind, format!("HTTP {code} {reason}").trim_end()),
        }
    }

    /// A call without an answer: tells our own deadline from everything else.
    pub(super) fn from_transport(error: &(dyn StdError + 'static)) -> Self {
        let mut message = String::new();
        let mut last = String::new();
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(DeadlinePassed(limit)) = error.downcast_ref() {
                return Self::new(ApiErrorKind::Deadline, format!("no complete answer within {limit:?}"));
            }
            let text = error.to_string();
            // Wrappers often repeat the text of what they wrap.
            if !last.contains(&text) {
                let separator = if message.is_empty() { "" } else { ": " };
                let _ = write!(message, "{separator}{text}");
                last = text;
            }
            cause = error.source();
        }
        Self::new(ApiErrorKind::Transport, message)
    }

    /// A positive answer that is not the JSON we expect. Only the place is told: the parser's own text quotes values.
    pub(super) fn unreadable(error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            serde_json::error::Category::Io | serde_json::error::Category::Eof => "ends too early",
            serde_json::error::Category::Syntax => "is not JSON",
            serde_json::error::Category::Data => "has a field of an unexpected type",
        };
        let (line, column) = (error.line(), error.column());
        Self::new(ApiErrorKind::Unreadable, format!("the answer {what} (line {line}, column {column})"))
    }
}

impl StatusBody {
    /// Whether this is a `Status` at all: every JSON object can be read as one.
    pub(super) fn is_status(&self) -> bool {
        self.kind.as_deref() == Some("Status")
    }
}

impl Reason {
    fn named(reason: &str) -> Self {
        match reason {
            "NotFound" => Self::NotFound,
            "AlreadyExists" => Self::AlreadyExists,
            "Conflict" => Self::Conflict,
            "Gone" | "Expired" => Self::Gone,
            "Invalid" => Self::Invalid,
            "Forbidden" => Self::Forbidden,
            "Unauthorized" => Self::Unauthorized,
            "BadRequest" => Self::BadRequest,
            "TooManyRequests" => Self::TooManyRequests,
            _ => Self::ByCode,
        }
    }
}

/// One line of at most [`MESSAGE_LIMIT`] bytes, cut at a character.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(MESSAGE_LIMIT));
    for word in text.split_whitespace() {
        let gap = usize::from(!line.is_empty());
        let room = MESSAGE_LIMIT.saturating_sub(line.len() + gap);
        if word.len() > room {
            let cut = word.floor_char_boundary(room);
            line.push_str(if gap == 1 { " " } else { "" });
            line.push_str(word.get(..cut).unwrap_or_default());
            line.push('…');
            break;
        }
        line.push_str(if gap == 1 { " " } else { "" });
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, body: &str) -> ApiError {
        ApiError::from_answer(code, body.as_bytes(), None, Verb::Other)
    }

    #[test]
    fn reason_wins_over_code() {
        let body = r#"{"kind":"Status","code":409,"reason":"AlreadyExists","message":"pv exists"}"#;
        let error = answer(409, body);
        assert_eq!((error.kind, error.message.as_str()), (ApiErrorKind::AlreadyExists, "pv exists"));
    }

    #[test]
    fn conflict_without_reason_depends_on_the_verb() {
        let create = ApiError::from_answer(409, b"", None, Verb::Create);
        assert_eq!((create.kind, answer(409, "").kind), (ApiErrorKind::AlreadyExists, ApiErrorKind::Conflict));
    }

    #[test]
    fn expired_continue_token_is_gone() {
        assert_eq!(answer(410, r#"{"kind":"Status","reason":"Expired"}"#).kind, ApiErrorKind::Gone);
    }

    #[test]
    fn html_of_a_proxy_is_an_error_of_its_code() {
        let error = answer(502, "<html>\n  <b>bad gateway</b></html>");
        assert_eq!(error.kind, ApiErrorKind::Server(502));
        assert_eq!(error.message, "HTTP 502: <html> <b>bad gateway</b></html>");
    }

    #[test]
    fn json_that_is_no_status_is_an_error_of_its_code() {
        assert_eq!(answer(403, r#"{"error":"no"}"#).kind, ApiErrorKind::Forbidden);
    }

    #[test]
    fn busy_server_says_when_to_come_back() {
        let wait = Some(Duration::from_secs(7));
        let by_header = ApiError::from_answer(429, b"", wait, Verb::Other).kind;
        let body = r#"{"kind":"Status","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":7}}"#;
        assert_eq!(by_header.retry_after(), wait);
        assert_eq!(answer(429, body).kind.retry_after(), wait);
    }

    #[test]
    fn unavailable_server_with_a_time_to_wait_is_a_busy_one() {
        let wait = Some(Duration::from_secs(2));
        assert_eq!(ApiError::from_answer(503, b"", wait, Verb::Other).kind.retry_after(), wait);
        assert_eq!(answer(503, "").kind, ApiErrorKind::Server(503));
    }

    #[test]
    fn only_refusals_that_repeat_are_final() {
        let codes = [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429, 500, 503];
        let is_final = codes.into_iter().filter(|code| answer(*code, "").kind.is_final_refusal()).collect::<Vec<_>>();
        assert_eq!(is_final, [400, 405, 413, 415, 422]);
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let error = answer(500, &"ä".repeat(5000));
        assert!(error.message.len() <= MESSAGE_LIMIT + "HTTP 500: …".len());
        assert!(error.message.ends_with('…'));
    }

    #[test]
    fn unreadable_answer_never_quotes_a_value() {
        let parsed = serde_json::from_str::<std::collections::BTreeMap<String, u8>>(r#"{"password":"aHVudGVyMg=="}"#);
        let error = ApiError::unreadable(&parsed.unwrap_err());
        assert_eq!(error.message, "the answer has a field of an unexpected type (line 1, column 26)");
    }

    #[test]
    fn own_deadline_is_found_inside_an_error_chain() {
        let inner: tower::BoxError = Box::new(DeadlinePassed(Duration::from_secs(30)));
        let error = ApiError::from_transport(&kube::Error::Service(inner));
        assert_eq!((error.kind, error.message.as_str()), (ApiErrorKind::Deadline, "no complete answer within 30s"));
    }

    #[test]
    fn transport_error_names_its_cause_once() {
        let inner: tower::BoxError = Box::new(std::io::Error::other("connection refused"));
        let error = ApiError::from_transport(&kube::Error::Service(inner));
        assert_eq!((error.kind, error.message.as_str()), (ApiErrorKind::Transport, "ServiceError: connection refused"));
    }
}
