//! Watches against a scripted API server, on a paused clock.

use super::*;
use crate::kube_api::client::{Clients, Rates};
use crate::kube_api::limiter::ThrottleObserver;
use crate::model::Volume;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use std::collections::BTreeSet;
use std::sync::Mutex;
use tower::BoxError;

/// One piece of an answer.
#[derive(Clone)]
enum Piece {
    Text(String),
    Pause(Duration),
    Cut,
    /// Says nothing more and stays open.
    Silence,
}

type Answers = std::collections::VecDeque<(u16, Vec<Piece>)>;

/// A server with prepared answers; when they run out it accepts and says nothing.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<Answers>>,
    /// Seconds since the start and the interesting part of each request.
    requests: Arc<Mutex<Vec<(u64, String)>>>,
    heard: Arc<Mutex<Vec<String>>>,
    resync: Resync,
    pages_only: Arc<AtomicBool>,
    seed: u64,
}

struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Observer<Volume> for Heard {
    fn list_begins(&mut self) {
        self.note("begins".to_owned());
    }
    fn seen(&mut self, object: Volume, fresh: bool) {
        self.note(format!("{}{}", if fresh { "fresh " } else { "" }, object.metadata.name()));
    }
    fn gone(&mut self, object: Volume) {
        self.note(format!("gone {}", object.metadata.name()));
    }
    fn list_ends(&mut self) {
        self.note("ends".to_owned());
    }
    fn unavailable(&mut self, error: &ApiError) {
        self.note(format!("{:?}", error.kind));
    }
}

impl Server {
    fn then(self, code: u16, pieces: impl IntoIterator<Item = Piece>) -> Self {
        self.answers.lock().unwrap().push_back((code, pieces.into_iter().collect()));
        self
    }

    /// Watches for `secs` of paused time; gives what the observer heard and what the server was asked.
    async fn watched_for(&self, secs: u64) -> (Vec<String>, Vec<(u64, String)>) {
        let began = Instant::now();
        let service = tower::service_fn({
            let server = self.clone();
            move |request: Request<Body>| std::future::ready(Ok::<_, BoxError>(server.answer(began, &request)))
        });
        let nobody: Arc<dyn ThrottleObserver> = Arc::new(());
        let api = Api::<Volume>::all(Clients::over(service, Rates::default(), &nobody).watch);
        let mut settings = WatchSettings::new("persistentvolumes", Random::seeded(self.seed), self.pages_only.clone());
        settings.resync = self.resync.clone();
        let cancel = CancellationToken::new();
        let ready = Readiness::new();
        let watch = watch(api, Heard(self.heard.clone()), settings, ready.handle(), cancel.clone());
        let until = async {
            let is_ready = async {
                ready.all_ready().await;
                self.heard.lock().unwrap().push("ready".to_owned());
                std::future::pending::<()>().await;
            };
            let _ = tokio::time::timeout(Duration::from_secs(secs), is_ready).await;
            cancel.cancel();
        };
        tokio::join!(watch, until);
        (self.heard.lock().unwrap().clone(), self.requests.lock().unwrap().clone())
    }

    fn answer(
        &self,
        began: Instant,
        request: &Request<Body>,
    ) -> Response<impl http_body::Body<Data = Bytes, Error = BoxError> + use<>> {
        let query = request.uri().query().unwrap_or_default();
        let pairs = query.split('&').filter(|pair| {
            ["resourceVersion=", "sendInitialEvents=", "continue="].iter().any(|key| pair.starts_with(key))
        });
        let kind = if query.contains("watch=true") { "watch" } else { "list" };
        let line = std::iter::once(kind).chain(pairs).collect::<Vec<_>>().join(" ");
        self.requests.lock().unwrap().push((began.elapsed().as_secs(), line));
        let (code, pieces) = self.answers.lock().unwrap().pop_front().unwrap_or((200, vec![Piece::Silence]));
        let pieces = futures::stream::unfold(pieces.into_iter(), |mut pieces| async {
            loop {
                let frame = match pieces.next()? {
                    Piece::Text(text) => Ok(Frame::data(Bytes::from(text))),
                    Piece::Pause(time) => {
                        sleep(time).await;
                        continue;
                    }
                    Piece::Cut => Err(BoxError::from("connection reset")),
                    Piece::Silence => std::future::pending().await,
                };
                return Some((frame, pieces));
            }
        });
        Response::builder().status(code).body(StreamBody::new(Box::pin(pieces)).boxed_unsync()).unwrap()
    }
}

