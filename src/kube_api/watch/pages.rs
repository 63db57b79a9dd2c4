//! One page of a list.

use super::WatchSettings;
use super::feed::{Name, tell_unreadable};
use crate::kube_api::error::{ApiError, Verb};
use crate::kube_api::objects::{ANSWER_LIMIT, open, parse, read_to_end, with_query};
use http::{Request, header};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A page of readable objects.
pub(super) struct Page<K> {
    pub(super) items: Vec<K>,
    /// Token of the next page; empty at the end.
    pub(super) next: String,
    /// Resource version of the whole list.
    pub(super) version: String,
}

#[derive(Deserialize)]
struct Answer<K> {
    metadata: Meta,
    items: Option<Vec<K>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    resource_version: String,
    r#continue: Option<String>,
}

/// Reads the page that `token` names; the first one with an empty token.
pub(super) async fn read<K: DeserializeOwned>(
    client: &Client,
    url: &str,
    settings: &WatchSettings,
    token: &str,
) -> Result<Page<K>, ApiError> {
    let limit = settings.page_size.to_string();
    let query = [("limit", limit.as_str()), ("continue", token), ("labelSelector", settings.labels.as_str())];
    let request = Request::get(with_query(url, query.into_iter())).header(header::ACCEPT, "application/json");
    let answer = open(client, request.body(Body::empty()), Verb::Other).await?;
    let text = read_to_end(answer.into_body(), ANSWER_LIMIT).await?;
    let (meta, items) = match serde_json::from_slice::<Answer<K>>(&text) {
        Ok(answer) => (answer.metadata, answer.items.unwrap_or_default()),
        Err(_) => one_by_one(settings.resource, &text)?,
    };
    Ok(Page { items, next: meta.r#continue.unwrap_or_default(), version: meta.resource_version })
}

/// The slow way for a page with an object that cannot be read: that one is left out.
fn one_by_one<K: DeserializeOwned>(name: &str, text: &[u8]) -> Result<(Meta, Vec<K>), ApiError> {
    let answer = parse::<Answer<Value>>(text)?;
    let mut readable = Vec::new();
    for item in answer.items.into_iter().flatten() {
        let Name { metadata } = Name::deserialize(&item).unwrap_or_default();
        match serde_json::from_value(item) {
            Ok(object) => readable.push(object),
            Err(_) => tell_unreadable(name, &metadata),
        }
    }
    Ok((answer.metadata, readable))
}
