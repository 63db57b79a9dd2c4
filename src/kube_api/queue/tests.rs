//! One property per promise, each over random histories, and the whole against a naive model.

mod lanes;
mod model;
mod polite;

use super::*;
use futures::FutureExt;
use model::{Model, Step};
use proptest::prelude::*;
use std::collections::BTreeSet;

const BACKOFF: Backoff = Backoff { base: Duration::from_millis(10), max: Duration::from_millis(500) };

fn steps(closing: bool) -> impl Strategy<Value = Vec<Step>> {
    let key = 0..4u8;
    let step = prop_oneof![
        6 => key.clone().prop_map(Step::Add),
        3 => (key.clone(), 0..60u64).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        3 => key.clone().prop_map(Step::Retry),
        1 => key.clone().prop_map(Step::Forget),
        1 => key.clone().prop_map(Step::Drop),
        8 => Just(Step::Take),
        6 => key.prop_map(Step::Done),
        4 => (0..40u64).prop_map(Step::Pass),
        u32::from(closing) => Just(Step::Close),
    ];
    proptest::collection::vec(step, 0..80)
}

/// A queue that is driven step by step, each take at once or not at all.
struct Driven(Queue<u8>);

impl Driven {
    fn new() -> Self {
        Self(Queue::new(BACKOFF, Arc::new(())))
    }

    /// The key that came out, if this was a successful take.
    async fn apply(&self, step: &Step) -> Option<u8> {
        match *step {
            Step::Add(key) => self.0.add(key),
            Step::AddAfter(key, delay) => self.0.add_after(key, Duration::from_millis(delay)),
            Step::Retry(key) => drop(self.0.retry(key)),
            Step::Forget(key) => self.0.forget(&key),
            Step::Drop(key) => self.0.drop_key(&key),
            Step::Take => return self.take(),
            Step::Done(key) => self.0.done(&key),
            Step::Pass(time) => tokio::time::advance(Duration::from_millis(time)).await,
            Step::Close => self.0.close(),
        }
        None
    }

    fn take(&self) -> Option<u8> {
        self.0.next().now_or_never().flatten()
    }
}

