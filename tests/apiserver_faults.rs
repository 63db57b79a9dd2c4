//! Faults of the sandbox's API server as a client meets them.
#![cfg(feature = "sandbox")]

use csi_provisioner::clock::Clock;
use csi_provisioner::random::Random;
use csi_provisioner::sandbox::apiserver::ApiServer;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use tower::ServiceExt as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> ApiServer {
    ApiServer::new(Clock::simulated(Timestamp::UNIX_EPOCH), Random::seeded(3))
}

async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) -> Option<Response<Value>> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request =
        Request::builder().method(method).uri(path).header("user-agent", "tester/1").body(body).expect("a request");
    let (parts, body) = server.service().oneshot(request).await.ok()?.into_parts();
    let bytes = body.collect().await.ok()?.to_bytes();
    Some(Response::from_parts(parts, serde_json::from_slice(&bytes).unwrap_or_default()))
}

async fn create(server: &ApiServer, name: &str) -> Option<u16> {
    let answer = send(server, "POST", MAPS, &json!({"metadata": {"name": name}})).await;
    answer.map(|answer| answer.status().as_u16())
}

async fn names(server: &ApiServer, query: &str) -> Vec<String> {
    let answer = send(server, "GET", &format!("{MAPS}{query}"), &Value::Null).await.expect("an answer");
    let items = answer.body()["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn refused_request_stores_nothing_and_tells_when_to_come_back() {
    let server = server();
    server.faults().add_times(Match::any().verb("create"), Effect::Refuse { code: 429, retry_after_secs: Some(7) }, 1);
    let answer = send(&server, "POST", MAPS, &json!({"metadata": {"name": "a"}})).await.expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].to_str().ok()), (429, Some("7")));
    assert_eq!(answer.body()["details"]["retryAfterSeconds"], 7);
    assert_eq!(create(&server, "a").await, Some(201));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn refusal_after_the_write_leaves_the_object_stored() {
    let server = server();
    server.faults().add_times(Match::any().verb("create"), Effect::RefuseAfter { code: 504 }, 1);
    assert_eq!(create(&server, "a").await, Some(504));
    assert_eq!(names(&server, "").await, ["a"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn denied_verb_is_forbidden_for_that_caller_only() {
    let server = server();
    server.faults().add(Match::any().resource("configmaps").verb("create").user_agent("tester"), Effect::Deny);
    server.faults().add(Match::any().user_agent("somebody else"), Effect::Cut);
    let answer = send(&server, "POST", MAPS, &json!({"metadata": {"name": "a"}})).await.expect("an answer");
    assert_eq!((answer.status().as_u16(), &answer.body()["reason"]), (403, &json!("Forbidden")));
    assert_eq!(names(&server, "").await, Vec::<String>::new());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn cut_request_has_no_answer_and_no_effect() {
    let server = server();
    server.faults().add_times(Match::any().name("a"), Effect::Cut, 1);
    assert_eq!(create(&server, "a").await, None);
    assert_eq!(names(&server, "").await, Vec::<String>::new());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn early_delay_comes_before_the_write_and_late_delay_after_it() {
    for (effect, stored_meanwhile) in
        [(Effect::Delay(Duration::from_secs(9)), false), (Effect::AnswerLate(Duration::from_secs(9)), true)]
    {
        let server = server();
        server.faults().add(Match::any().verb("create"), effect);
        let began = Instant::now();
        let other = server.clone();
        let looker = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(4)).await;
            other.get("configmaps", "default", "a").is_ok()
        });
        assert_eq!(create(&server, "a").await, Some(201));
        assert_eq!((began.elapsed().as_secs(), looker.await.ok()), (9, Some(stored_meanwhile)));
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn stale_list_shows_an_older_state_but_never_an_older_one_than_asked() {
    let server = server();
    for name in ["a", "b", "c"] {
        create(&server, name).await;
    }
    server.faults().add(Match::any().verb("list"), Effect::Stale { revisions: 2 });
    assert_eq!(names(&server, "").await, ["a"]);
    let at_least = format!("?resourceVersion={}&resourceVersionMatch=NotOlderThan", server.revision() - 1);
    assert_eq!(names(&server, &at_least).await, ["a", "b"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn log_tells_each_request_with_its_answer() {
    let server = server();
    create(&server, "a").await;
    server.faults().add(Match::any().verb("delete"), Effect::LoseAnswer);
    send(&server, "DELETE", &format!("{MAPS}/a"), &Value::Null).await;
    send(&server, "PATCH", "/api/v1/persistentvolumes/v/status", &json!({})).await;
    let told: Vec<String> = server
        .requests()
        .into_iter()
        .map(|it| {
            let (number, call, code) = (it.number, it.call, it.code);
            format!(
                "{number} {} {}/{} {} {} {code:?}",
                call.verb, call.resource, call.subresource, call.name, call.user_agent
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "1 create configmaps/ a tester/1 Some(201)",
            "2 delete configmaps/ a tester/1 None",
            "3 patch persistentvolumes/status v tester/1 Some(415)",
        ]
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn same_seed_gives_the_same_world_from_many_tasks() {
    async fn run() -> (Vec<Value>, Vec<String>) {
        let server = server();
        server.faults().add(Match::any().verb("create").name("m-3"), Effect::Delay(Duration::from_millis(20)));
        let writers = (0..8).map(|number| {
            let server = server.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(number % 3)).await;
                create(&server, &format!("m-{number}")).await
            }
        });
        futures::future::join_all(writers).await;
        let log = server.requests().into_iter().map(|it| it.call.name).collect();
        (server.list("configmaps", "").expect("served"), log)
    }
    assert_eq!(run().await, run().await);
}
