//! The query string.

use crate::sandbox::apiserver::delete::DeleteOptions;
use crate::sandbox::apiserver::listing::{ListOptions, list_options_error};
use crate::sandbox::apiserver::refusal::Refusal;
use crate::sandbox::apiserver::watching::WatchOptions;
use axum::extract::Query as Decoded;
use http::Uri;
use serde_json::Value;
use std::time::Duration;

/// The decoded query.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes the query of a request.
    pub fn of(uri: &Uri) -> Result<Self, Refusal> {
        let decoded = Decoded::<Vec<(String, String)>>::try_from_uri(uri);
        decoded.map(|found| Self(found.0)).map_err(|error| Refusal::bad_request(error.to_string()))
    }

    /// A parameter, empty when absent.
    pub fn text(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value.as_str())
    }

    /// A yes or no; a parameter without a value is a yes, as in Go.
    pub fn flag(&self, key: &str) -> bool {
        self.flag_if_told(key).unwrap_or(false)
    }

    fn flag_if_told(&self, key: &str) -> Option<bool> {
        let (_, value) = self.0.iter().find(|(name, _)| name == key)?;
        Some(!matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Refusal> {
        match self.text(key) {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| Refusal::bad_request(format!("{key}: \"{text}\" is not a number")))
            }
        }
    }

    /// Initial events are for watches only.
    pub fn check_list(&self) -> Result<(), Refusal> {
        if self.flag_if_told("sendInitialEvents").is_none() {
            return Ok(());
        }
        let message = "Forbidden: sendInitialEvents is forbidden for list".to_owned();
        Err(list_options_error("FieldValueForbidden", message, "sendInitialEvents"))
    }

    /// What a list was asked for.
    pub fn list_options(&self, stale_by: u64) -> Result<ListOptions, Refusal> {
        Ok(ListOptions {
            limit: self.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0),
            token: self.text("continue").to_owned(),
            version: self.text("resourceVersion").to_owned(),
            version_match: self.text("resourceVersionMatch").to_owned(),
            stale_by,
        })
    }

    /// What a watch was asked for.
    pub fn watch_options(&self, stale_by: u64) -> Result<WatchOptions, Refusal> {
        Ok(WatchOptions {
            version: self.text("resourceVersion").to_owned(),
            version_match: self.text("resourceVersionMatch").to_owned(),
            initial_events: self.flag_if_told("sendInitialEvents"),
            bookmarks: self.flag("allowWatchBookmarks"),
            timeout: self.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).map(Duration::from_secs),
            stale_by,
        })
    }

    /// How to delete: from the body, and from the query where the body is silent.
    pub fn delete_options(&self, body: &Value) -> Result<DeleteOptions, Refusal> {
        let text = |path: &str| body.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let orphan = body.get("orphanDependents").and_then(Value::as_bool);
        let from_query = || Some(self.text("propagationPolicy").to_owned()).filter(|policy| !policy.is_empty());
        let grace = self.number("gracePeriodSeconds")?.and_then(|seconds| i64::try_from(seconds).ok());
        Ok(DeleteOptions {
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
            grace_secs: body.get("gracePeriodSeconds").and_then(Value::as_i64).or(grace),
            propagation: text("/propagationPolicy")
                .or_else(from_query)
                .or_else(|| (orphan == Some(true)).then(|| "Orphan".to_owned())),
            dry_run: self.dry_run()
                || body.get("dryRun").and_then(Value::as_array).is_some_and(|list| !list.is_empty()),
        })
    }

    /// Whether nothing is to be stored.
    pub fn dry_run(&self) -> bool {
        !self.text("dryRun").is_empty()
    }
}
