//! The sandbox's API server as kube-rs sees it, in-process and over a real socket.
#![cfg(feature = "sandbox")]

use csi_provisioner::clock::Clock;
use csi_provisioner::random::Random;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::apiserver::{ApiServer, serve};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Secret};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use std::pin::pin;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn server() -> ApiServer {
    ApiServer::new(Clock::simulated(Timestamp::UNIX_EPOCH), Random::seeded(7))
}

fn in_process(server: &ApiServer) -> Client {
    Client::new(server.service(), "default")
}

/// A client over a real port; the server stops when the token does.
async fn over_a_port(server: &ApiServer, stop: &CancellationToken) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(serve(server.clone(), listener, stop.clone()));
    Client::try_from(kube::Config::new(address.parse().expect("an address"))).expect("a client")
}

fn claim(name: &str) -> PersistentVolumeClaim {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a claim")
}

fn secret(name: &str) -> Secret {
    serde_json::from_value(json!({"metadata": {"name": name}})).expect("a secret")
}

async fn next<S: Stream<Item = watcher::Result<Event<Secret>>> + Unpin>(stream: &mut S) -> String {
    let wait = tokio::time::timeout(Duration::from_secs(30), stream.next());
    match wait.await.expect("in time").expect("endless") {
        Ok(Event::Init) => "init".to_owned(),
        Ok(Event::InitApply(object)) => format!("+{}", object.name_any()),
        Ok(Event::InitDone) => "done".to_owned(),
        Ok(Event::Apply(object)) => format!("apply {}", object.name_any()),
        Ok(Event::Delete(object)) => format!("delete {}", object.name_any()),
        Err(error) => format!("error {error}"),
    }
}

