//! Limits how fast a client asks, and how long one call may take.
//!
//! Promises:
//! - token bucket: at most `burst` calls at once, `qps` a second in the long run, on tokio's clock;
//! - first come, first served, and callers of several lanes ([`in_lane`]) take turns: a hundred calls for one storage
//!   class delay a call for another by one place;
//! - a caller that gives up leaves its token to the next one;
//! - watches pass at once and have no deadline here ([`super::watch`] watches over them);
//! - the deadline of a call starts when it was let through, so that a long queue is not mistaken for a dead server
//!   (provisioning.md W30: the peer has no deadlines at all), and covers the whole answer.
//!
//! Not here: which calls share a bucket ([`super::client`]).

use super::error::DeadlinePassed;
use super::queue::Lane;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tower::{BoxError, Layer, Service, ServiceExt};

/// The answer body that all clients hand on.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// Told about each call that had to wait, for a metric (field-faults.md O04).
pub trait ThrottleObserver: Send + Sync {
    /// A call of this bucket waited that long before it was sent.
    fn throttled(&self, bucket: &'static str, waited: Duration);
}

/// Nobody listens.
impl ThrottleObserver for () {
    fn throttled(&self, _: &'static str, _: Duration) {}
}

/// Rate of one bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Calls a second in the long run. Zero means 5 and a negative number no limit, as in client-go.
    pub qps: f64,
    /// Calls at once after a rest. Zero or less means 10, as in client-go.
    pub burst: i64,
}

/// Wraps a service into a bucket and a deadline.
#[derive(Clone)]
pub struct LimitLayer {
    name: &'static str,
    bucket: Option<Arc<Turns>>,
    deadline: Duration,
    observer: Arc<dyn ThrottleObserver>,
}

/// See [`LimitLayer`].
#[derive(Clone)]
pub struct Limited<S> {
    inner: S,
    layer: LimitLayer,
}

/// A bucket and the lines before it. Whoever is first in the line of its lane may stand in line for the bucket, so that
/// each lane has one caller there.
struct Turns {
    bucket: Mutex<Bucket>,
    lines: StdMutex<BTreeMap<Lane, Weak<Mutex<()>>>>,
}

tokio::task_local! {
    static LANE: Lane;
}

/// Runs work whose calls stand in line together, apart from those of other lanes.
pub async fn in_lane<F: Future>(lane: Lane, work: F) -> F::Output {
    LANE.scope(lane, work).await
}

/// Token bucket as a single instant: when the bucket would be full again. Equal to counting tokens, without rounding
/// errors that add up.
#[derive(Debug)]
struct Bucket {
    per_call: Duration,
    full_at: Instant,
    capacity: Duration,
}

/// An answer that fails when its time is over.
struct TimedBody {
    inner: AnswerBody,
    limit: Duration,
    end: Pin<Box<Sleep>>,
}

// === impl LimitLayer ===

impl LimitLayer {
    /// A bucket of its own with this name; `None` lets all calls through at once.
    pub fn new(
        name: &'static str,
        limit: Option<Limit>,
        deadline: Duration,
        observer: Arc<dyn ThrottleObserver>,
    ) -> Self {
        let bucket = limit.and_then(Bucket::new).map(|bucket| Arc::new(Turns::before(bucket)));
        Self { name, bucket, deadline, observer }
    }

    /// Waits for a token. The locks are fair and held while waiting, so callers of a lane leave in the order they came.
    async fn pass(&self) {
        let Some(turns) = &self.bucket else { return };
        let came = Instant::now();
        let line = turns.line(LANE.try_with(Lane::clone).unwrap_or_default());
        let first = line.lock().await;
        let mut bucket = turns.bucket.lock().await;
        let free_at = bucket.next_free(Instant::now());
        sleep_until(free_at).await;
        bucket.take(Instant::now());
        drop((bucket, first));
        let waited = came.elapsed();
        if !waited.is_zero() {
            self.observer.throttled(self.name, waited);
        }
    }
}

impl<S> Layer<S> for LimitLayer {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited { inner, layer: self.clone() }
    }
}

