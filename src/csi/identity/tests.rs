//! Waiting for a scripted driver with the clock paused; the driver is called in this process.

use super::*;
use crate::csi::proto::v1;
use crate::csi::scripted::{Answer, driver};
use std::sync::{Arc, Mutex};

fn ready(ready: Option<bool>) -> Answer {
    Answer::reply(&v1::ProbeResponse { ready })
}

fn named(name: &str) -> Answer {
    Answer::reply(&v1::GetPluginInfoResponse { name: name.to_owned(), ..Default::default() })
}

async fn probed(answers: impl IntoIterator<Item = Answer>) -> (Result<(), ProbeError>, Duration, usize) {
    let (calls, seen) = driver(answers);
    let began = Instant::now();
    let result = probe_until_ready(&calls, Duration::from_secs(1), &CancellationToken::new()).await;
    let count = seen.told().len();
    (result, began.elapsed(), count)
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn ready_driver_is_probed_once_and_at_once() {
    assert_eq!(probed([ready(Some(true))]).await, (Ok(()), Duration::ZERO, 1));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn answer_without_ready_counts_as_ready() {
    assert_eq!(probed([ready(None)]).await, (Ok(()), Duration::ZERO, 1));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn driver_that_is_not_ready_is_probed_at_each_tick() {
    let answers = [ready(Some(false)), ready(Some(false)), ready(Some(true))];
    assert_eq!(probed(answers).await, (Ok(()), Duration::from_secs(2), 3));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unreachable_driver_is_waited_for() {
    assert_eq!(probed([Answer::Broken, Answer::Broken, ready(None)]).await, (Ok(()), Duration::from_secs(2), 3));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn driver_that_says_unavailable_is_waited_for() {
    assert_eq!(probed([Answer::Status(14), ready(None)]).await, (Ok(()), Duration::from_secs(1), 2));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn silent_probe_is_repeated_after_its_deadline() {
    let (result, took, count) = probed([Answer::Silence, ready(None)]).await;
    assert_eq!((result, count), (Ok(()), 2));
    // The deadline, then the next tick at the latest.
    assert!((10..=11).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn final_code_of_the_driver_ends_the_wait() {
    for (number, code) in
        [(9, Code::FailedPrecondition), (12, Code::Unimplemented), (13, Code::Internal), (2, Code::Unknown)]
    {
        let (result, _, count) = probed([Answer::Status(number), ready(None)]).await;
        let Err(ProbeError::Refused(error)) = result else { panic!("{code:?} ends the wait") };
        assert_eq!((error.code, error.from_driver, count), (code, true, 1));
    }
}

/// Counts warnings.
struct Warnings(Arc<Mutex<usize>>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        if *event.metadata().level() == tracing::Level::WARN {
            *self.0.lock().expect("lock") += 1;
        }
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn long_wait_says_so_once_in_ten_seconds() {
    use tracing_subscriber::layer::SubscriberExt;
    let warnings = Arc::new(Mutex::new(0));
    let subscriber = tracing_subscriber::registry().with(Warnings(warnings.clone()));
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut answers: Vec<_> = (0..25).map(|_| Answer::Broken).collect();
    answers.push(ready(None));
    let (result, took, _) = probed(answers).await;
    assert_eq!((result, took), (Ok(()), Duration::from_secs(25)));
    assert_eq!(*warnings.lock().expect("lock"), 3, "at 0, 10 and 20 seconds");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn stop_ends_the_wait() {
    let (calls, _) = driver([]);
    let cancel = CancellationToken::new();
    let wait = tokio::spawn({
        let cancel = cancel.clone();
        async move { probe_until_ready(&calls, Duration::from_secs(1), &cancel).await }
    });
    tokio::time::sleep(Duration::from_secs(3)).await;
    cancel.cancel();
    assert_eq!(wait.await.expect("no panic"), Err(ProbeError::Stopped));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn name_is_asked_anew_each_time() {
    let (calls, _) = driver([named("csi/example-1"), named("csi/example-2")]);
    assert_eq!(calls.driver_name().await.as_deref(), Ok("csi/example-1"));
    assert_eq!(calls.driver_name().await.as_deref(), Ok("csi/example-2"));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn empty_name_is_an_error() {
    let (calls, _) = driver([named("")]);
    assert_eq!(calls.driver_name().await, Err(NameError::Empty));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn failed_name_call_is_an_error() {
    let (calls, _) = driver([Answer::Status(13)]);
    let Err(NameError::Call(error)) = calls.driver_name().await else { panic!("the call failed") };
    assert_eq!(error.code, Code::Internal);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn driver_is_asked_for_everything_and_named_in_what_is_observed() {
    let (calls, seen) = driver([named("ebs.csi.aws.com"), Answer::Reply(Vec::new()), Answer::Reply(Vec::new())]);
    let found =
        ask_driver(&calls, |name| (name == "ebs.csi.aws.com").then(|| "kubernetes.io/aws-ebs".to_owned())).await;
    let expected = Driver {
        name: "ebs.csi.aws.com".to_owned(),
        in_tree_name: Some("kubernetes.io/aws-ebs".to_owned()),
        ..Driver::default()
    };
    assert_eq!(found, Ok(expected));
    let ok = |driver: &str, method, migrated| (driver.to_owned(), method, "OK".to_owned(), migrated);
    assert_eq!(
        seen.told(),
        [
            ok("unknown-driver", "/csi.v1.Identity/GetPluginInfo", None),
            ok("ebs.csi.aws.com", "/csi.v1.Identity/GetPluginCapabilities", Some(false)),
            ok("ebs.csi.aws.com", "/csi.v1.Controller/ControllerGetCapabilities", Some(false)),
        ]
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn driver_without_controller_service_is_an_error() {
    let (calls, _) = driver([named("a.b"), Answer::Reply(Vec::new()), Answer::Status(12)]);
    let Err(AskError::Capabilities(error)) = ask_driver(&calls, |_| None).await else { panic!("Unimplemented") };
    assert_eq!(error.code, Code::Unimplemented);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn name_that_no_volume_could_carry_is_refused() {
    let (calls, _) = driver([named("csi/example")]);
    assert_eq!(ask_driver(&calls, |_| None).await, Err(AskError::UnusableName("csi/example".to_owned())));
}

#[test]
fn driver_names_follow_the_interface() {
    let longest = "a".repeat(63);
    for name in ["a", "hostpath.csi.k8s.io", "CSI-Driver.Example", "0.1", longest.as_str()] {
        assert!(is_usable(name), "{name}");
    }
    let longer = "a".repeat(64);
    for name in ["", "-a", "a-", "a..b", ".a", "a.", "a_b", "a b", "\u{e4}", "a.-b", longer.as_str()] {
        assert!(!is_usable(name), "{name}");
    }
}

#[test]
fn identity_names_time_chance_driver_and_node() {
    let now = Timestamp::from_millisecond(1_700_000_000_123).expect("time");
    let chance = Random::seeded(7).below(10_000);
    assert_eq!(identity(now, &Random::seeded(7), "d", None), format!("1700000000123-{chance}-d"));
    assert_eq!(identity(now, &Random::seeded(7), "d", Some("n")), format!("1700000000123-{chance}-d-n"));
}
