//! Watches and what faults do to them.

use super::*;
use crate::sandbox::apiserver::faults::{Effect, Match};
use crate::sandbox::apiserver::patch::PatchKind;
use crate::sandbox::apiserver::selectors::Selection;
use crate::sandbox::apiserver::watching::{End, EventKind, Watch, WatchOptions};
use std::time::Duration;
use tokio::time::Instant;

fn config_map(name: &str, x: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"x": x}}})
}

fn open(server: &ApiServer, labels: &str, options: &WatchOptions) -> Watch {
    let resource = resources::by_plural("configmaps").expect("served");
    let selection = Selection::parse(resource, labels, "").expect("well-formed");
    let call = faults::Call { verb: "watch".into(), resource: "configmaps".into(), ..faults::Call::default() };
    Watch::open(server, resource, selection, options, call).expect("opened")
}

fn ready(watch: &mut Watch) -> Vec<String> {
    let told = |event: watching::Event| {
        let name = event.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        format!("{} {name}", event.kind.text()).trim().to_owned()
    };
    std::iter::from_fn(|| watch.try_next()).map(told).collect()
}

fn revision_of(event: &watching::Event) -> u64 {
    event.object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a revision")
}

fn with_bookmarks(seconds: u64) -> WatchOptions {
    let timeout = Some(Duration::from_secs(seconds));
    WatchOptions { bookmarks: true, timeout, ..WatchOptions::default() }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn object_that_enters_and_leaves_the_selection_comes_and_goes() {
    let server = server();
    server.create("configmaps", "default", config_map("a", "1")).expect("created");
    let mut watch = open(&server, "x=2", &WatchOptions::default());
    let set = |x: &str| {
        let patch = json!({"metadata": {"labels": {"x": x}}});
        server.patch("configmaps", ("default", "a"), PatchKind::Merge, &patch).expect("patched")
    };
    set("2");
    let patch = json!({"data": {"k": "v"}});
    server.patch("configmaps", ("default", "a"), PatchKind::Merge, &patch).expect("patched");
    let last = set("3");
    let events: Vec<watching::Event> = std::iter::from_fn(|| watch.try_next()).collect();
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Added, EventKind::Modified, EventKind::Deleted]);
    // As on the real server: as it was inside, with the revision of the change.
    assert_eq!(events[2].object["metadata"]["labels"]["x"], "2");
    assert_eq!(events[2].object["metadata"]["resourceVersion"], last["metadata"]["resourceVersion"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn streaming_list_ends_with_its_bookmark() {
    let server = server();
    server.create("configmaps", "default", config_map("a", "1")).expect("created");
    let options = WatchOptions {
        initial_events: Some(true),
        version_match: "NotOlderThan".into(),
        bookmarks: true,
        ..WatchOptions::default()
    };
    let mut watch = open(&server, "", &options);
    assert_eq!(watch.next().await.map(|event| event.kind), Ok(EventKind::Added));
    let bookmark = watch.next().await.expect("a bookmark");
    assert_eq!(bookmark.kind, EventKind::Bookmark);
    assert_eq!(bookmark.object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(bookmark.object["metadata"]["resourceVersion"], server.revision().to_string());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let server = server();
    let began = Instant::now();
    let mut watch = open(&server, "", &with_bookmarks(150));
    let mut times = Vec::new();
    let end = loop {
        match watch.next().await {
            Ok(event) => times.push((event.kind, began.elapsed().as_secs())),
            Err(end) => break (end, began.elapsed().as_secs()),
        }
    };
    assert_eq!(times, [60, 120, 148].map(|second| (EventKind::Bookmark, second)));
    assert_eq!(end, (End::Orderly, 150));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn forgotten_revision_is_an_error_event_and_the_end() {
    let server = server();
    let then = server.revision().to_string();
    server.create("configmaps", "default", config_map("a", "1")).expect("created");
    server.compact();
    let mut watch = open(&server, "", &WatchOptions { version: then, ..WatchOptions::default() });
    let event = watch.next().await.expect("an event");
    assert_eq!(
        (event.kind, &event.object["code"], &event.object["reason"]),
        (EventKind::Error, &json!(410), &json!("Expired"))
    );
    assert_eq!(watch.next().await, Err(End::Orderly));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn frozen_watch_shows_all_it_held_back_once_released() {
    let server = server();
    let mut watch = open(&server, "", &with_bookmarks(3600));
    let frozen = server.faults().add(Match::any().verb("watch").resource("configmaps"), Effect::Freeze);
    server.create("configmaps", "default", config_map("a", "1")).expect("created");
    server.create("configmaps", "default", config_map("b", "1")).expect("created");
    tokio::time::timeout(Duration::from_mins(10), watch.next()).await.expect_err("frozen, bookmarks too");
    server.faults().remove(frozen);
    assert_eq!(ready(&mut watch), ["ADDED a", "ADDED b"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn cut_watch_breaks_even_while_it_waits() {
    let server = server();
    let mut watch = open(&server, "", &WatchOptions::default());
    let faults = server.faults().clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(7)).await;
        faults.cut_watches(Match::any());
    });
    let began = Instant::now();
    assert_eq!((watch.next().await, began.elapsed().as_secs()), (Err(End::Cut), 7));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn lost_events_are_not_made_up_later() {
    let server = server();
    let mut watch = open(&server, "", &WatchOptions::default());
    let dropping = server.faults().add(Match::any(), Effect::DropEvents { percent: 100 });
    server.create("configmaps", "default", config_map("a", "1")).expect("created");
    assert_eq!(ready(&mut watch), Vec::<String>::new());
    server.faults().remove(dropping);
    server.create("configmaps", "default", config_map("b", "1")).expect("created");
    assert_eq!(ready(&mut watch), ["ADDED b"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn bookmark_never_overtakes_an_event() {
    let server = server();
    let mut watch = open(&server, "", &with_bookmarks(3600));
    let other = server.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        other.create("configmaps", "default", config_map("a", "1")).expect("created");
    });
    let events = [watch.next().await.expect("an event"), watch.next().await.expect("an event")];
    let bookmark = events.iter().position(|event| event.kind == EventKind::Bookmark).expect("a bookmark");
    let added = events.iter().position(|event| event.kind == EventKind::Added).expect("the object");
    // A bookmark that tells the object's revision must come behind the object, or a resumed watch would miss it.
    assert_eq!(bookmark > added, revision_of(&events[bookmark]) >= revision_of(&events[added]));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn direct_watch_starts_with_what_there_is() {
    let server = server();
    server.create("configmaps", "default", config_map("a", "1")).expect("created");
    let mut watch = server.watch("configmaps", "default").expect("opened");
    server.create("configmaps", "default", config_map("b", "1")).expect("created");
    assert_eq!(ready(&mut watch), ["ADDED a", "ADDED b"]);
}
