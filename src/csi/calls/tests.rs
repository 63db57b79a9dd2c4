//! The calls against a scripted driver in this process.

use super::*;
use crate::csi::scripted::{Answer, driver};
use crate::model::Segments;
use crate::model::request::{AccessMode, AccessType, Code, VolumeCapability};
use std::collections::BTreeMap;
use tracing_subscriber::fmt::MakeWriter;

fn secrets() -> Secrets {
    Secrets::new(BTreeMap::from([("user-key".to_owned(), "hunter2".to_owned())]))
}

fn request() -> CreateRequest {
    let access_type =
        AccessType::Mount { fs_type: "ext4".to_owned(), mount_flags: vec!["password=swordfish".to_owned()] };
    CreateRequest {
        name: "pvc-1".to_owned(),
        capabilities: vec![VolumeCapability { access_mode: AccessMode::SingleNodeWriter, access_type }],
        secrets: secrets(),
        ..CreateRequest::default()
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn ok_without_a_volume_is_told_apart() {
    let (calls, _) = driver([Answer::Reply(Vec::new())]);
    assert_eq!(calls.create_volume(&request(), false).await, Ok(CreateReply::NoVolume));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletion_passes_the_drivers_word_on() {
    let (calls, _) = driver([Answer::Reply(Vec::new()), Answer::Status(9)]);
    assert_eq!(calls.delete_volume("vol-1", &secrets(), false).await, Ok(()));
    let error = calls.delete_volume("vol-1", &secrets(), false).await.expect_err("FAILED_PRECONDITION");
    assert_eq!((error.code, error.from_driver), (Code::FailedPrecondition, true));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn node_info_and_capacity_are_read() {
    let segments = Segments::from([("zone".to_owned(), "a".to_owned())]);
    let place = v1::Topology { segments: segments.clone() };
    let node = v1::NodeGetInfoResponse {
        node_id: "n1".to_owned(),
        accessible_topology: Some(place),
        ..v1::NodeGetInfoResponse::default()
    };
    let capacity =
        v1::GetCapacityResponse { available_capacity: 5, maximum_volume_size: Some(4), ..Default::default() };
    let (calls, seen) = driver([Answer::reply(&node), Answer::reply(&capacity)]);
    assert_eq!(calls.node_info().await, Ok(NodeInfo { node_id: "n1".to_owned(), segments }));
    let expected = CapacityReply { available_bytes: 5, maximum_volume_bytes: Some(4), minimum_volume_bytes: None };
    assert_eq!(calls.get_capacity(CapacityQuery::default()).await, Ok(expected));
    let methods: Vec<_> = seen.told().into_iter().map(|(_, method, ..)| method).collect();
    assert_eq!(methods, ["/csi.v1.Node/NodeGetInfo", "/csi.v1.Controller/GetCapacity"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn observer_hears_of_migration_only_for_migration_targets() {
    let (calls, seen) = driver([Answer::Reply(Vec::new()), Answer::Status(3), Answer::Broken]);
    calls.set_driver_name("plain", false);
    let _ = calls.create_volume(&request(), true).await;
    calls.clone().set_driver_name("target", true);
    let _ = calls.create_volume(&request(), true).await;
    let _ = calls.create_volume(&request(), false).await;
    let told: Vec<_> = seen.told().into_iter().map(|(driver, _, code, migrated)| (driver, code, migrated)).collect();
    assert_eq!(
        told,
        [
            ("plain".to_owned(), "OK".to_owned(), None),
            ("target".to_owned(), "InvalidArgument".to_owned(), Some(true)),
            ("target".to_owned(), "Unavailable".to_owned(), Some(false)),
        ]
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deadline_of_any_length_can_be_told() {
    for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(u64::MAX)] {
        let (mut calls, _) = driver([Answer::Reply(Vec::new())]);
        calls.timeout = timeout;
        // Ready at once, so that even no time at all is enough.
        assert_eq!(calls.probe().await, Ok(true), "{timeout:?}");
    }
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lock").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn log_shows_the_call_without_its_secrets() {
    let written = Written::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(written.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (calls, _) = driver([Answer::Status(3), Answer::Broken, Answer::Reply(Vec::new())]);
    let _ = calls.create_volume(&request(), false).await;
    let _ = calls.delete_volume("vol-1", &secrets(), false).await;
    let _ = calls.create_volume(&request(), false).await;
    let log = String::from_utf8(written.0.lock().expect("lock").clone()).expect("text");
    for shown in ["/csi.v1.Controller/CreateVolume", "pvc-1", "vol-1", "***stripped***"] {
        assert!(log.contains(shown), "{shown} in {log}");
    }
    for hidden in ["hunter2", "user-key", "swordfish"] {
        assert!(!log.contains(hidden), "{hidden} in {log}");
    }
}
