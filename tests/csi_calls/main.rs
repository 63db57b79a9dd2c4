//! Whose word is it? Calls over real Unix sockets to a driver that misbehaves in every way that matters.
//!
//! The rule under test: `from_driver` is true only when the driver's `grpc-status` really arrived. Everything else leaves
//! open what exists in the backend, whatever code the client library makes of it.
#![cfg(feature = "sandbox")]

mod world;

use csi_provisioner::csi::CreateReply;
use csi_provisioner::csi::channel;
use csi_provisioner::model::request::Code;
use csi_provisioner::model::{CallError, CreatedVolume};
use futures::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use world::{Answer, World, calls, data, reply, trailers};

const CREATE: &str = "/csi.v1.Controller/CreateVolume";

// === the driver ended the call: its word ===

#[tokio::test]
async fn ok_is_answered_with_the_volume() {
    let world = World::start(Answer::Parts(vec![data(&reply()), trailers(0, "")]));
    let volume = CreatedVolume { id: "vol-1".to_owned(), capacity_bytes: 7, ..CreatedVolume::default() };
    assert_eq!(world.create().await, Ok(CreateReply::Volume(volume)));
    assert_eq!(world.seen(), [("drv".to_owned(), CREATE, "OK".to_owned(), Some(true))]);
}

#[tokio::test]
async fn error_in_trailers_is_the_drivers() {
    let world = World::start(Answer::Parts(vec![trailers(8, "pool%20is%20full")]));
    let expected = CallError { code: Code::ResourceExhausted, from_driver: true, message: "pool is full".to_owned() };
    assert_eq!(world.create().await, Err(expected));
    assert_eq!(world.seen(), [("drv".to_owned(), CREATE, "ResourceExhausted".to_owned(), Some(true))]);
}

#[tokio::test]
async fn error_in_headers_alone_is_the_drivers() {
    let world = World::start(Answer::HeadersOnly(vec![("grpc-status", "3"), ("grpc-message", "bad%0Aparameter")]));
    let expected = CallError { code: Code::InvalidArgument, from_driver: true, message: "bad parameter".to_owned() };
    assert_eq!(world.create().await, Err(expected));
}

#[tokio::test]
async fn long_message_of_the_driver_does_not_lose_its_code() {
    // Far over the 16 KiB of headers that the HTTP library accepts by default; Go accepts 16 MiB.
    let error = World::start(Answer::Parts(vec![trailers(3, &"x".repeat(200_000))])).create_error().await;
    assert_eq!((error.code, error.from_driver), (Code::InvalidArgument, true));
    assert_eq!(error.message.len(), 4096);
}

#[tokio::test]
async fn broken_status_details_do_not_hide_the_drivers_word() {
    // The client library panics on details that are not base64.
    let headers = vec![("grpc-status", "10"), ("grpc-status-details-bin", "!not base64!")];
    let error = World::start(Answer::HeadersOnly(headers)).create_error().await;
    assert_eq!((error.code, error.from_driver), (Code::Aborted, true));
}

#[tokio::test]
async fn driver_is_told_authority_and_deadline_like_from_go() {
    let world = World::start(Answer::Parts(vec![data(&reply()), trailers(0, "")]));
    assert!(world.create().await.is_ok());
    assert_eq!(world.last_head(), Some(("localhost".to_owned(), "20000000u".to_owned())));
}

// === our side ended it: nobody's word ===

#[tokio::test]
async fn driver_killed_before_headers_leaves_it_open() {
    let world = World::start(Answer::Silence);
    let (error, ()) = tokio::join!(world.create_error(), async {
        world.called().await;
        world.proxy.cut();
    });
    assert_eq!((error.code, error.from_driver), (Code::Unavailable, false));
}

#[tokio::test]
async fn driver_killed_after_headers_leaves_it_open() {
    let world = World::start(Answer::ThenSilence(vec![]));
    let (error, ()) = tokio::join!(world.create_error(), async {
        world.called().await;
        world.proxy.frames_passed(1).await;
        world.proxy.cut();
    });
    assert_eq!((error.code, error.from_driver), (Code::Unavailable, false));
}

#[tokio::test]
async fn driver_killed_between_answer_and_trailers_leaves_it_open() {
    let world = World::start(Answer::ThenSilence(vec![data(&reply())]));
    let (error, ()) = tokio::join!(world.create_error(), async {
        world.called().await;
        world.proxy.frames_passed(2).await;
        world.proxy.cut();
    });
    assert!(!error.from_driver, "{error:?}");
}

