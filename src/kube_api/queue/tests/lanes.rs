//! Lanes: no crowd of one class holds up a key of another.

use super::*;

type Named = (&'static str, u16);

fn laned() -> Queue<Named> {
    Queue::with_lanes(BACKOFF, Arc::new(()), |key: &Named| Lane::from(key.0))
}

fn take(queue: &Queue<Named>, slots: usize) -> Option<Named> {
    queue.next_of(slots).now_or_never().flatten()
}

fn add_all(queue: &Queue<Named>, lane: &'static str, count: u16) {
    (0..count).for_each(|number| queue.add((lane, number)));
}

#[test]
fn key_of_another_lane_waits_for_one_key_of_a_crowd() {
    let queue = laned();
    add_all(&queue, "crowd", 5000);
    queue.add(("other", 0));
    assert_eq!([take(&queue, 100), take(&queue, 100)], [Some(("crowd", 0)), Some(("other", 0))]);
}

#[test]
fn last_tenth_of_the_slots_is_left_to_idle_lanes() {
    let queue = laned();
    add_all(&queue, "hanging", 40);
    let hanging = std::iter::from_fn(|| take(&queue, 20)).count();
    assert_eq!(hanging, 18);
    add_all(&queue, "other", 2);
    assert_eq!([take(&queue, 20), take(&queue, 20)], [Some(("other", 0)), None]);
}

#[test]
fn few_slots_have_no_reserve() {
    let queue = laned();
    add_all(&queue, "only", 10);
    assert_eq!(std::iter::from_fn(|| take(&queue, 4)).take(4).count(), 4);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn end_of_work_wakes_a_key_that_waits_for_a_slot() {
    let queue = laned();
    add_all(&queue, "hanging", 40);
    while take(&queue, 20).is_some() {}
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next_of(20).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    queue.done(&("hanging", 0));
    assert_eq!(waiting.await.unwrap(), Some(("hanging", 18)));
}

proptest! {
    /// Whatever was added, dropped, taken and given back: a due key is passed by no lane twice.
    #[test]
    fn lanes_take_turns(steps in proptest::collection::vec((0..3usize, 0..6u16, 0..4u8), 0..200)) {
        const LANES: [&str; 3] = ["a", "b", "c"];
        let queue = laned();
        // Per lane: how often the others were served while it had a due key.
        let mut passed = [[0; 3]; 3];
        let mut due: BTreeSet<Named> = BTreeSet::new();
        let mut in_work: BTreeSet<Named> = BTreeSet::new();
        for (lane, number, what) in steps {
            let key = (LANES[lane], number);
            match what {
                0 | 1 if !in_work.contains(&key) => {
                    queue.add(key);
                    due.insert(key);
                }
                2 => {
                    queue.drop_key(&key);
                    due.remove(&key);
                }
                _ => if let Some(taken) = take(&queue, usize::MAX) {
                    due.remove(&taken);
                    in_work.insert(taken);
                    let served = LANES.iter().position(|lane| *lane == taken.0).unwrap();
                    passed[served] = [0; 3];
                    for (waiting, passed) in passed.iter_mut().enumerate().filter(|(one, _)| *one != served) {
                        passed[served] = if due.iter().any(|key| key.0 == LANES[waiting]) { passed[served] + 1 } else { 0 };
                        prop_assert!(passed[served] <= 1, "{} waits too long", LANES[waiting]);
                    }
                }
            }
            // A lane without due keys waits for nobody.
            for (lane, passed) in LANES.iter().zip(&mut passed) {
                if !due.iter().any(|key| key.0 == *lane) {
                    *passed = [0; 3];
                }
            }
        }
        for key in &in_work {
            queue.done(key);
        }
        while let Some(key) = take(&queue, usize::MAX) {
            queue.done(&key);
        }
        prop_assert_eq!(queue.0.lock().known(), 0);
    }
}