fn with_paused_clock<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn queue_does_what_the_model_does(steps in steps(true)) {
        with_paused_clock(async {
            let (queue, mut model) = (Driven::new(), Model::default());
            for step in &steps {
                let taken = queue.apply(step).await;
                model.apply(step);
                if matches!(step, Step::Take) {
                    prop_assert_eq!(taken, model.take());
                }
                for key in 0..4 {
                    prop_assert_eq!(queue.0.failures(&key), model.failures.get(&key).copied().unwrap_or_default());
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn fair_keys_come_out_in_the_order_they_became_due(delays in proptest::collection::vec(0..50u64, 1..20)) {
        with_paused_clock(async {
            let queue = Driven::new();
            let mut expected = Vec::new();
            for (key, delay) in (0..).zip(&delays) {
                queue.apply(&Step::AddAfter(key, *delay)).await;
                expected.push((*delay, key));
            }
            tokio::time::advance(Duration::from_millis(100)).await;
            queue.0.add(255);
            expected.sort_unstable();
            let order = std::iter::from_fn(|| queue.take()).collect::<Vec<_>>();
            let expected = expected.into_iter().map(|(_, key)| key).chain([255]).collect::<Vec<_>>();
            prop_assert_eq!(order, expected);
            Ok(())
        })?;
    }

    #[test]
    fn stingy_key_added_often_comes_out_once(times in 1..20usize, delays in proptest::collection::vec(0..50u64, 0..5)) {
        with_paused_clock(async {
            let queue = Driven::new();
            for delay in delays {
                queue.apply(&Step::AddAfter(1, delay)).await;
            }
            for _ in 0..times {
                queue.0.add(1);
            }
            tokio::time::advance(Duration::from_millis(100)).await;
            prop_assert_eq!((queue.take(), queue.take()), (Some(1), None));
            queue.0.done(&1);
            prop_assert_eq!(queue.take(), None);
            Ok(())
        })?;
    }

    #[test]
    fn exclusive_key_in_work_is_never_handed_out(steps in steps(true)) {
        with_paused_clock(async {
            let queue = Driven::new();
            let mut in_work = BTreeSet::new();
            for step in &steps {
                if let Some(key) = queue.apply(step).await {
                    prop_assert!(in_work.insert(key), "{} was handed out twice", key);
                }
                if let Step::Done(key) = step {
                    in_work.remove(key);
                }
            }
            Ok(())
        })?;
    }

    /// Also field-faults.md S04: what was asked for is worked on, whatever happened in between.
    #[test]
    fn attentive_no_add_is_lost(steps in steps(false)) {
        with_paused_clock(async {
            let queue = Driven::new();
            let mut asked_for = BTreeSet::new();
            for step in &steps {
                if let Some(key) = queue.apply(step).await {
                    asked_for.remove(&key);
                }
                match step {
                    Step::Add(key) | Step::AddAfter(key, _) | Step::Retry(key) => drop(asked_for.insert(*key)),
                    Step::Drop(key) => drop(asked_for.remove(key)),
                    Step::Forget(_) | Step::Take | Step::Done(_) | Step::Pass(_) | Step::Close => {}
                }
            }
            tokio::time::advance(BACKOFF.max).await;
            (0..4).for_each(|key| queue.0.done(&key));
            let rest = std::iter::from_fn(|| queue.take()).collect::<BTreeSet<_>>();
            prop_assert_eq!(rest, asked_for);
            Ok(())
        })?;
    }

    #[test]
    fn patient_failed_key_comes_back_after_its_own_wait(failures in 1..70u32) {
        with_paused_clock(async {
            let queue = Driven::new();
            for before in 0..failures {
                let wait = queue.0.retry(7);
                let expected = 10u64.saturating_mul(2u64.saturating_pow(before)).min(500);
                prop_assert_eq!(wait, Duration::from_millis(expected));
                tokio::time::advance(wait.checked_sub(Duration::from_millis(1)).unwrap()).await;
                prop_assert_eq!(queue.take(), None);
                tokio::time::advance(Duration::from_millis(1)).await;
                prop_assert_eq!(queue.take(), Some(7));
                queue.0.done(&7);
            }
            queue.0.forget(&7);
            prop_assert_eq!(queue.0.retry(7), BACKOFF.base);
            Ok(())
        })?;
    }

    #[test]
    fn one_appointment_the_earlier_delay_wins(first in 1..50u64, second in 1..50u64) {
        with_paused_clock(async {
            let queue = Driven::new();
            queue.apply(&Step::AddAfter(1, first)).await;
            queue.apply(&Step::AddAfter(1, second)).await;
            let began = Instant::now();
            prop_assert_eq!(queue.0.next().await, Some(1));
            prop_assert_eq!(began.elapsed(), Duration::from_millis(first.min(second)));
            queue.0.done(&1);
            tokio::time::advance(Duration::from_millis(100)).await;
            prop_assert_eq!(queue.take(), None);
            Ok(())
        })?;
    }

    #[test]
    fn forgetful_key_without_work_is_not_kept(steps in steps(false), dropped in any::<bool>()) {
        with_paused_clock(async {
            let queue = Driven::new();
            for step in &steps {
                queue.apply(step).await;
            }
            if dropped {
                (0..4).for_each(|key| queue.0.drop_key(&key));
            }
            tokio::time::advance(BACKOFF.max).await;
            (0..4).for_each(|key| queue.0.done(&key));
            while let Some(key) = queue.take() {
                prop_assert!(!dropped, "{} came out although it was dropped", key);
                queue.0.done(&key);
            }
            (0..4).for_each(|key| queue.0.forget(&key));
            prop_assert_eq!(queue.0.0.lock().known(), 0);
            Ok(())
        })?;
    }

    #[test]
    fn closing_hands_out_what_was_due_and_takes_nothing_in(before in steps(false), after in steps(true)) {
        with_paused_clock(async {
            let queue = Driven::new();
            for step in &before {
                queue.apply(step).await;
            }
            queue.0.close();
            let due = queue.0.depth();
            for step in after.iter().filter(|step| !matches!(step, Step::Take | Step::Done(_) | Step::Drop(_))) {
                queue.apply(step).await;
            }
            prop_assert_eq!(queue.0.depth(), due);
            for _ in 0..due {
                prop_assert!(queue.0.next().await.is_some());
            }
            prop_assert_eq!(queue.0.next().await, None);
            Ok(())
        })?;
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn waiting_workers_share_the_work_and_keep_the_time() {
    let queue = Queue::new(BACKOFF, Arc::new(()));
    let workers = (0..3).map(|_| {
        tokio::spawn({
            let queue = queue.clone();
            async move { (queue.next().await, Instant::now()) }
        })
    });
    let workers = workers.collect::<Vec<_>>();
    tokio::task::yield_now().await;
    let began = Instant::now();
    for (key, delay) in [("late", 30), ("now", 0), ("soon", 20)] {
        queue.add_after(key, Duration::from_millis(delay));
    }
    let mut taken = Vec::new();
    for worker in workers {
        let (key, at) = worker.await.unwrap();
        taken.push(((at - began).as_millis(), key.unwrap()));
    }
    taken.sort_unstable();
    assert_eq!(taken, [(0, "now"), (20, "soon"), (30, "late")]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn cancelled_timekeeper_hands_its_duty_on() {
    let queue = Queue::new(BACKOFF, Arc::new(()));
    let timekeeper = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await }
    });
    tokio::task::yield_now().await;
    queue.add_after(1, Duration::from_secs(1));
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await }
    });
    tokio::task::yield_now().await;
    timekeeper.abort();
    assert_eq!(tokio::time::timeout(Duration::from_secs(2), other).await.unwrap().unwrap(), Some(1));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn closing_wakes_all_waiting_workers() {
    let queue = Queue::<u8>::new(BACKOFF, Arc::new(()));
    let waiting = futures::future::join_all((0..3).map(|_| queue.next()));
    let (ends, ()) = tokio::join!(waiting, async { queue.close() });
    assert_eq!(ends, [None, None, None]);
}

#[test]
fn backoff_never_overflows() {
    let years = Backoff { base: Duration::from_secs(1 << 40), max: Duration::MAX };
    assert_eq!(years.delay(31), Duration::from_secs(1 << 40).saturating_mul(1 << 31));
    assert_eq!(years.delay(u32::MAX), Duration::MAX);
}

/// What the observer heard, as lines.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>, Mutex<Option<Probe>>);

impl Heard {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl QueueObserver for Heard {
    fn added(&self, depth: usize) {
        self.note(format!("added, {depth} wait"));
    }
    fn taken(&self, waited: Duration, depth: usize) {
        self.note(format!("taken after {waited:?}, {depth} wait"));
    }
    fn finished(&self, worked: Duration, depth: usize) {
        self.note(format!("finished after {worked:?}, {depth} wait"));
    }
    fn dropped(&self, depth: usize) {
        self.note(format!("dropped, {depth} wait"));
    }
    fn retried(&self) {
        self.note("retried".to_owned());
    }
    fn attach(&self, probe: Probe) {
        *self.1.lock().unwrap() = Some(probe);
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn observer_hears_what_metrics_need() {
    let heard = Arc::new(Heard::default());
    let queue = Queue::new(BACKOFF, heard.clone());
    let pass = |ms| tokio::time::advance(Duration::from_millis(ms));
    queue.add(1);
    queue.add(1);
    pass(5).await;
    queue.next().await;
    queue.add(1);
    pass(7).await;
    queue.done(&1);
    queue.drop_key(&1);
    queue.retry(1);
    pass(12).await;
    queue.next().await;
    let lines = heard.0.lock().unwrap().clone();
    assert_eq!(
        lines,
        [
            "added, 1 wait",
            "taken after 5ms, 0 wait",
            "added, 0 wait",
            "finished after 7ms, 1 wait",
            "dropped, 0 wait",
            "retried",
            "added, 1 wait",
            "taken after 2ms, 0 wait",
        ]
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn probe_tells_what_is_in_work() {
    let heard = Arc::new(Heard::default());
    let queue = Queue::new(BACKOFF, heard.clone());
    for key in [1, 2] {
        queue.add(key);
        queue.next().await;
        tokio::time::advance(Duration::from_secs(3)).await;
    }
    let probe = heard.1.lock().unwrap().take().unwrap();
    assert_eq!(probe(), InWork { unfinished: Duration::from_secs(9), longest: Duration::from_secs(6) });
    drop(queue);
    assert_eq!(probe(), InWork::default());
}
