//! A busy server gets the time that it asked for.

use super::*;

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn polite_key_rests_for_the_time_asked_for_whatever_is_added() {
    let queue = Driven::new();
    let began = Instant::now();
    queue.0.add(1);
    queue.take();
    queue.0.add(1);
    queue.0.retry_not_before(1, Duration::from_secs(40));
    let next = tokio::spawn({
        let queue = queue.0.clone();
        async move { queue.next().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.0.done(&1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    queue.0.add(1);
    queue.0.add_after(1, Duration::from_secs(1));
    assert_eq!((next.await.unwrap(), began.elapsed().as_secs()), (Some(1), 40));
    queue.0.forget(&1);
    queue.0.done(&1);
    assert_eq!(queue.0.0.lock().known(), 0);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn polite_key_backs_off_when_the_server_asks_for_less() {
    let queue = Driven::new();
    let waits: Vec<u128> = (0..4).map(|_| queue.0.retry_not_before(1, Duration::from_millis(30)).as_millis()).collect();
    assert_eq!(waits, [30, 30, 40, 80]);
}