// === impl Limited ===

impl<S, B> Service<Request<Body>> for Limited<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    /// Always ready: a call waits inside its own future, so that one class of calls never holds up another.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { inner, layer } = self.clone();
        Box::pin(async move {
            if is_watch(&request) {
                let answer = inner.oneshot(request).await.map_err(Into::into)?;
                return Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()));
            }
            layer.pass().await;
            let limit = layer.deadline;
            let end = Instant::now() + limit;
            let answer = timeout_at(end, inner.oneshot(request)).await.map_err(|_| DeadlinePassed(limit))?;
            let answer = answer.map_err(Into::into)?;
            Ok(answer.map(|body| {
                let inner = body.map_err(Into::into).boxed_unsync();
                TimedBody { inner, limit, end: Box::pin(sleep_until(end)) }.boxed_unsync()
            }))
        })
    }
}

/// Whether the request opens a watch.
fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

// === impl TimedBody ===

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let limit = self.limit;
        self.end.as_mut().poll(cx).map(|()| Some(Err(DeadlinePassed(limit).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

// === impl Turns ===

impl Turns {
    fn before(bucket: Bucket) -> Self {
        Self { bucket: Mutex::new(bucket), lines: StdMutex::default() }
    }

    /// The line of a lane. One in which nobody stands is forgotten when the next is begun.
    fn line(&self, lane: Lane) -> Arc<Mutex<()>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(&lane).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Mutex::new(()));
        lines.insert(lane, Arc::downgrade(&line));
        line
    }
}

// === impl Bucket ===

impl Bucket {
    /// A full bucket; `None` when there is no limit.
    fn new(limit: Limit) -> Option<Self> {
        let qps = if limit.qps == 0.0 { 5.0 } else { limit.qps };
        if qps.is_nan() || qps < 0.0 {
            return None;
        }
        let burst = if limit.burst <= 0 { 10 } else { limit.burst };
        // A rate near zero gives an endless interval: a year is as good and cannot overflow an instant.
        let per_call = Duration::try_from_secs_f64(qps.recip()).unwrap_or(YEAR).min(YEAR);
        let burst = u32::try_from(burst).unwrap_or(u32::MAX);
        let capacity = per_call.checked_mul(burst).unwrap_or(YEAR).min(YEAR).max(per_call);
        Some(Self { per_call, full_at: Instant::now(), capacity })
    }

    /// When the next call may leave.
    fn next_free(&self, now: Instant) -> Instant {
        let spent_until = self.full_at + self.per_call;
        spent_until.checked_sub(self.capacity).map_or(now, |free_at| free_at.max(now))
    }

    /// Takes one token at `now`.
    fn take(&mut self, now: Instant) {
        self.full_at = self.full_at.max(now) + self.per_call;
    }
}

/// Longest time between two calls.
const YEAR: Duration = Duration::from_hours(365 * 24);

#[cfg(test)]
mod tests {
    use super::*;

    type Log = Arc<StdMutex<Vec<u128>>>;

    #[derive(Default)]
    struct Waits(StdMutex<Vec<(&'static str, u128)>>);
    impl ThrottleObserver for Waits {
        fn throttled(&self, bucket: &'static str, waited: Duration) {
            self.0.lock().unwrap().push((bucket, waited.as_millis()));
        }
    }

    fn limited(limit: Limit, waits: Arc<Waits>) -> LimitLayer {
        LimitLayer::new("main", Some(limit), Duration::from_secs(30), waits)
    }

    /// Sends `count` calls at once; says after how many milliseconds each one arrived.
    async fn arrivals(layer: &LimitLayer, count: usize, uri: &'static str) -> Vec<u128> {
        let log = Log::default();
        let began = Instant::now();
        let service = layer.layer(tower::service_fn({
            let log = log.clone();
            move |_: Request<Body>| {
                log.lock().unwrap().push(began.elapsed().as_millis());
                std::future::ready(Ok::<_, BoxError>(Response::new(Body::empty())))
            }
        }));
        let calls = (0..count).map(|_| service.clone().oneshot(Request::get(uri).body(Body::empty()).unwrap()));
        futures::future::try_join_all(calls).await.unwrap();
        log.lock().unwrap().clone()
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn burst_leaves_at_once_and_the_rest_at_the_rate() {
        let layer = limited(Limit { qps: 5.0, burst: 3 }, Arc::default());
        assert_eq!(arrivals(&layer, 6, "/api").await, [0, 0, 0, 200, 400, 600]);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn rest_fills_the_bucket_up_to_the_burst_only() {
        let layer = limited(Limit { qps: 5.0, burst: 2 }, Arc::default());
        arrivals(&layer, 2, "/api").await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(arrivals(&layer, 3, "/api").await, [0, 0, 200]);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn zero_means_the_defaults_of_client_go() {
        let layer = limited(Limit { qps: 0.0, burst: 0 }, Arc::default());
        assert_eq!(arrivals(&layer, 12, "/api").await[9..], [0, 200, 400]);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn negative_rate_means_no_limit() {
        let layer = limited(Limit { qps: -1.0, burst: 1 }, Arc::default());
        assert_eq!(arrivals(&layer, 50, "/api").await, [0; 50]);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn tiny_rate_does_not_overflow() {
        let layer = limited(Limit { qps: 1e-300, burst: i64::MAX }, Arc::default());
        assert_eq!(arrivals(&layer, 1, "/api").await, [0]);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn watches_pass_an_empty_bucket() {
        let layer = limited(Limit { qps: 1.0, burst: 1 }, Arc::default());
        arrivals(&layer, 1, "/api").await;
        assert_eq!(arrivals(&layer, 1, "/api/v1/nodes?limit=5&watch=true").await, [0]);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn waiting_is_told_with_the_name_of_the_bucket() {
        let waits = Arc::new(Waits::default());
        arrivals(&limited(Limit { qps: 10.0, burst: 1 }, waits.clone()), 3, "/api").await;
        assert_eq!(*waits.0.lock().unwrap(), [("main", 100), ("main", 200)]);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn caller_that_gives_up_leaves_its_token_to_the_next() {
        let layer = limited(Limit { qps: 1.0, burst: 1 }, Arc::default());
        layer.pass().await;
        let impatient = tokio::time::timeout(Duration::from_millis(10), layer.pass());
        let began = Instant::now();
        let (gave_up, ()) = tokio::join!(impatient, layer.pass());
        assert!(gave_up.is_err());
        assert_eq!(began.elapsed().as_millis(), 1000);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn caller_of_another_lane_waits_for_one_place_of_a_crowd() {
        let layer = limited(Limit { qps: 1.0, burst: 1 }, Arc::default());
        layer.pass().await;
        let began = Instant::now();
        let crowd = futures::future::join_all((0..100).map(|_| in_lane(Lane::from("crowd"), layer.pass())));
        let other = in_lane(Lane::from("other"), async {
            layer.pass().await;
            began.elapsed().as_secs()
        });
        let (_, waited) = tokio::join!(crowd, other);
        assert_eq!((waited, began.elapsed().as_secs()), (2, 101));
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn deadline_starts_after_the_wait_and_covers_the_body() {
        let layer = limited(Limit { qps: 0.01, burst: 1 }, Arc::default());
        layer.pass().await;
        let service = layer.layer(tower::service_fn(|_: Request<Body>| async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let endless = futures::stream::pending::<Result<Frame<Bytes>, BoxError>>();
            Ok::<_, BoxError>(Response::new(http_body_util::StreamBody::new(endless)))
        }));
        let began = Instant::now();
        let answer = service.oneshot(Request::get("/api").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 120);
        let error = answer.into_body().collect().await.unwrap_err();
        assert_eq!((began.elapsed().as_secs(), error.to_string().as_str()), (130, "no complete answer within 30s"));
    }
}
