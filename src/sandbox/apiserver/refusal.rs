//! What the server answers when it does not do what was asked: the `Status` object of the Kubernetes API.
//!
//! Promises: one reason per code as the real server pairs them, and the texts that clients are known to read
//! ("not found", "already exists", "the object has been modified"). Knows nothing of HTTP framing.

use super::resources::Resource;
use serde_json::{Map, Value, json};

/// Why a request was refused; each has one HTTP code, see [`Reason::code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// 400
    BadRequest,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 406
    NotAcceptable,
    /// 409, the name is taken
    AlreadyExists,
    /// 409, the object has changed or a precondition does not hold
    Conflict,
    /// 410, the asked-for revision is no longer held
    Expired,
    /// 413
    RequestEntityTooLarge,
    /// 415
    UnsupportedMediaType,
    /// 422, a field is wrong
    Invalid,
    /// 429
    TooManyRequests,
    /// 500
    InternalError,
    /// 503
    ServiceUnavailable,
    /// 504, among others for a revision that does not exist yet
    Timeout,
    /// Any other code; only faults make it.
    Other(u16),
}

impl Reason {
    /// The HTTP code of this reason.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
            Self::Other(code) => code,
        }
    }

    /// The reason that the real server gives with `code` when nothing more is known (409 is a conflict).
    pub fn of_code(code: u16) -> Self {
        match code {
            400 => Self::BadRequest,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::MethodNotAllowed,
            406 => Self::NotAcceptable,
            409 => Self::Conflict,
            410 => Self::Expired,
            413 => Self::RequestEntityTooLarge,
            415 => Self::UnsupportedMediaType,
            422 => Self::Invalid,
            429 => Self::TooManyRequests,
            500 => Self::InternalError,
            503 => Self::ServiceUnavailable,
            504 => Self::Timeout,
            other => Self::Other(other),
        }
    }

    /// The text of the `reason` field.
    pub fn text(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
            Self::Other(401) => "Unauthorized",
            Self::Other(_) => "",
        }
    }
}

/// One wrong field of a 422 answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueRequired`, `FieldValueInvalid`, `FieldValueNotSupported`, `FieldValueForbidden`, ...
    pub reason: &'static str,
    /// What is wrong, with the offending value.
    pub message: String,
    /// Path of the field, such as `spec.capacity[storage]`.
    pub field: String,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The kind of refusal.
    pub reason: Reason,
    /// The text for people.
    pub message: String,
    /// What else is known; boxed because most results are no refusals.
    pub details: Box<Details>,
}

/// The `details` of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Plural or kind of the object, if one was addressed.
    pub kind: String,
    /// API group of the object.
    pub group: String,
    /// Name of the object.
    pub name: String,
    /// Wrong fields.
    pub causes: Vec<Cause>,
    /// Seconds to wait before the next try; also sent as the `Retry-After` header.
    pub retry_after_secs: Option<u32>,
    /// Continue token of a fresh, inconsistent list, offered with [`Reason::Expired`].
    pub fresh_token: Option<String>,
}

impl Refusal {
    /// A refusal without an object.
    pub fn plain(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: Box::default() }
    }

    /// A refusal about one object.
    pub fn about(reason: Reason, resource: &Resource, name: &str, message: impl Into<String>) -> Self {
        let mut refusal = Self::plain(reason, message);
        resource.plural.clone_into(&mut refusal.details.kind);
        resource.group.clone_into(&mut refusal.details.group);
        name.clone_into(&mut refusal.details.name);
        refusal
    }

    /// 404 for an object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::about(Reason::NotFound, resource, name, format!("{} \"{name}\" not found", resource.qualified()))
    }

    /// 409 for a taken name.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::about(Reason::AlreadyExists, resource, name, message)
    }

    /// 409 for a write from an old version.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 409 with its own reason.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::about(Reason::Conflict, resource, name, message)
    }

    /// 403 for an object.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", resource.qualified());
        Self::about(Reason::Forbidden, resource, name, message)
    }

    /// 422 with the wrong fields of an object of `kind`.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut refusal = Self::plain(Reason::Invalid, format!("{qualified} \"{name}\" is invalid: {list}"));
        kind.clone_into(&mut refusal.details.kind);
        group.clone_into(&mut refusal.details.group);
        name.clone_into(&mut refusal.details.name);
        refusal.details.causes = causes;
        refusal
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(Reason::BadRequest, message)
    }

    /// 410 for a watch or list from a revision that is gone.
    pub fn too_old(asked: u64, oldest: u64) -> Self {
        Self::plain(Reason::Expired, format!("too old resource version: {asked} ({oldest})"))
    }

    /// The HTTP code.
    pub fn code(&self) -> u16 {
        self.reason.code()
    }

    /// The `Status` object on the wire.
    pub fn to_status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.details.fresh_token {
            metadata.insert("continue".into(), json!(token));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure", "message": self.message,
        });
        if let Some(fields) = status.as_object_mut() {
            if !self.reason.text().is_empty() {
                fields.insert("reason".into(), json!(self.reason.text()));
            }
            let details = self.details_value();
            if !details.is_empty() {
                fields.insert("details".into(), Value::Object(details));
            }
            fields.insert("code".into(), json!(self.code()));
        }
        status
    }

    fn details_value(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, text) in [("name", &self.details.name), ("group", &self.details.group), ("kind", &self.details.kind)]
        {
            if !text.is_empty() {
                details.insert(key.into(), json!(text));
            }
        }
        if !self.details.causes.is_empty() {
            let causes: Vec<Value> = self.details.causes.iter().map(cause_value).collect();
            details.insert("causes".into(), json!(causes));
        }
        if let Some(seconds) = self.details.retry_after_secs {
            details.insert("retryAfterSeconds".into(), json!(seconds));
        }
        details
    }
}

fn cause_value(cause: &Cause) -> Value {
    let mut value = Map::new();
    value.insert("reason".into(), json!(cause.reason));
    value.insert("message".into(), json!(cause.message));
    if !cause.field.is_empty() {
        value.insert("field".into(), json!(cause.field));
    }
    Value::Object(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_named_reason_leads_back_to_a_reason_of_that_code() {
        for code in [400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504] {
            assert_eq!(Reason::of_code(code).code(), code);
        }
    }

    #[test]
    fn several_causes_are_listed_in_brackets() {
        let cause =
            |field: &str| Cause { reason: "FieldValueRequired", message: "Required value".into(), field: field.into() };
        let refusal = Refusal::invalid("", "PersistentVolume", "a", vec![cause("spec.x"), cause("spec.y")]);
        assert_eq!(
            refusal.message,
            "PersistentVolume \"a\" is invalid: [spec.x: Required value, spec.y: Required value]"
        );
        assert_eq!(refusal.to_status()["details"]["causes"][1]["field"], "spec.y");
    }
}
