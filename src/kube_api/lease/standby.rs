//! Waiting for the Lease: by watching it where that is allowed, else by looking at it every few seconds.
//!
//! Promises: a released Lease is taken at once (watch) or within one look; an expired one is read again before it
//! is taken, because a watch may have gone silent; a stop ends the waiting at once, but never an own write whose
//! outcome would stay unknown.

use super::{Candidate, LeaseConfig, Seen, Step, StopTokens, is_outdated};
use crate::kube_api::objects::with_query;
use futures::TryStreamExt;
use http::Request;
use kube::core::WatchEvent;
use serde_json::Value;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The server ends a watch after this time, below the five minutes after which networks cut idle connections.
const WATCH_SECONDS: u32 = 290;
/// client-go adds up to this part of the retry period, so that standbys do not look in step.
const JITTER: f64 = 1.2;

/// Why waiting ended.
enum Woken {
    /// Look at the Lease again.
    Look,
    /// The watch is not allowed here; look from time to time.
    NoWatch,
    /// The watch ended; look after the usual time.
    WatchEnded,
}

impl Candidate {
    /// Waits until the Lease is ours; the time our write was sent. Nothing if told to stop first.
    pub(super) async fn acquire(&self, seen: &mut Seen, tokens: &StopTokens) -> Option<Instant> {
        let mut may_watch = true;
        let mut told = String::new();
        loop {
            let looked = Instant::now();
            let read = tokio::select! {
                biased;
                () = tokens.drain.cancelled() => return None,
                () = tokens.stop.cancelled() => return None,
                read = self.read() => read,
            };
            let failure = match read {
                Ok(lease) => {
                    seen.observe(lease, self.local());
                    match self.next_step(seen) {
                        Step::Wait { .. } => None,
                        Step::Create | Step::Take | Step::Renew => match self.write(seen).await {
                            Ok((lease, sent)) => {
                                seen.observe(Some(lease), self.local());
                                return Some(sent);
                            }
                            // Somebody was faster; the watch or the next look shows who.
                            Err(failure) if is_outdated(&failure) => Some(String::new()),
                            Err(failure) => Some(failure.to_string()),
                        },
                    }
                }
                Err(failure) => Some(failure.to_string()),
            };
            self.tell(&mut told, failure.as_deref().unwrap_or_default());
            let next_look = looked + self.jittered(self.config.retry_period);
            tokio::select! {
                biased;
                () = tokens.drain.cancelled() => return None,
                () = tokens.stop.cancelled() => return None,
                () = self.wait(seen, next_look, failure.is_some(), &mut may_watch) => {}
            }
        }
    }

    /// Waits for a reason to look again.
    async fn wait(&self, seen: &mut Seen, next_look: Instant, failed: bool, may_watch: &mut bool) {
        if failed || !*may_watch {
            sleep_until(self.expiry(seen).map_or(next_look, |at| at.min(next_look))).await;
            return;
        }
        match self.watch(seen).await {
            Woken::Look => {}
            Woken::WatchEnded => sleep_until(next_look).await,
            Woken::NoWatch => {
                *may_watch = false;
                sleep_until(next_look).await;
            }
        }
    }

    /// Follows the Lease until it is free or expired.
    async fn watch(&self, seen: &mut Seen) -> Woken {
        let Some(request) = watch_request(&self.config, seen.metadata("resourceVersion")) else {
            return Woken::NoWatch;
        };
        let silent = Instant::now() + Duration::from_secs(u64::from(WATCH_SECONDS)) + self.config.duration;
        let opened = tokio::select! {
            biased;
            () = sleep_until(self.expiry(seen).unwrap_or(silent)) => return Woken::Look,
            opened = self.client.request_events::<Value>(request) => opened,
        };
        let stream = match opened {
            Ok(stream) => stream,
            Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403 | 404 | 405) => {
                tracing::info!(
                    lease = %self.config.name,
                    "The Lease cannot be watched (right \"watch\" on leases), it is read from time to time instead: {}",
                    status.message
                );
                return Woken::NoWatch;
            }
            Err(_) => return Woken::WatchEnded,
        };
        let mut stream = pin!(stream);
        loop {
            let event = tokio::select! {
                biased;
                event = stream.try_next() => event,
                () = sleep_until(self.expiry(seen).unwrap_or(silent)) => return Woken::Look,
            };
            match event {
                Ok(Some(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => {
                    seen.observe(Some(lease), self.local());
                    if !matches!(self.next_step(seen), Step::Wait { .. }) {
                        return Woken::Look;
                    }
                }
                Ok(Some(WatchEvent::Deleted(_))) => return Woken::Look,
                Ok(Some(WatchEvent::Bookmark(_))) => {}
                Ok(Some(WatchEvent::Error(_)) | None) | Err(_) => return Woken::WatchEnded,
            }
        }
    }

    /// When the record expires unless it changes; nothing if nobody is waited for.
    fn expiry(&self, seen: &Seen) -> Option<Instant> {
        match self.next_step(seen) {
            Step::Wait { until } => Some(self.began + until),
            Step::Create | Step::Take | Step::Renew => None,
        }
    }

    fn jittered(&self, period: Duration) -> Duration {
        period + self.random.duration_below(period.mul_f64(JITTER))
    }

    /// One line per cause, not one per look.
    fn tell(&self, told: &mut String, failure: &str) {
        if failure != told && !failure.is_empty() {
            tracing::warn!(lease = %self.config.name, "The Lease can be neither read nor taken: {failure}");
        }
        failure.clone_into(told);
    }
}

/// Nothing if the configured names make no path.
fn watch_request(config: &LeaseConfig, version: &str) -> Option<Request<Vec<u8>>> {
    let (name, seconds) = (format!("metadata.name={}", config.name), WATCH_SECONDS.to_string());
    let query =
        [("watch", "true"), ("fieldSelector", &name), ("resourceVersion", version), ("timeoutSeconds", &seconds)];
    let url = with_query(&config.path().collection().ok()?, query.into_iter());
    Request::get(url).body(Vec::new()).ok()
}
