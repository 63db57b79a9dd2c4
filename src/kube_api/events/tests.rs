//! Events as the API server sees them.

use super::outbox::{Next, Now, Outbox, Outcome, QUEUE, Recorded};
use super::{EventObserver, EventSink, Recorder, Regarding, Severity, note::Note, recorder};
use crate::clock::Clock;
use crate::kube_api::fake_api::{Arrived, client};
use crate::random::Random;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const START: i64 = 1_700_000_000;

fn claim(name: &str) -> Regarding {
    Regarding {
        kind: "PersistentVolumeClaim".into(),
        api_version: "v1".into(),
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        resource_version: "7".into(),
    }
}

fn at(seconds: u64) -> Now {
    let wall = Timestamp::from_second(START + i64::try_from(seconds).unwrap()).unwrap();
    Now { wall, local: Duration::from_secs(seconds) }
}

fn failed(object: &str, message: &str) -> Note {
    Note::new("c".into(), claim(object), Severity::Warning, "ProvisioningFailed", message)
}

/// Records, sends and delivers one event at once; the answer is `(is patch, count, message)` or nothing.
fn told(outbox: &mut Outbox, note: Note, now: Now) -> Option<(bool, u32, String)> {
    outbox.record(note, 1, now);
    match outbox.next(now) {
        Next::Send(letter) => {
            outbox.finished(letter.key, Outcome::Delivered, now);
            Some((letter.exists, letter.count, letter.note.message))
        }
        Next::At(_) | Next::Idle => None,
    }
}

#[derive(Default)]
struct World {
    arrived: Mutex<Vec<Arrived>>,
    dropped: AtomicU64,
}

impl EventObserver for World {
    fn events_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

impl World {
    fn requests(&self) -> Vec<(String, String, Value)> {
        let arrived = self.arrived.lock().unwrap();
        arrived.iter().map(|a| (a.method.to_string(), a.content_type.clone(), a.body.clone())).collect()
    }

