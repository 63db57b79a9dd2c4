//! Several candidates on one Lease of an API double that checks resourceVersions and is slow and unreliable on
//! demand.

mod api;

use super::{Candidate, LeaseConfig, LeaseEnd, LeaseState, StopTokens, identity};
use crate::clock::Clock;
use crate::kube_api::events::recorder;
use crate::random::Random;
use api::Api;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

struct Running {
    state: watch::Receiver<LeaseState>,
    tokens: StopTokens,
    end: JoinHandle<LeaseEnd>,
}

impl Running {
    fn leads(&self) -> bool {
        *self.state.borrow() == LeaseState::Leading
    }

    async fn led_within(&mut self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.state.wait_for(|state| *state == LeaseState::Leading)).await.is_ok()
    }
}

fn clock() -> Clock {
    Clock::simulated(Timestamp::from_second(1_700_000_000).unwrap())
}

fn config(name: &str) -> LeaseConfig {
    LeaseConfig::new("lock", "ns", name)
}

fn start(api: &Api, config: LeaseConfig) -> Running {
    let tokens = StopTokens::default();
    let (sender, state) = watch::channel(LeaseState::Standby);
    let seed = u64::try_from(config.identity.len()).unwrap();
    let candidate = Candidate::new(api.client(), config, clock(), Random::seeded(seed));
    let end = tokio::spawn(candidate.lead(sender, tokens.clone()));
    Running { state, tokens, end }
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn first_candidate_creates_the_lease_and_the_second_waits() {
    let api = Api::default();
    let one = start(&api, config("one"));
    seconds(1).await;
    let two = start(&api, config("two"));
    seconds(60).await;
    assert_eq!((one.leads(), two.leads(), api.field("holderIdentity")), (true, false, json!("one")));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn idle_leader_sends_one_put_per_retry_period_and_no_get() {
    let api = Api::default();
    let _one = start(&api, config("one"));
    seconds(1).await;
    let before = api.counts();
    seconds(30).await;
    let after = api.counts();
    assert_eq!((after.puts - before.puts, after.gets - before.gets), (6, 0));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn watching_standby_takes_a_released_lease_at_once() {
    let api = Api::default();
    let mut one = start(&api, config("one"));
    assert!(one.led_within(Duration::from_secs(1)).await);
    let mut two = start(&api, config("two"));
    seconds(42).await;
    one.tokens.stop.cancel();
    assert!(two.led_within(Duration::from_millis(100)).await);
    assert_eq!(one.end.await.unwrap(), LeaseEnd::Released);
    assert_eq!(api.field("leaseTransitions"), json!(1));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn standby_without_the_right_to_watch_looks_every_five_to_eleven_seconds() {
    let api = Api::default();
    api.set_watch_allowed(false);
    let mut one = start(&api, config("one"));
    assert!(one.led_within(Duration::from_secs(1)).await);
    let mut two = start(&api, config("two"));
    seconds(30).await;
    let before = api.counts();
    seconds(110).await;
    let gets = api.counts().gets - before.gets;
    assert!((10..=22).contains(&gets), "{gets} looks in 110 s");
    one.tokens.stop.cancel();
    assert!(two.led_within(Duration::from_secs(11)).await);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn leader_asked_to_drain_keeps_the_lease_until_told_to_stop() {
    let api = Api::default();
    let one = start(&api, config("one"));
    seconds(1).await;
    let two = start(&api, config("two"));
    one.tokens.drain.cancel();
    seconds(60).await;
    assert_eq!((one.leads(), two.leads()), (true, false));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn draining_standby_gives_up_at_once() {
    let api = Api::default();
    let _one = start(&api, config("one"));
    seconds(1).await;
    let two = start(&api, config("two"));
    seconds(3).await;
    two.tokens.drain.cancel();
    let began = Instant::now();
    assert_eq!(two.end.await.unwrap(), LeaseEnd::Released);
    assert_eq!((began.elapsed(), api.field("holderIdentity")), (Duration::ZERO, json!("one")));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn lease_won_after_the_stop_is_given_back() {
    let api = Api::default();
    api.set_delay(Duration::from_secs(2));
    let one = start(&api, config("one"));
    seconds(3).await;
    one.tokens.drain.cancel();
    assert_eq!(one.end.await.unwrap(), LeaseEnd::Released);
    assert_eq!((*one.state.borrow(), api.field("holderIdentity")), (LeaseState::Standby, json!("")));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn silent_holder_is_followed_after_the_lease_duration_whatever_its_clock_says() {
    let api = Api::default();
    api.set_lease(&json!({ "holderIdentity": "go-host", "leaseDurationSeconds": 15,
        "acquireTime": "1999-01-01T00:00:00.000000Z", "renewTime": "2099-01-01T00:00:00.000000Z" }));
    let mut one = start(&api, config("one"));
    assert!(!one.led_within(Duration::from_millis(14_900)).await);
    assert!(one.led_within(Duration::from_millis(200)).await);
    assert_eq!(api.field("leaseTransitions"), json!(1));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn renewing_holder_of_the_go_kind_is_never_disturbed() {
    let api = Api::default();
    let mut one = None;
    for stamp in 0..20 {
        let stamp = Timestamp::from_second(stamp).unwrap();
        api.set_lease(&json!({ "holderIdentity": "go-host", "leaseDurationSeconds": 15,
            "renewTime": format!("{stamp:.6}"), "leaseTransitions": 4 }));
        one.get_or_insert_with(|| start(&api, config("one")));
        seconds(5).await;
    }
    assert!(!one.unwrap().leads());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn leader_that_cannot_renew_stops_before_the_lease_expires() {
    let api = Api::default();
    let one = start(&api, config("one"));
    seconds(1).await;
    api.set_failing(true);
    let began = Instant::now();
    let end = one.end.await.unwrap();
    assert!(matches!(&end, LeaseEnd::Lost { reason } if reason.contains("503")), "{end:?}");
    assert!((Duration::from_secs(10)..Duration::from_secs(14)).contains(&began.elapsed()), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn failures_shorter_than_the_renew_deadline_cost_nothing() {
    let api = Api::default();
    let one = start(&api, config("one"));
    seconds(4).await;
    api.set_failing(true);
    seconds(7).await;
    api.set_failing(false);
    seconds(60).await;
    assert_eq!((one.leads(), api.field("leaseTransitions")), (true, json!(0)));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn answers_that_take_six_seconds_are_fast_enough() {
    let api = Api::default();
    let one = start(&api, config("one"));
    seconds(1).await;
    api.set_delay(Duration::from_secs(6));
    seconds(120).await;
    assert!(one.leads());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn call_that_never_returns_does_not_cost_the_lease() {
    let api = Api::default();
    let one = start(&api, config("one"));
    seconds(1).await;
    api.swallow_next_write();
    seconds(60).await;
    assert!(one.leads());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn lease_taken_by_another_is_lost_with_its_name() {
    let api = Api::default();
    let one = start(&api, config("one"));
    seconds(1).await;
    api.set_lease(&json!({ "holderIdentity": "thief", "leaseDurationSeconds": 15 }));
    assert_eq!(one.end.await.unwrap(), LeaseEnd::Lost { reason: "the Lease is held by \"thief\" now".into() });
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deleted_lease_is_made_again_by_its_leader() {
    let api = Api::default();
    let one = start(&api, config("one"));
    seconds(1).await;
    api.delete();
    seconds(60).await;
    assert_eq!((one.leads(), api.field("holderIdentity")), (true, json!("one")));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn lease_is_kept_on_a_stop_where_releasing_is_off() {
    let api = Api::default();
    let one = start(&api, LeaseConfig { release_on_stop: false, ..config("one") });
    seconds(1).await;
    one.tokens.stop.cancel();
    assert_eq!(one.end.await.unwrap(), LeaseEnd::Released);
    assert_eq!(api.field("holderIdentity"), json!("one"));
}

#[test]
fn hosts_of_one_name_have_different_identities() {
    let random = Random::seeded(7);
    let (one, two) = (identity("node.a", &random), identity("node.a", &random));
    assert!(one.starts_with("node-a-") && one != two, "{one} {two}");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn new_leader_is_announced_on_the_lease() {
    let api = Api::default();
    let (speaker, sink) = recorder(api.client(), "driver", clock(), Random::seeded(1), Arc::new(()));
    let (sender, _state) = watch::channel(LeaseState::Standby);
    let candidate = Candidate::new(api.client(), config("one"), clock(), Random::seeded(1))
        .announcing(speaker.speaking_as("driver/host.a"));
    let _leads = tokio::spawn(candidate.lead(sender, StopTokens::default()));
    let cancel = tokio_util::sync::CancellationToken::new();
    let _sink = tokio::spawn(sink.run(cancel));
    seconds(1).await;
    let event = api.events().remove(0);
    assert_eq!(
        (&event["reason"], &event["message"], &event["source"]["component"], &event["involvedObject"]["uid"]),
        (&json!("LeaderElection"), &json!("one became leader"), &json!("driver/host.a"), &json!("lease-uid"))
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn health_fails_only_when_a_leader_has_long_stopped_renewing() {
    let candidate = Candidate::new(Api::default().client(), config("one"), clock(), Random::seeded(1));
    let health = candidate.health();
    assert_eq!(health.check(), Ok(()));
    health.set(Some(Instant::now()));
    seconds(35).await;
    assert_eq!(health.check(), Ok(()));
    seconds(1).await;
    assert_eq!(health.check(), Err("failed election to renew leadership on lease lock".into()));
}

/// Runs candidates that come and go over an unreliable API for half an hour; the most that ever led at once, and how
/// often leadership was won.
async fn most_leaders_at_once(seed: u64) -> (i64, i64) {
    let random = Random::seeded(seed);
    let api = Api::unreliable(Random::seeded(seed + 1000));
    let (now, most, won) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let mut tasks = Vec::new();
    for number in 0..4 {
        let (api, random) = (api.clone(), random.clone());
        let (now, most, won) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&won));
        tasks.push(tokio::spawn(async move {
            for life in 0.. {
                sleep(random.duration_below(Duration::from_secs(20))).await;
                let mut one = start(&api, config(&format!("{number}-{life}")));
                let lives = random.duration_below(Duration::from_secs(200));
                let tokens = one.tokens.clone();
                let stopper = tokio::spawn(async move {
                    sleep(lives).await;
                    tokens.drain.cancel();
                    sleep(Duration::from_secs(5)).await;
                    tokens.stop.cancel();
                });
                if one.state.wait_for(|state| *state == LeaseState::Leading).await.is_ok() {
                    won.fetch_add(1, Ordering::Relaxed);
                    most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    one.state.wait_for(|state| *state == LeaseState::Standby).await.ok();
                    now.fetch_sub(1, Ordering::Relaxed);
                }
                one.end.await.unwrap();
                stopper.abort();
            }
        }));
    }
    seconds(1800).await;
    for task in tasks {
        task.abort();
    }
    (most.load(Ordering::Relaxed), won.load(Ordering::Relaxed))
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn never_do_two_lead_whatever_the_api_does() {
    for seed in 0..8 {
        let (most, won) = most_leaders_at_once(seed).await;
        assert_eq!(most, 1, "seed {seed}");
        assert!(won > 3, "seed {seed}: leadership was won {won} times in half an hour");
    }
}
