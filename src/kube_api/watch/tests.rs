use super::*;
use crate::model::Class;
use http::{Request, Response};
use kube::client::Body;
use std::convert::Infallible;
use std::sync::Mutex;
use tower::service_fn;

type Answer = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, Infallible>;
type Log = Arc<Mutex<Vec<String>>>;

struct Told(Log);

impl Observer<Class> for Told {
    fn list_begins(&mut self) {
        self.0.lock().unwrap().push("begin".into());
    }
    fn seen(&mut self, object: Class, fresh: bool) {
        let name = object.metadata.name.unwrap_or_default();
        self.0.lock().unwrap().push(format!("{}{name}", if fresh { "live " } else { "list " }));
    }
    fn gone(&mut self, object: Class) {
        self.0.lock().unwrap().push(format!("gone {}", object.metadata.name.unwrap_or_default()));
    }
    fn list_ends(&mut self) {
        self.0.lock().unwrap().push("end".into());
    }
}

fn whole(text: String) -> Answer {
    Answer::new(http_body_util::Full::new(bytes::Bytes::from(text)))
}

fn event(kind: &str, name: &str, version: u32) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"object\":{{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\
         \"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"{version}\"}},\"provisioner\":\"p\"}}}}\n"
    )
}

fn end_of_list(version: u32) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\
         \"metadata\":{{\"resourceVersion\":\"{version}\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n"
    )
}

fn status(code: u16, reason: &str) -> Response<Answer> {
    let body = format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no\",\"reason\":\"{reason}\",\"code\":{code}}}"
    );
    Response::builder().status(code).body(whole(body)).unwrap()
}

/// Runs a watch against a scripted server: `answer` gets the query and the number of the request. Returns what the
/// observer was told and how many requests were sent within `time`.
async fn run(
    time: Duration,
    answer: impl Fn(&str, usize) -> Response<Answer> + Send + Sync + 'static,
) -> (Vec<String>, usize) {
    let requests = Arc::new(Mutex::new(0));
    let (counted, answer) = (Arc::clone(&requests), Arc::new(answer));
    let service = service_fn(move |request: Request<Body>| {
        let nth = {
            let mut count = counted.lock().unwrap();
            *count += 1;
            *count
        };
        let response = answer(request.uri().query().unwrap_or_default(), nth);
        async move { Ok::<_, Infallible>(response) }
    });
    let log = Log::default();
    let client = kube::Client::new(service, "default");
    let settings = WatchSettings::new("storageclasses", Random::seeded(1), Arc::default());
    let readiness = Readiness::new();
    let stop = CancellationToken::new();
    let watching = watch(Api::<Class>::all(client), Told(Arc::clone(&log)), settings, readiness.handle(), stop.clone());
    timeout(time, watching).await.ok();
    let told = log.lock().unwrap().clone();
    let sent = *requests.lock().unwrap();
    (told, sent)
}

/// A body that gives these lines and then stays open.
fn open_stream(lines: String) -> Response<Answer> {
    let lines =
        futures::stream::once(async move { Ok::<_, Infallible>(http_body::Frame::data(bytes::Bytes::from(lines))) });
    let body = http_body_util::StreamBody::new(lines.chain(futures::stream::pending()));
    Response::new(Answer::new(body))
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn streamed_list_is_told_in_order_and_live_changes_follow() {
    let (told, _) = run(Duration::from_secs(5), |query, _| {
        assert!(query.contains("sendInitialEvents=true"), "{query}");
        let lines = event("ADDED", "a", 1) + &end_of_list(5) + &event("MODIFIED", "a", 6) + &event("DELETED", "a", 7);
        open_stream(lines)
    })
    .await;
    assert_eq!(told, ["begin", "list a", "end", "live a", "gone a"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn server_without_streaming_lists_is_read_in_pages() {
    let (told, _) = run(Duration::from_secs(5), |query, _| {
        if query.contains("sendInitialEvents=true") {
            status(422, "Invalid")
        } else if query.contains("watch=true") {
            open_stream(event("ADDED", "b", 9))
        } else {
            assert!(query.contains("limit=200"), "{query}");
            let list = "{\"kind\":\"StorageClassList\",\"apiVersion\":\"storage.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"8\"},\
                        \"items\":[{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"provisioner\":\"p\"}]}";
            Response::new(whole(list.to_owned()))
        }
    })
    .await;
    assert_eq!(told, ["begin", "list a", "end", "live b"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn streaming_list_without_end_is_given_up_for_pages() {
    let (told, _) = run(Duration::from_secs(60), |query, _| {
        if query.contains("sendInitialEvents=true") {
            open_stream(event("ADDED", "a", 1))
        } else if query.contains("watch=true") {
            open_stream(String::new())
        } else {
            let list = "{\"kind\":\"StorageClassList\",\"apiVersion\":\"storage.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"8\"},\"items\":[]}";
            Response::new(whole(list.to_owned()))
        }
    })
    .await;
    assert_eq!(told, ["begin", "list a", "begin", "end"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn missing_right_makes_no_hot_loop() {
    let (told, requests) = run(Duration::from_secs(120), |_, _| status(403, "Forbidden")).await;
    assert!(told.is_empty());
    assert!((4..=16).contains(&requests), "{requests} requests in two minutes");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn watch_that_fell_behind_lists_again() {
    let (told, _) = run(Duration::from_secs(10), |_, nth| {
        let gone = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"too old\",\"reason\":\"Expired\",\"code\":410}}\n";
        let name = if nth == 1 { "a" } else { "b" };
        let more = if nth == 1 { gone } else { "" };
        open_stream(event("ADDED", name, 1) + &end_of_list(5) + more)
    })
    .await;
    assert_eq!(told, ["begin", "list a", "end", "begin", "list b", "end"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn everything_is_listed_again_within_an_hour() {
    let (told, _) = run(Duration::from_secs(3601), |_, _| open_stream(end_of_list(5))).await;
    let lists = told.iter().filter(|line| *line == "begin").count();
    assert!(lists >= 2, "{told:?}");
}