    fn methods(&self) -> Vec<String> {
        self.requests().into_iter().map(|(method, ..)| method).collect()
    }
}

/// A recorder over an API that answers by `status` (of method and number of requests before).
fn set_up(status: fn(&Arrived, usize) -> u16) -> (Arc<World>, Recorder, EventSink) {
    let world = Arc::new(World::default());
    let seen = Arc::clone(&world);
    let client = client(move |arrived: Arrived| {
        let seen = Arc::clone(&seen);
        async move {
            let before = seen.arrived.lock().unwrap().len();
            let code = status(&arrived, before);
            let body = arrived.body.clone();
            seen.arrived.lock().unwrap().push(arrived);
            (code, body)
        }
    });
    let clock = Clock::simulated(Timestamp::from_second(START).unwrap());
    let observer = Arc::clone(&world) as Arc<dyn EventObserver>;
    let (recorder, sink) = recorder(client, "driver_host_id", clock, Random::seeded(1), observer);
    (world, recorder, sink)
}

async fn drained(sink: EventSink) {
    let cancel = CancellationToken::new();
    cancel.cancel();
    sink.run(cancel).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn new_event_has_the_fields_of_the_go_sidecar() {
    let (world, recorder, sink) = set_up(|_, _| 201);
    recorder.normal(&claim("data"), "Provisioning", "text");
    drained(sink).await;
    let (method, kind, mut body) = world.requests().remove(0);
    let name = body["metadata"]["name"].take();
    let name = name.as_str().unwrap().strip_prefix("data.").unwrap();
    assert!(u64::from_str_radix(name, 16).is_ok(), "the name ends in a hexadecimal number: {name}");
    assert_eq!((method.as_str(), kind.as_str()), ("POST", "application/json"));
    assert_eq!(
        body,
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "name": null, "namespace": "shop" },
            "involvedObject": { "kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data",
                "uid": "uid-data", "apiVersion": "v1", "resourceVersion": "7" },
            "reason": "Provisioning", "message": "text", "type": "Normal", "count": 1,
            "source": { "component": "driver_host_id" },
            "reportingComponent": "driver_host_id", "reportingInstance": "", "eventTime": null,
            "firstTimestamp": "2023-11-14T22:13:20Z", "lastTimestamp": "2023-11-14T22:13:20Z",
        })
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn twelve_equal_events_cost_one_write() {
    let (world, recorder, sink) = set_up(|_, _| 201);
    for _ in 0..12 {
        recorder.warning(&claim("data"), "ProvisioningFailed", "no");
    }
    drained(sink).await;
    let requests = world.requests();
    assert_eq!((requests.len(), &requests[0].2["count"]), (1, &json!(12)));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn repeat_of_a_written_event_is_a_strategic_merge_patch_of_its_count() {
    let (world, recorder, sink) = set_up(|_, _| 201);
    let cancel = CancellationToken::new();
    let task = tokio::spawn(sink.run(cancel.clone()));
    recorder.warning(&claim("data"), "ProvisioningFailed", "no");
    tokio::time::sleep(Duration::from_secs(3)).await;
    recorder.warning(&claim("data"), "ProvisioningFailed", "no");
    cancel.cancel();
    task.await.unwrap();
    let (method, kind, body) = world.requests().remove(1);
    assert_eq!((method.as_str(), kind.as_str()), ("PATCH", "application/strategic-merge-patch+json"));
    assert_eq!(body, json!({ "count": 2, "lastTimestamp": "2023-11-14T22:13:23Z", "message": "no" }));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn patch_of_an_expired_event_becomes_a_new_event_with_the_whole_count() {
    let (world, recorder, sink) = set_up(|a, _| if a.method == "PATCH" { 404 } else { 201 });
    let cancel = CancellationToken::new();
    let task = tokio::spawn(sink.run(cancel.clone()));
    recorder.warning(&claim("data"), "ProvisioningFailed", "no");
    tokio::time::sleep(Duration::from_hours(2)).await;
    recorder.warning(&claim("data"), "ProvisioningFailed", "no");
    cancel.cancel();
    task.await.unwrap();
    assert_eq!(world.methods(), ["POST", "PATCH", "POST"]);
    assert_eq!(world.requests()[2].2["count"], 2);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn event_of_a_cluster_object_goes_to_namespace_default() {
    let (world, recorder, sink) = set_up(|_, _| 201);
    recorder.speaking_as("other").warning(
        &Regarding { namespace: String::new(), kind: "PersistentVolume".into(), ..claim("pv") },
        "VolumeFailedDelete",
        "no",
    );
    drained(sink).await;
    let arrived = world.arrived.lock().unwrap().remove(0);
    assert_eq!(arrived.path, "/api/v1/namespaces/default/events");
    assert_eq!(arrived.body["source"]["component"], "other");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn failed_write_is_tried_twelve_times_and_then_counted_as_lost() {
    let (world, recorder, sink) = set_up(|_, _| 503);
    let cancel = CancellationToken::new();
    let task = tokio::spawn(sink.run(cancel.clone()));
    recorder.normal(&claim("data"), "Provisioning", "text");
    tokio::time::sleep(Duration::from_secs(109)).await;
    let early = world.requests().len();
    tokio::time::sleep(Duration::from_mins(10)).await;
    cancel.cancel();
    task.await.unwrap();
    assert_eq!((early, world.requests().len(), world.dropped.load(Ordering::Relaxed)), (11, 12, 1));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn failing_object_does_not_hold_up_others() {
    let (world, recorder, sink) = set_up(|a, _| if a.body["involvedObject"]["name"] == "bad" { 500 } else { 201 });
    let cancel = CancellationToken::new();
    let task = tokio::spawn(sink.run(cancel.clone()));
    for object in ["bad", "a", "b", "c", "d", "e"] {
        recorder.normal(&claim(object), "Provisioning", "text");
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.requests().len(), 6);
    cancel.cancel();
    task.await.unwrap();
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn refused_event_is_not_tried_again() {
    let (world, recorder, sink) = set_up(|_, _| 422);
    recorder.normal(&claim("data"), "Provisioning", "text");
    drained(sink).await;
    assert_eq!((world.requests().len(), world.dropped.load(Ordering::Relaxed)), (1, 1));
}

/// An API server that has just started knows no roles yet.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn event_refused_by_a_starting_server_is_written_later() {
    let (world, recorder, sink) = set_up(|_, before| if before < 3 { 403 } else { 201 });
    recorder.normal(&claim("data"), "Provisioning", "text");
    drained(sink).await;
    assert_eq!((world.requests().len(), world.dropped.load(Ordering::Relaxed)), (4, 0));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn missing_right_is_found_out_once_and_then_costs_one_try_per_event() {
    let (world, recorder, sink) = set_up(|_, _| 403);
    let cancel = CancellationToken::new();
    let task = tokio::spawn(sink.run(cancel.clone()));
    let mut tries = Vec::new();
    for object in ["a", "b", "c"] {
        recorder.normal(&claim(object), "Provisioning", "text");
        tokio::time::sleep(Duration::from_mins(5)).await;
        tries.push(world.requests().len());
    }
    cancel.cancel();
    task.await.unwrap();
    assert_eq!((tries, world.dropped.load(Ordering::Relaxed)), (vec![5, 6, 7], 3));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn event_of_a_namespace_that_ends_is_not_tried_again() {
    let (world, recorder, sink) = set_up(|_, _| 403);
    recorder.normal(&claim("data"), "Provisioning", "namespace shop: because it is being terminated");
    drained(sink).await;
    assert_eq!((world.requests().len(), world.dropped.load(Ordering::Relaxed)), (1, 1));
}

#[test]
fn busy_server_gets_the_time_it_asks_for() {
    let mut outbox = Outbox::default();
    outbox.record(failed("a", "no"), 1, at(0));
    let Next::Send(letter) = outbox.next(at(0)) else { panic!("nothing to send") };
    outbox.finished(letter.key, Outcome::Busy(Duration::from_secs(40)), at(0));
    outbox.record(failed("b", "no"), 1, at(1));
    assert!(matches!(outbox.next(at(1)), Next::At(time) if time == Duration::from_secs(40)));
}

/// The events' limit is used up; the limit of the calls that have ended is not.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn events_left_at_the_stop_go_through_the_spare_client_too() {
    let slow = |arrivals: Arc<AtomicU64>| {
        client(move |arrived: Arrived| {
            arrivals.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                (201, arrived.body)
            }
        })
    };
    let (own, spare) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let clock = Clock::simulated(Timestamp::from_second(START).unwrap());
    let (recorder, sink) = recorder(slow(own.clone()), "driver", clock, Random::seeded(1), Arc::new(()));
    (0..40).for_each(|number| recorder.normal(&claim(&number.to_string()), "Provisioning", "text"));
    drained(sink.ending_through(slow(spare.clone()))).await;
    // The first four were under way before the end began.
    assert_eq!([own, spare].map(|count| count.load(Ordering::Relaxed)), [22, 18]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn stop_gives_up_after_fifteen_seconds_and_counts_what_is_left() {
    let (world, recorder, sink) = set_up(|_, _| 503);
    recorder.normal(&claim("data"), "Provisioning", "text");
    recorder.normal(&claim("data"), "Provisioning", "text");
    let began = tokio::time::Instant::now();
    drained(sink).await;
    assert!(began.elapsed() <= Duration::from_secs(15), "took {:?}", began.elapsed());
    assert_eq!(world.dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn event_that_finds_the_queue_full_is_dropped() {
    let mut outbox = Outbox::default();
    for number in 0..QUEUE {
        outbox.record(failed(&number.to_string(), "no"), 1, at(0));
    }
    assert_eq!(outbox.record(failed("late", "no"), 1, at(0)), Recorded::Dropped);
    assert_eq!(outbox.record(failed("0", "no"), 1, at(0)), Recorded::Merged);
}

#[test]
fn tenth_text_within_ten_minutes_is_combined() {
    let mut outbox = Outbox::default();
    for number in 0..9 {
        assert_eq!(told(&mut outbox, failed("a", &number.to_string()), at(number)).map(|t| t.1), Some(1));
    }
    let tenth = told(&mut outbox, failed("a", "x"), at(10));
    let eleventh = told(&mut outbox, failed("a", "y"), at(11));
    assert_eq!(tenth, Some((false, 1, "(combined from similar events): x".into())));
    assert_eq!(eleventh, Some((true, 2, "(combined from similar events): y".into())));
}

#[test]
fn texts_older_than_ten_minutes_do_not_combine() {
    let mut outbox = Outbox::default();
    for number in 0..9 {
        told(&mut outbox, failed("a", &number.to_string()), at(0));
    }
    assert_eq!(told(&mut outbox, failed("a", "x"), at(601)).map(|t| t.2), Some("x".into()));
}

#[test]
fn object_has_twenty_five_writes_then_one_per_five_minutes_and_counts_what_was_held_back() {
    let mut outbox = Outbox::default();
    let mut counts = Vec::new();
    for _ in 0..30 {
        counts.extend(told(&mut outbox, failed("a", "no"), at(0)).map(|t| t.1));
    }
    assert_eq!(counts, (1..=25).collect::<Vec<_>>());
    assert_eq!(told(&mut outbox, failed("b", "no"), at(0)).map(|t| t.1), Some(1));
    assert_eq!(told(&mut outbox, failed("a", "no"), at(299)), None);
    assert_eq!(told(&mut outbox, failed("a", "no"), at(300)).map(|t| t.1), Some(32));
    assert_eq!(told(&mut outbox, failed("a", "no"), at(301)), None);
}

#[test]
fn event_recorded_while_its_write_is_under_way_gets_a_patch_of_its_own() {
    let mut outbox = Outbox::default();
    outbox.record(failed("a", "no"), 1, at(0));
    let Next::Send(letter) = outbox.next(at(0)) else { panic!("nothing to send") };
    outbox.record(failed("a", "no"), 2, at(1));
    assert!(matches!(outbox.next(at(1)), Next::Idle), "one write per object at a time");
    outbox.finished(letter.key, Outcome::Delivered, at(1));
    let Next::Send(again) = outbox.next(at(1)) else { panic!("nothing to send") };
    assert_eq!((again.exists, again.count, again.name), (true, 2, "a.1".into()));
}

#[test]
fn name_of_an_event_fits_whatever_the_object_is_called() {
    let note = failed(&format!("{}.x", "a".repeat(235)), "no");
    let name = note.event_name(u64::MAX);
    assert_eq!(name, format!("{}.ffffffffffffffff", "a".repeat(235)));
}

#[test]
fn message_is_cut_to_1024_bytes() {
    assert_eq!(failed("a", &"é".repeat(600)).message.len(), 1023);
}
