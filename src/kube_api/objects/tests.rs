//! Requests as the server sees them, and answers as callers see them.

use super::*;
use std::sync::{Arc, Mutex, PoisonError};

/// A server that notes each request and plays back prepared answers.
#[derive(Clone, Default)]
struct Server {
    seen: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<Vec<Response<Body>>>>,
}

impl Server {
    fn answering<const N: usize>(answers: [(u16, &'static str); N]) -> (Self, Objects) {
        let server = Self::default();
        for (code, body) in answers.into_iter().rev() {
            let answer = Response::builder().status(code).body(Body::from(body.as_bytes().to_vec())).unwrap();
            server.answers.lock().unwrap().push(answer);
        }
        let service = tower::service_fn({
            let server = server.clone();
            move |request| server.clone().answer(request)
        });
        (server, Objects::new(Client::new(service, "default")))
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, tower::BoxError> {
        let kind = request.headers().get(header::CONTENT_TYPE).map_or("-", |kind| kind.to_str().unwrap()).to_owned();
        let line = format!("{} {} {kind}", request.method(), request.uri());
        let body = request.into_body().collect_bytes().await?;
        let line = format!("{line} {}", String::from_utf8_lossy(&body));
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(line.trim_end().to_owned());
        self.answers.lock().unwrap().pop().ok_or_else(|| "connection refused".into())
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn volume() -> Path {
    Path::core("persistentvolumes").name("pv")
}

#[tokio::test(flavor = "current_thread")]
async fn object_is_read_as_the_type_asked_for() {
    let (server, objects) = Server::answering([(200, r#"{"metadata":{"name":"pv"},"unknown":1}"#)]);
    let value: Value = objects.get(&volume()).await.unwrap();
    assert_eq!(value["unknown"], 1);
    assert_eq!(server.seen(), ["GET /api/v1/persistentvolumes/pv -"]);
}

#[tokio::test(flavor = "current_thread")]
async fn named_group_and_namespace_form_the_path() {
    let (server, objects) = Server::answering([(200, "{}")]);
    let path = Path::group("coordination.k8s.io", "v1", "leases").namespace("kube-system").name("lock");
    objects.replace(&path, &json!({"a": 1})).await.unwrap();
    let wanted = "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lock application/json {\"a\":1}";
    assert_eq!(server.seen(), [wanted]);
}

#[tokio::test(flavor = "current_thread")]
async fn each_patch_has_its_content_type() {
    let (server, objects) = Server::answering([(200, "{}"), (200, "{}"), (200, "{}")]);
    for patch in [Patch::Json, Patch::Merge, Patch::Strategic] {
        objects.patch(&volume(), patch, &json!([])).await.unwrap();
    }
    let kinds = server.seen().iter().map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect::<Vec<_>>();
    let wanted =
        ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"];
    assert_eq!(kinds, wanted);
}

#[tokio::test(flavor = "current_thread")]
async fn deletion_names_the_very_object() {
    let (server, objects) = Server::answering([(200, "{}"), (200, "")]);
    objects.delete(&volume(), Some("u-1")).await.unwrap();
    objects.delete(&volume(), None).await.unwrap();
    let seen = server.seen();
    assert!(seen[0].contains(r#""preconditions":{"uid":"u-1"}"#), "{seen:?}");
    assert_eq!(seen[1], "DELETE /api/v1/persistentvolumes/pv -");
}

#[tokio::test(flavor = "current_thread")]
async fn list_follows_its_pages() {
    let pages = [(200, r#"{"metadata":{"continue":"t/2"},"items":[1,2]}"#), (200, r#"{"metadata":{},"items":[3]}"#)];
    let (server, objects) = Server::answering(pages);
    let items: Vec<u8> = objects.list(&Path::core("nodes"), &[("labelSelector", "a=b")]).await.unwrap();
    assert_eq!(items, [1, 2, 3]);
    let first = "GET /api/v1/nodes?labelSelector=a%3Db&limit=250";
    assert_eq!(server.seen(), [format!("{first} -"), format!("{first}&continue=t%2F2 -")]);
}

#[tokio::test(flavor = "current_thread")]
async fn list_without_items_is_empty() {
    let (_, objects) = Server::answering([(200, r#"{"metadata":{},"items":null}"#)]);
    assert_eq!(objects.list::<Value>(&Path::core("nodes"), &[]).await.unwrap(), [] as [Value; 0]);
}

#[tokio::test(flavor = "current_thread")]
async fn names_that_would_leave_the_object_never_reach_the_server() {
    let (server, objects) = Server::answering([]);
    for name in ["", ".", "..", "a/b"] {
        let error = objects.delete(&Path::core("secrets").namespace("ns").name(name), None).await.unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::BadRequest);
    }
    let no_name = objects.delete(&Path::core("secrets").namespace("ns"), None).await.unwrap_err();
    assert_eq!(no_name.message, "\"\" is no name of an object in secrets");
    assert_eq!(server.seen(), [] as [String; 0]);
}

#[tokio::test(flavor = "current_thread")]
async fn odd_characters_are_encoded() {
    let (server, objects) = Server::answering([(200, "{}")]);
    objects.get::<Value>(&Path::core("nodes").name("a?b c")).await.unwrap();
    assert_eq!(server.seen(), ["GET /api/v1/nodes/a%3Fb%20c -"]);
}

#[tokio::test(flavor = "current_thread")]
async fn creation_that_meets_an_object_already_exists() {
    let (_, objects) = Server::answering([(409, "")]);
    let error = objects.create(&Path::core("persistentvolumes"), &json!({})).await.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::AlreadyExists);
}

#[tokio::test(flavor = "current_thread")]
async fn broken_connection_is_a_transport_error() {
    let (_, objects) = Server::answering([]);
    let error = objects.get::<Value>(&volume()).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ApiErrorKind::Transport, "ServiceError: connection refused"));
}

#[tokio::test(flavor = "current_thread")]
async fn redirect_is_an_error() {
    let (_, objects) = Server::answering([(302, "")]);
    assert_eq!(objects.get::<Value>(&volume()).await.unwrap_err().kind, ApiErrorKind::Other(302));
}

#[tokio::test(flavor = "current_thread")]
async fn secret_that_cannot_be_read_is_not_quoted() {
    let (_, objects) = Server::answering([(200, r#"{"data":"aHVudGVyMg=="}"#)]);
    let read = objects.get::<std::collections::BTreeMap<String, u64>>(&Path::core("secrets").name("s")).await;
    let error = read.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Unreadable);
    assert!(!format!("{error:?} {error}").contains("aHVudGVyMg"));
}

#[test]
fn retry_after_is_read_in_seconds() {
    let header = |value: &str| HeaderMap::from_iter([(header::RETRY_AFTER, value.parse().unwrap())]);
    assert_eq!(retry_after(&header("7")), Some(Duration::from_secs(7)));
    assert_eq!(retry_after(&header("Wed, 21 Oct 2026 07:28:00 GMT")), None);
}