fn object(kind: &str, name: &str, version: u32) -> Piece {
    let metadata =
        format!(r#"{{"name":"{name}","resourceVersion":"{version}","labels":{{"x":"y"}},"managedFields":[]}}"#);
    Piece::Text(format!("{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{metadata},\"unknown\":[1]}}}}\n"))
}

fn list_end(version: u32) -> Piece {
    let metadata = format!(r#"{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}"#);
    Piece::Text(format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"PersistentVolume\",\"metadata\":{metadata}}}}}\n"
    ))
}

fn failure(code: u16, reason: &str) -> Piece {
    let status = format!(r#"{{"kind":"Status","code":{code},"reason":"{reason}","message":"why"}}"#);
    Piece::Text(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n"))
}

fn page(names: &[&str], next: &str) -> [Piece; 1] {
    let items = names.iter().map(|name| format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"1"}}}}"#));
    let items = items.collect::<Vec<_>>().join(",");
    let metadata = format!(r#"{{"resourceVersion":"50","continue":"{next}"}}"#);
    [Piece::Text(format!(r#"{{"kind":"List","metadata":{metadata},"items":[{items}]}}"#))]
}

fn pause(secs: u64) -> Piece {
    Piece::Pause(Duration::from_secs(secs))
}

const LIST: &str = "watch sendInitialEvents=true";

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn streamed_list_and_live_events_come_in_order() {
    let server = Server::default().then(
        200,
        [
            object("ADDED", "a", 1),
            object("ADDED", "b", 2),
            list_end(9),
            object("MODIFIED", "a", 10),
            object("DELETED", "b", 11),
            Piece::Silence,
        ],
    );
    let (heard, requests) = server.watched_for(5).await;
    assert_eq!(heard, ["begins", "a", "b", "ends", "fresh a", "gone b", "ready"]);
    assert_eq!(requests, [(0, LIST.to_owned())]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn event_may_arrive_in_pieces_or_with_others() {
    let Piece::Text(line) = object("ADDED", "ä", 1) else { unreachable!() };
    let bytes = line.char_indices().map(|(at, char)| Piece::Text(line[at..at + char.len_utf8()].to_owned()));
    let Piece::Text(end) = list_end(9) else { unreachable!() };
    let both = Piece::Text(format!("{line}\n{end}"));
    let server = Server::default().then(200, bytes.chain([both, Piece::Silence]));
    assert_eq!(server.watched_for(5).await.0, ["begins", "ä", "ä", "ends", "ready"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn server_without_streaming_lists_is_read_in_pages_for_ever_after() {
    let server = Server::default()
        .then(
            422,
            [Piece::Text(
                r#"{"kind":"Status","reason":"Invalid","message":"sendInitialEvents: Forbidden"}"#.to_owned(),
            )],
        )
        .then(200, page(&["a", "b"], "next"))
        .then(200, page(&["c"], ""));
    let (heard, requests) = server.watched_for(5).await;
    assert_eq!(heard, ["begins", "a", "b", "c", "ends", "ready"]);
    let asked = requests.into_iter().map(|(_, line)| line).collect::<Vec<_>>();
    assert_eq!(asked, [LIST, "list", "list continue=next", "watch resourceVersion=50"]);
    let again = Server { requests: Arc::default(), ..server.clone() }.then(200, page(&[], ""));
    assert_eq!(again.watched_for(5).await.1[0].1, "list");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn list_that_is_cut_begins_anew_in_pages() {
    let server = Server::default().then(200, [object("ADDED", "a", 1), Piece::Cut]).then(200, page(&["a", "b"], ""));
    let (heard, _) = server.watched_for(5).await;
    assert_eq!(heard, ["begins", "a", "Transport", "begins", "a", "b", "ends", "ready"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn list_that_never_ends_is_read_in_pages() {
    let server = Server::default().then(200, [object("ADDED", "a", 1), Piece::Silence]).then(200, page(&["a"], ""));
    let (heard, requests) = server.watched_for(70).await;
    assert_eq!(heard, ["begins", "a", "Deadline", "begins", "a", "ends", "ready"]);
    assert_eq!(requests[1], (60, "list".to_owned()));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn cut_stream_goes_on_where_it_was() {
    let server = Server::default()
        .then(200, [list_end(9), pause(20), object("ADDED", "a", 12), Piece::Cut])
        .then(200, [object("ADDED", "b", 13), Piece::Silence]);
    let (heard, requests) = server.watched_for(30).await;
    assert_eq!(heard, ["begins", "ends", "ready", "fresh a", "Transport", "fresh b"]);
    assert_eq!(requests[1].1, "watch resourceVersion=12");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn bookmark_moves_the_place_to_go_on_from() {
    let mark =
        Piece::Text("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"77\"}}}\n".to_owned());
    let server = Server::default().then(200, [list_end(9), pause(20), mark]);
    let (_, requests) = server.watched_for(30).await;
    assert_eq!(requests[1], (20, "watch resourceVersion=77".to_owned()));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn too_old_in_the_stream_means_a_new_list_that_shows_the_deletions() {
    let server = Server::default()
        .then(200, [object("ADDED", "a", 1), list_end(9), pause(20), failure(410, "Expired")])
        .then(200, [list_end(40), Piece::Silence]);
    let (heard, requests) = server.watched_for(30).await;
    assert_eq!(heard, ["begins", "a", "ends", "ready", "Gone", "begins", "ends"]);
    assert_eq!(requests[1].1, LIST);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn too_old_as_the_answer_means_a_new_list() {
    let server =
        Server::default().then(200, [list_end(9), pause(20)]).then(410, []).then(200, [list_end(40), Piece::Silence]);
    let asked = server.watched_for(30).await.1.into_iter().map(|(_, line)| line).collect::<Vec<_>>();
    assert_eq!(asked, [LIST, "watch resourceVersion=9", LIST]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn expired_page_begins_the_list_anew() {
    let server = Server::default().then(200, page(&["a"], "next")).then(410, []).then(200, page(&["b"], ""));
    server.pages_only.store(true, Ordering::Relaxed);
    assert_eq!(server.watched_for(5).await.0, ["begins", "a", "Gone", "begins", "b", "ends", "ready"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletion_missed_while_cut_off_shows_in_what_is_held_after_the_relist() {
    use crate::kube_api::sweep::Sweep;
    #[derive(Default)]
    struct Names {
        held: BTreeSet<String>,
        sweep: Sweep,
        swept: Arc<Mutex<Vec<String>>>,
    }
    impl Observer<Volume> for Names {
        fn list_begins(&mut self) {
            self.sweep.begin();
        }
        fn seen(&mut self, object: Volume, _: bool) {
            self.sweep.saw(object.metadata.name());
            self.held.insert(object.metadata.key());
        }
        fn gone(&mut self, object: Volume) {
            self.held.remove(&object.metadata.key());
        }
        fn list_ends(&mut self) {
            self.swept.lock().unwrap().extend(self.sweep.end(self.held.iter().cloned().collect()));
        }
    }
    let server = Server::default()
        .then(200, [object("ADDED", "a", 1), object("ADDED", "b", 2), list_end(9), pause(20), failure(410, "Expired")])
        .then(200, [object("ADDED", "b", 2), list_end(40), Piece::Silence]);
    let began = Instant::now();
    let double = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        std::future::ready(Ok::<_, BoxError>(double.answer(began, &request)))
    });
    let nobody: Arc<dyn ThrottleObserver> = Arc::new(());
    let api = Api::<Volume>::all(Clients::over(service, Rates::default(), &nobody).watch);
    let settings = WatchSettings::new("persistentvolumes", Random::seeded(7), Arc::default());
    let swept = Arc::new(Mutex::new(Vec::new()));
    let names = Names { swept: swept.clone(), ..Names::default() };
    let watch = watch(api, names, settings, Readiness::new().handle(), CancellationToken::new());
    let _ = tokio::time::timeout(Duration::from_secs(30), watch).await;
    assert_eq!(*swept.lock().unwrap(), ["a"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn missing_right_is_no_hot_loop_and_heals() {
    let mut server = Server::default();
    for _ in 0..20 {
        server = server.then(403, [Piece::Text(r#"{"kind":"Status","reason":"Forbidden","message":"no"}"#.to_owned())]);
    }
    let server = server.then(200, [list_end(9), Piece::Silence]);
    let (heard, requests) = server.watched_for(900).await;
    assert!(requests.iter().filter(|(at, _)| *at < 120).count() <= 12, "{requests:?}");
    let failed = heard.iter().take_while(|line| *line == "Forbidden").count();
    assert_eq!((failed, &heard[20..]), (20, &["begins".to_owned(), "ends".to_owned(), "ready".to_owned()][..]));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn streams_that_end_at_once_are_no_hot_loop() {
    let mut server = Server::default().then(200, [list_end(9)]);
    for _ in 0..100 {
        server = server.then(200, []);
    }
    let (_, requests) = server.watched_for(120).await;
    assert!(requests.len() <= 13, "{requests:?}");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn busy_server_is_left_alone_for_the_time_it_asks() {
    let busy = r#"{"kind":"Status","reason":"TooManyRequests","details":{"retryAfterSeconds":40}}"#;
    let server = Server::default().then(429, [Piece::Text(busy.to_owned())]);
    assert_eq!(server.watched_for(60).await.1[1].0, 40);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn silent_peer_is_left_and_the_stream_opened_again() {
    let server = Server::default().then(200, [list_end(9), Piece::Silence]);
    let (heard, requests) = server.watched_for(200).await;
    assert_eq!(requests[1], (160, "watch resourceVersion=9".to_owned()));
    assert_eq!(heard, ["begins", "ends", "ready"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn full_list_is_repeated_within_the_hour_at_a_random_time() {
    let mut times = std::collections::BTreeSet::new();
    for seed in 0..5 {
        let server = Server { seed, ..Server::default() }.then(200, [list_end(9), Piece::Silence]);
        let (_, requests) = server.watched_for(3600).await;
        let relists = requests.iter().filter(|(_, line)| line == LIST).map(|(at, _)| *at).collect::<Vec<_>>();
        assert!(matches!(relists[..], [0, 1800..3600, ..]), "{relists:?}");
        times.insert(relists[1]);
    }
    assert_eq!(times.len(), 5);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn resync_asks_for_a_full_list() {
    let server = Server::default().then(200, [list_end(9), Piece::Silence]).then(200, [list_end(12), Piece::Silence]);
    let resync = server.resync.clone();
    let ask = async {
        sleep(Duration::from_secs(5)).await;
        resync.request();
    };
    let ((heard, requests), ()) = tokio::join!(server.watched_for(10), ask);
    assert_eq!(heard, ["begins", "ends", "ready", "begins", "ends"]);
    assert_eq!(requests[1], (5, LIST.to_owned()));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn object_that_cannot_be_read_does_not_stop_the_others() {
    let odd = r#"{"metadata":{"name":"odd","resourceVersion":"3"},"spec":{"csi":7}}"#;
    let event = Piece::Text(format!("{{\"type\":\"MODIFIED\",\"object\":{odd}}}\n"));
    let list = format!(r#"{{"metadata":{{"resourceVersion":"50"}},"items":[{odd},{{"metadata":{{"name":"a"}}}}]}}"#);
    let server = Server::default()
        .then(200, [Piece::Text(list)])
        .then(200, [pause(1), event, object("ADDED", "b", 60), Piece::Silence]);
    server.pages_only.store(true, Ordering::Relaxed);
    assert_eq!(server.watched_for(5).await.0, ["begins", "a", "ends", "ready", "fresh b"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn bare_status_in_the_stream_is_an_error() {
    let server = Server::default()
        .then(200, [list_end(9), pause(20), Piece::Text("{\"kind\":\"Status\",\"code\":500}\n".to_owned())]);
    let (heard, _) = server.watched_for(30).await;
    assert_eq!(heard[3], "Server(500)");
}
