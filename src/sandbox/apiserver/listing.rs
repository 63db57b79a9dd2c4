//! Lists: which revision answers, and pages.
//!
//! Promises: pages of one list show one revision; a page whose revision is gone is a 410 that offers a fresh token;
//! `resourceVersion` and `resourceVersionMatch` mean what they mean on the real server, where a list from "any"
//! version (`0`) comes from the cache and ignores the limit.

use super::refusal::{Cause, Reason, Refusal};
use super::resources::Resource;
use super::selectors::Selection;
use super::store::{Key, Objects, Store, TooOld};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The query of a list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Objects per page, 0 for all.
    pub limit: usize,
    /// Token of the page before, empty for the first page.
    pub token: String,
    /// `resourceVersion`, empty for the newest.
    pub version: String,
    /// `resourceVersionMatch`.
    pub version_match: String,
    /// Answer from a state that is this many revisions old, as a lagging cache does (a fault).
    pub stale_by: u64,
}

/// A list's answer.
#[derive(Debug)]
pub struct Page {
    /// The objects in order.
    pub items: Vec<Arc<Value>>,
    /// The revision they show.
    pub revision: u64,
    /// Token of the next page.
    pub token: Option<String>,
    /// How many follow, told only when nothing but the namespace narrows the list.
    pub remaining: Option<usize>,
}

/// Answers a list.
pub fn list(store: &Store, resource: &Resource, selection: &Selection, options: &ListOptions) -> Result<Page, Refusal> {
    check_match(options)?;
    let start = match (options.token.is_empty(), parse_token(&options.token)) {
        (true, _) => Start { revision: wanted_revision(store, resource, options)?, after: None },
        (false, Some(start)) => start,
        (false, None) => return Err(Refusal::bad_request("continue key is not valid: it was not made by this server")),
    };
    let revision = if start.revision == 0 { store.revision() } else { start.revision };
    let objects = store.objects_at(resource, revision).map_err(|gone| expired(&start, revision, gone))?;
    Ok(cut_page(&objects, revision, start.after.as_ref(), selection, options))
}

struct Start {
    /// 0 stands for "whatever is newest" (a token offered after an expiry).
    revision: u64,
    after: Option<Key>,
}

fn cut_page(
    objects: &Objects,
    revision: u64,
    after: Option<&Key>,
    selection: &Selection,
    options: &ListOptions,
) -> Page {
    let mut left =
        objects.iter().filter(|(key, object)| after.is_none_or(|after| *key > after) && selection.takes(object));
    let from_cache = options.version == "0" && options.token.is_empty();
    if options.limit == 0 || from_cache {
        return Page {
            items: left.map(|(_, object)| Arc::clone(object)).collect(),
            revision,
            token: None,
            remaining: None,
        };
    }
    let page: Vec<(&Key, &Arc<Value>)> = left.by_ref().take(options.limit).collect();
    let more = left.count();
    let token = (more > 0).then(|| page.last().map(|(key, _)| make_token(revision, key))).flatten();
    let remaining = (more > 0 && !selection.narrows()).then_some(more);
    Page { items: page.into_iter().map(|(_, object)| Arc::clone(object)).collect(), revision, token, remaining }
}

fn wanted_revision(store: &Store, resource: &Resource, options: &ListOptions) -> Result<u64, Refusal> {
    let now = store.revision();
    let asked = parse_version(&options.version)?;
    if asked > now {
        return Err(too_large(asked, now));
    }
    let legacy_exact = options.limit > 0 && asked > 0 && options.version_match.is_empty();
    if options.version_match == "Exact" || legacy_exact {
        return Ok(asked);
    }
    // A lagging answer is still never older than the caller allows.
    let lagging = now.saturating_sub(options.stale_by).max(store.oldest(resource)).max(asked).max(1);
    Ok(if options.stale_by == 0 { now } else { lagging })
}

/// Reads a `resourceVersion`; empty is 0.
pub fn parse_version(text: &str) -> Result<u64, Refusal> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let message = format!("Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax");
        list_options_error("FieldValueInvalid", message, "resourceVersion")
    })
}

/// 504 for a revision that does not exist yet.
pub fn too_large(asked: u64, now: u64) -> Refusal {
    let mut refusal =
        Refusal::plain(Reason::Timeout, format!("Timeout: Too large resource version: {asked}, current: {now}"));
    let message = "Too large resource version".to_owned();
    refusal.details.causes = vec![Cause { reason: "ResourceVersionTooLarge", message, field: String::new() }];
    refusal.details.retry_after_secs = Some(1);
    refusal
}