#[tokio::test]
async fn reset_stream_leaves_it_open() {
    let error = World::start(Answer::Reset).create_error().await;
    assert!(!error.from_driver, "{error:?}");
}

#[tokio::test]
async fn oversize_answer_leaves_it_open() {
    let huge = data(&[0].repeat(4 * 1024 * 1024 + 1));
    let error = World::start(Answer::Parts(vec![huge, trailers(0, "")])).create_error().await;
    assert_eq!((error.code, error.from_driver), (Code::ResourceExhausted, false));
}

#[tokio::test]
async fn unreadable_answer_leaves_it_open() {
    let error = World::start(Answer::Parts(vec![data(&[0xff; 9]), trailers(0, "")])).create_error().await;
    assert_eq!((error.code, error.from_driver), (Code::Internal, false));
}

#[tokio::test]
async fn answer_without_a_status_leaves_it_open() {
    let error = World::start(Answer::Parts(vec![data(&reply())])).create_error().await;
    assert!(!error.from_driver, "{error:?}");
}

#[tokio::test]
async fn status_that_is_no_number_leaves_it_open() {
    let error = World::start(Answer::HeadersOnly(vec![("grpc-status", "fine")])).create_error().await;
    assert!(!error.from_driver, "{error:?}");
}

#[tokio::test]
async fn ok_without_a_message_leaves_it_open() {
    let error = World::start(Answer::Parts(vec![trailers(0, "")])).create_error().await;
    assert_eq!((error.code, error.from_driver), (Code::Internal, false));
}

#[tokio::test]
async fn refusal_by_something_in_between_leaves_it_open() {
    let error = World::start(Answer::Http(403)).create_error().await;
    assert!(!error.from_driver, "{error:?}");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn silent_driver_meets_our_deadline() {
    let world = World::start(Answer::Silence);
    let began = tokio::time::Instant::now();
    let error = world.create_error().await;
    assert_eq!((error.code, error.from_driver), (Code::DeadlineExceeded, false));
    // To the timer's millisecond.
    assert!(began.elapsed().abs_diff(World::TIMEOUT) <= Duration::from_millis(1), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn driver_that_stops_after_headers_meets_our_deadline() {
    let error = World::start(Answer::ThenSilence(vec![data(&reply())])).create_error().await;
    assert_eq!((error.code, error.from_driver), (Code::DeadlineExceeded, false));
}

// === losing and finding the driver ===

#[tokio::test]
async fn missing_socket_is_unavailable_and_no_loss() {
    let connection = channel::connect_lazily(std::env::temp_dir().join("csi-nobody-listens.sock"));
    let error = calls(&connection, &Arc::default()).probe().await.expect_err("nobody listens");
    assert_eq!((error.code, error.from_driver), (Code::Unavailable, false));
    assert_eq!(*connection.losses.borrow(), 0);
}

#[tokio::test]
async fn lost_driver_is_counted_once_and_found_again() {
    let world = World::start(Answer::Parts(vec![data(&reply()), trailers(0, "")]));
    assert!(world.create().await.is_ok());
    assert_eq!(*world.connection.losses.borrow(), 0);

    world.proxy.stop().await;
    // The first call may still find the old connection; all of them fail on our side.
    for _ in 0..5 {
        let error = world.create_error().await;
        assert_eq!((error.code, error.from_driver), (Code::Unavailable, false));
    }
    assert_eq!(*world.connection.losses.borrow(), 1, "however often it was dialled in vain");

    world.proxy.start();
    assert!(world.create().await.is_ok());
    assert_eq!(*world.connection.losses.borrow(), 1);
}

#[tokio::test]
async fn each_loss_wakes_who_waits_for_it() {
    let world = World::start(Answer::Parts(vec![data(&reply()), trailers(0, "")]));
    let mut losses = world.connection.losses.clone();
    for count in 1..=2 {
        assert!(world.create().await.is_ok());
        world.proxy.stop().await;
        world.proxy.start();
        // A call that still finds the old connection fails without a new dial; the next one dials.
        let ok = world.create().await.is_ok() || world.create().await.is_ok();
        assert!(ok, "the driver is found again");
        assert!(matches!(losses.changed().now_or_never(), Some(Ok(()))), "loss {count} wakes");
        assert_eq!(*losses.borrow_and_update(), count);
    }
}
