//! One Lease behind an API: optimistic locking, a watch, and faults on demand.

use crate::random::Random;
use bytes::Bytes;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{Stream, StreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) gets: u32,
    pub(super) puts: u32,
}

#[derive(Default)]
struct World {
    lease: Option<Value>,
    version: u64,
    watchers: Vec<UnboundedSender<Bytes>>,
    events: Vec<Value>,
    counts: Counts,
    delay: Duration,
    failing: bool,
    watch_forbidden: bool,
    swallow: bool,
    unreliable: Option<Random>,
}

#[derive(Clone, Default)]
pub(super) struct Api(Arc<Mutex<World>>);

/// What happens to one call.
struct Fate {
    before: Duration,
    after: Duration,
    fails: Option<Fails>,
}

/// Whether a failing call takes effect.
#[derive(Clone, Copy, PartialEq)]
enum Fails {
    Before,
    After,
}

type Answer = (u16, UnsyncBoxBody<Bytes, Infallible>);

impl World {
    fn store(&mut self, mut lease: Value) -> Answer {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        lease["metadata"]["uid"] = json!("lease-uid");
        self.lease = Some(lease.clone());
        self.notify("MODIFIED", &lease);
        plain(200, &lease)
    }

    fn notify(&mut self, kind: &str, lease: &Value) {
        let line = Bytes::from(format!("{}\n", json!({ "type": kind, "object": lease })));
        self.watchers.retain(|watcher| watcher.unbounded_send(line.clone()).is_ok());
    }

    fn serve(&mut self, method: &Method, path: &str, body: Value) -> Answer {
        if path.ends_with("/events") {
            self.events.push(body.clone());
            return plain(201, &body);
        }
        match (method.as_str(), self.lease.clone()) {
            ("GET", Some(lease)) => plain(200, &lease),
            ("GET" | "PUT", None) => refused(404),
            ("POST", None) => self.store(body),
            ("PUT", Some(lease)) if lease["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"] => {
                self.store(body)
            }
            _ => refused(409),
        }
    }

    fn watch(&mut self, path: &str) -> UnboundedReceiver<Bytes> {
        let (sender, receiver) = unbounded();
        self.watchers.push(sender);
        if let Some(lease) = self.lease.clone()
            && !path.contains(&format!("resourceVersion={}&", self.version))
        {
            self.notify("MODIFIED", &lease);
        }
        receiver
    }
}

impl Api {
    /// Delays every call by up to 4 s before and after it takes effect, and fails one in ten either way; watches end
    /// now and then; a client is cut off from time to time, for up to 40 s: what it sends then arrives late or never.
    pub(super) fn unreliable(random: Random) -> Self {
        let api = Self::default();
        api.world().unreliable = Some(random);
        api
    }

    pub(super) fn client(&self) -> Client {
        let api = self.clone();
        let cut_until = Arc::new(Mutex::new(Instant::now()));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (api, cut_until) = (api.clone(), Arc::clone(&cut_until));
            // Spawned: a caller that gives up does not take back what it sent.
            let answer = tokio::spawn(async move { api.answer(request, &cut_until).await });
            async move {
                let (status, body) = answer.await??;
                let mut response = Response::new(body);
                *response.status_mut() = http::StatusCode::from_u16(status)?;
                Ok::<_, tower::BoxError>(response)
            }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>, cut_until: &Mutex<Instant>) -> Result<Answer, tower::BoxError> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.to_string();
        if path.contains("watch=true") {
            if self.world().watch_forbidden {
                return Ok(refused(403));
            }
            let receiver = self.world().watch(&path);
            return Ok((200, stream(receiver)));
        }
        let bytes = body.collect().await?.to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let fate = self.fate(&parts.method);
        let cut = self.cut(cut_until);
        sleep(fate.before + cut).await;
        if fate.fails == Some(Fails::Before) {
            return Ok(refused(503));
        }
        let answer = self.world().serve(&parts.method, &path, body);
        sleep(fate.after).await;
        Ok(if fate.fails.is_some() { refused(503) } else { answer })
    }

    /// How much longer the client is cut off.
    fn cut(&self, cut_until: &Mutex<Instant>) -> Duration {
        let Some(random) = self.world().unreliable.clone() else { return Duration::ZERO };
        let mut until = cut_until.lock().unwrap();
        let now = Instant::now();
        if *until <= now && random.below(25) == 0 {
            *until = now + random.duration_below(Duration::from_secs(40));
        }
        until.saturating_duration_since(now)
    }

    fn fate(&self, method: &Method) -> Fate {
        let mut world = self.world();
        match *method {
            Method::GET => world.counts.gets += 1,
            Method::PUT => world.counts.puts += 1,
            _ => {}
        }
        if *method == Method::PUT && std::mem::take(&mut world.swallow) {
            return Fate { before: Duration::from_hours(1), after: Duration::ZERO, fails: None };
        }
        let Some(random) = world.unreliable.clone() else {
            let fails = world.failing.then_some(Fails::Before);
            return Fate { before: world.delay, after: Duration::ZERO, fails };
        };
        if random.below(20) == 0 {
            world.watchers.clear();
        }
        let slow = Duration::from_millis(if random.below(5) == 0 { 4000 } else { 50 });
        let fails = match random.below(20) {
            0 => Some(Fails::Before),
            1 => Some(Fails::After),
            _ => None,
        };
        Fate { before: random.duration_below(slow), after: random.duration_below(slow), fails }
    }

    pub(super) fn set_lease(&self, spec: &Value) {
        self.world().store(json!({ "metadata": { "name": "lock", "namespace": "ns" }, "spec": spec }));
    }

    pub(super) fn delete(&self) {
        let mut world = self.world();
        if let Some(lease) = world.lease.take() {
            world.notify("DELETED", &lease);
        }
    }

    pub(super) fn field(&self, name: &str) -> Value {
        self.world().lease.as_ref().map(|lease| lease["spec"][name].clone()).unwrap_or_default()
    }

    pub(super) fn counts(&self) -> Counts {
        self.world().counts
    }

    pub(super) fn events(&self) -> Vec<Value> {
        self.world().events.clone()
    }

    pub(super) fn set_delay(&self, delay: Duration) {
        self.world().delay = delay;
    }

    pub(super) fn set_failing(&self, failing: bool) {
        self.world().failing = failing;
    }

    pub(super) fn set_watch_allowed(&self, allowed: bool) {
        self.world().watch_forbidden = !allowed;
    }

    /// The next PUT is never answered.
    pub(super) fn swallow_next_write(&self) {
        self.world().swallow = true;
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

fn stream(lines: impl Stream<Item = Bytes> + Send + 'static) -> UnsyncBoxBody<Bytes, Infallible> {
    StreamBody::new(lines.map(|line| Ok(Frame::data(line)))).boxed_unsync()
}

fn plain(status: u16, body: &Value) -> Answer {
    (status, Full::new(Bytes::from(body.to_string())).boxed_unsync())
}

fn refused(code: u16) -> Answer {
    let status = json!({ "kind": "Status", "status": "Failure", "code": code, "message": format!("code {code}") });
    plain(code, &status)
}