fn check_match(options: &ListOptions) -> Result<(), Refusal> {
    let wrong = |reason, message: &str| Err(list_options_error(reason, message.to_owned(), "resourceVersionMatch"));
    match options.version_match.as_str() {
        "" => Ok(()),
        _ if options.version.is_empty() => wrong(
            "FieldValueForbidden",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        _ if !options.token.is_empty() => {
            wrong("FieldValueForbidden", "Forbidden: resourceVersionMatch is forbidden when continue is provided")
        }
        "Exact" if options.version == "0" => wrong(
            "FieldValueForbidden",
            "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        "Exact" | "NotOlderThan" => Ok(()),
        other => wrong(
            "FieldValueNotSupported",
            &format!("Unsupported value: \"{other}\": supported values: \"\", \"Exact\", \"NotOlderThan\""),
        ),
    }
}

/// 422 about the query of a list or watch.
pub fn list_options_error(reason: &'static str, message: String, field: &str) -> Refusal {
    let cause = Cause { reason, message, field: field.to_owned() };
    Refusal::invalid("meta.k8s.io", "ListOptions", "", vec![cause])
}

fn expired(start: &Start, revision: u64, gone: TooOld) -> Refusal {
    let mut refusal = Refusal::too_old(revision, gone.oldest);
    if let Some(after) = &start.after {
        "The provided continue parameter is too old to display a consistent list result. Start a new list without the \
         continue parameter, or use the token of this answer for the rest of a list that mixes two states."
            .clone_into(&mut refusal.message);
        refusal.details.fresh_token = Some(make_token(0, after));
    }
    refusal
}

fn make_token(revision: u64, after: &Key) -> String {
    format!("{revision}.{}.{}", after.namespace, after.name)
}

fn parse_token(token: &str) -> Option<Start> {
    let (revision, key) = token.split_once('.')?;
    let (namespace, name) = key.split_once('.')?;
    Some(Start { revision: revision.parse().ok()?, after: Some(Key::new(namespace, name)) })
}

/// The list object on the wire, without kind.
pub fn list_metadata(page: &Page) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), json!(page.revision.to_string()));
    if let Some(token) = &page.token {
        metadata.insert("continue".into(), json!(token));
    }
    if let Some(remaining) = page.remaining {
        metadata.insert("remainingItemCount".into(), json!(remaining));
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::apiserver::resources::by_plural;

    fn stored(names: &[&str]) -> (Store, &'static Resource) {
        let (mut store, secrets) = (Store::new(100), by_plural("secrets").expect("served"));
        for name in names {
            store.put(secrets, Key::new("n", name), json!({"metadata": {"name": name, "namespace": "n"}}));
        }
        (store, secrets)
    }

    fn names(page: &Page) -> Vec<&str> {
        page.items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
    }

    #[test]
    fn pages_show_one_revision_whatever_happens_between_them() {
        let (mut store, secrets) = stored(&["a", "b", "c"]);
        let all = Selection::default();
        let first = list(&store, secrets, &all, &ListOptions { limit: 2, ..Default::default() }).expect("first page");
        assert_eq!((names(&first), first.remaining), (vec!["a", "b"], Some(1)));
        store.remove(secrets, &Key::new("n", "c"));
        let next = ListOptions { limit: 2, token: first.token.clone().expect("more"), ..Default::default() };
        let second = list(&store, secrets, &all, &next).expect("second page");
        assert_eq!((names(&second), second.revision, second.token.is_none()), (vec!["c"], first.revision, true));
    }

    #[test]
    fn page_of_a_forgotten_revision_is_expired_and_offers_a_fresh_token() {
        let (mut store, secrets) = stored(&["a", "b", "c"]);
        let all = Selection::default();
        let first = list(&store, secrets, &all, &ListOptions { limit: 1, ..Default::default() }).expect("first page");
        store.put(secrets, Key::new("n", "d"), json!({"metadata": {"name": "d", "namespace": "n"}}));
        store.compact();
        let next = ListOptions { limit: 9, token: first.token.expect("more"), ..Default::default() };
        let refusal = list(&store, secrets, &all, &next).expect_err("gone");
        assert_eq!(refusal.code(), 410);
        let fresh =
            ListOptions { limit: 9, token: refusal.details.fresh_token.expect("offered"), ..Default::default() };
        assert_eq!(names(&list(&store, secrets, &all, &fresh).expect("rest")), ["b", "c", "d"]);
    }

    #[test]
    fn list_from_any_version_ignores_the_limit() {
        let (store, secrets) = stored(&["a", "b"]);
        let options = ListOptions { limit: 1, version: "0".into(), ..Default::default() };
        assert_eq!(list(&store, secrets, &Selection::default(), &options).expect("list").items.len(), 2);
    }

    #[test]
    fn exact_version_is_answered_from_history() {
        let (mut store, secrets) = stored(&["a"]);
        let then = store.revision();
        store.put(secrets, Key::new("n", "b"), json!({"metadata": {"name": "b", "namespace": "n"}}));
        let options = ListOptions { version: then.to_string(), version_match: "Exact".into(), ..Default::default() };
        assert_eq!(names(&list(&store, secrets, &Selection::default(), &options).expect("list")), ["a"]);
    }

    #[test]
    fn version_from_the_future_is_a_timeout() {
        let (store, secrets) = stored(&["a"]);
        let options = ListOptions { version: "999".into(), ..Default::default() };
        assert_eq!(list(&store, secrets, &Selection::default(), &options).map_err(|it| it.code()).err(), Some(504));
    }

    #[test]
    fn stale_list_shows_an_older_state() {
        let (mut store, secrets) = stored(&["a"]);
        store.put(secrets, Key::new("n", "b"), json!({"metadata": {"name": "b", "namespace": "n"}}));
        let options = ListOptions { stale_by: 1, ..Default::default() };
        assert_eq!(names(&list(&store, secrets, &Selection::default(), &options).expect("list")), ["a"]);
    }
}