async fn follows_objects(client: Client, config: watcher::Config) {
    let secrets: Api<Secret> = Api::default_namespaced(client);
    for name in ["a", "b"] {
        secrets.create(&PostParams::default(), &secret(name)).await.expect("created");
    }
    let mut events = pin!(watcher(secrets.clone(), config));
    for wanted in ["init", "+a", "+b", "done"] {
        assert_eq!(next(&mut events).await, wanted);
    }
    secrets.create(&PostParams::default(), &secret("c")).await.expect("created");
    assert_eq!(next(&mut events).await, "apply c");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
    secrets.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(next(&mut events).await, "apply a");
    secrets.delete("b", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(next(&mut events).await, "delete b");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn watcher_follows_objects_in_process() {
    follows_objects(in_process(&server()), watcher::Config::default()).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn streaming_watcher_follows_objects_in_process() {
    follows_objects(in_process(&server()), watcher::Config::default().streaming_lists()).await;
}

#[tokio::test]
async fn watcher_follows_objects_over_a_port() {
    let (server, stop) = (server(), CancellationToken::new());
    let _stop_at_the_end = stop.clone().drop_guard();
    follows_objects(over_a_port(&server, &stop).await, watcher::Config::default()).await;
}

#[tokio::test]
async fn streaming_watcher_follows_objects_over_a_port() {
    let (server, stop) = (server(), CancellationToken::new());
    let _stop_at_the_end = stop.clone().drop_guard();
    follows_objects(over_a_port(&server, &stop).await, watcher::Config::default().streaming_lists()).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn streaming_list_is_refused_the_way_old_servers_do() {
    let server = server();
    server.watch_list(false);
    let secrets: Api<Secret> = Api::default_namespaced(in_process(&server));
    let mut events = pin!(watcher(secrets, watcher::Config::default().streaming_lists()));
    let error = next(&mut events).await;
    assert!(error.contains("unless the WatchList feature gate is enabled"), "{error}");
    let refused = server.requests().into_iter().filter(|request| request.code == Some(422)).count();
    assert_eq!(refused, 1);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn compacted_watch_starts_over() {
    let server = server();
    let secrets: Api<Secret> = Api::default_namespaced(in_process(&server));
    secrets.create(&PostParams::default(), &secret("a")).await.expect("created");
    let mut events = pin!(watcher(secrets.clone(), watcher::Config::default()));
    for wanted in ["init", "+a", "done"] {
        assert_eq!(next(&mut events).await, wanted);
    }
    let frozen = server.faults().add(Match::any().verb("watch"), Effect::Freeze);
    // Lets the watch open and freeze before history goes.
    tokio::time::timeout(Duration::from_secs(1), events.next()).await.expect_err("nothing to tell");
    secrets.create(&PostParams::default(), &secret("b")).await.expect("created");
    secrets.create(&PostParams::default(), &secret("c")).await.expect("created");
    server.compact();
    server.faults().remove(frozen);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "done") {
        seen.push(next(&mut events).await);
    }
    assert!(seen[0].contains("too old resource version"), "{seen:?}");
    assert_eq!(seen[1..], ["init", "+a", "+b", "+c", "done"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn pages_of_a_list_cover_everything() {
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(in_process(&server()));
    for number in 0..7 {
        claims.create(&PostParams::default(), &claim(&format!("c{number}"))).await.expect("created");
    }
    let (mut names, mut token) = (Vec::new(), None::<String>);
    loop {
        let params = ListParams { limit: Some(3), continue_token: token, ..ListParams::default() };
        let page = claims.list(&params).await.expect("a page");
        names.extend(page.items.iter().map(kube::ResourceExt::name_any));
        token = page.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    assert_eq!(names, (0..7).map(|number| format!("c{number}")).collect::<Vec<_>>());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn write_from_an_old_version_is_a_conflict() {
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(in_process(&server()));
    let mut old = claims.create(&PostParams::default(), &claim("a")).await.expect("created");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
    claims.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    old.annotations_mut().insert("k".into(), "v".into());
    let error = claims.replace("a", &PostParams::default(), &old).await.expect_err("an old version");
    assert!(matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_goes_when_its_last_finalizer_goes() {
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(in_process(&server()));
    let made = claims.create(&PostParams::default(), &claim("a")).await.expect("created");
    assert_eq!(made.finalizers(), ["kubernetes.io/pvc-protection"]);
    let marked = claims.delete("a", &DeleteParams::default()).await.expect("deleted");
    assert!(marked.left().is_some_and(|claim| claim.metadata.deletion_timestamp.is_some()));
    let patch = Patch::Strategic(
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["kubernetes.io/pvc-protection"]}}),
    );
    claims.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    assert!(claims.get_opt("a").await.expect("answered").is_none());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn bad_volume_is_refused_with_its_fields() {
    let volumes: Api<PersistentVolume> = Api::all(in_process(&server()));
    let spec = json!({"capacity": {"storage": "0"}, "accessModes": [], "csi": {"driver": "d.example.org", "volumeHandle": ""}});
    let bad = serde_json::from_value(json!({"metadata": {"name": "v"}, "spec": spec})).expect("a volume");
    let error = volumes.create(&PostParams::default(), &bad).await.expect_err("a bad volume");
    let kube::Error::Api(status) = error else { panic!("{error}") };
    let fields: Vec<String> =
        status.details.map(|it| it.causes.into_iter().map(|cause| cause.field).collect()).unwrap_or_default();
    assert_eq!(
        (status.code, fields),
        (
            422,
            vec![
                "spec.accessModes".to_owned(),
                "spec.capacity[storage]".to_owned(),
                "spec.csi.volumeHandle".to_owned()
            ]
        )
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn lost_answer_leaves_the_object_stored() {
    let server = server();
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(in_process(&server));
    server.faults().add_times(Match::any().verb("create"), Effect::LoseAnswer, 1);
    claims.create(&PostParams::default(), &claim("a")).await.expect_err("no answer");
    let again = claims.create(&PostParams::default(), &claim("a")).await.expect_err("taken");
    assert!(matches!(again, kube::Error::Api(status) if status.reason == "AlreadyExists"));
}

#[tokio::test]
async fn cut_request_on_a_port_has_no_answer() {
    let (server, stop) = (server(), CancellationToken::new());
    let _stop_at_the_end = stop.clone().drop_guard();
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(over_a_port(&server, &stop).await);
    server.faults().add_times(Match::any().verb("create"), Effect::Cut, 1);
    let error = claims.create(&PostParams::default(), &claim("a")).await.expect_err("no answer");
    assert!(!matches!(error, kube::Error::Api(_)), "{error}");
    claims.create(&PostParams::default(), &claim("a")).await.expect("the name is free");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn request_ends_although_its_caller_went_away() {
    let server = server();
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(in_process(&server));
    server.faults().add_times(Match::any().verb("create"), Effect::Delay(Duration::from_secs(5)), 1);
    let params = PostParams::default();
    let abandoned = claim("a");
    tokio::time::timeout(Duration::from_secs(1), claims.create(&params, &abandoned)).await.expect_err("gave up");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(claims.get_opt("a").await.expect("answered").is_some());
}
