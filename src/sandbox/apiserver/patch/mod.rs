//! Patches: JSON patch, merge patch and strategic merge patch.
//!
//! Pure: old object and patch in, new object out. Server-side apply is not offered (415), clients fall back or are
//! told to use client-side apply.

mod json;
mod keys;
mod merge;
mod strategic;
#[cfg(test)]
mod tests;

use super::refusal::{Reason, Refusal};
use super::resources::Resource;
use super::world::internal;
use serde_json::Value;

/// The three kinds of patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902, a list of operations.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own: lists of objects merge by key.
    Strategic,
}

impl PatchKind {
    /// The kind that a content type names.
    pub fn of_content_type(content_type: &str) -> Result<Self, Refusal> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            _ => Err(unsupported()),
        }
    }
}

/// 415 for a patch that the kind or the server does not know.
pub fn unsupported() -> Refusal {
    Refusal::plain(
        Reason::UnsupportedMediaType,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json \
         (the last not for custom resources)",
    )
}

/// Applies a patch to an object.
pub fn apply(kind: PatchKind, resource: &Resource, old: &Value, patch: &Value) -> Result<Value, Refusal> {
    match kind {
        PatchKind::Json => json::apply(old, patch).map_err(|why| match why {
            json::Failure::Malformed(text) => Refusal::bad_request(text),
            json::Failure::DoesNotApply(text) => Refusal::plain(
                Reason::Invalid,
                format!("the server rejected our request due to an error in our request: {text}"),
            ),
        }),
        PatchKind::Merge if patch.is_object() => Ok(merge::apply(old, patch)),
        PatchKind::Strategic if patch.is_object() => strategic::apply(resource.plural, old, patch).map_err(internal),
        PatchKind::Merge | PatchKind::Strategic => Err(Refusal::bad_request("the patch is not a JSON object")),
    }
}
