//! Answers that the case tables do not hold.

use super::*;
use crate::model::request::ContentSource;

fn made(id: &str) -> CreatedVolume {
    CreatedVolume { id: id.to_owned(), ..CreatedVolume::default() }
}

fn judged(volume: &CreatedVolume, facts: &VolumeFacts) -> Result<Accepted, BadReply> {
    judge(&CreateRequest { required_bytes: 100, ..CreateRequest::default() }, facts, Some(volume))
}

#[test]
fn error_of_our_own_side_is_never_final() {
    for code in [Code::InvalidArgument, Code::Internal, Code::ResourceExhausted, Code::Unknown, Code::NotFound] {
        let error = CallError { code, from_driver: false, message: String::new() };
        assert_eq!(classify(&error, true, true), AttemptState::Background, "{code:?}");
    }
}

#[test]
fn volume_without_id_is_no_volume() {
    let reply = judged(&made(""), &VolumeFacts::default());
    assert_eq!(reply, Err(BadReply::NoVolume));
    assert!(!BadReply::NoVolume.left_a_volume());
}

#[test]
fn negative_size_is_too_small_even_for_a_claim_without_request() {
    let volume = CreatedVolume { capacity_bytes: -1, ..made("v") };
    let reply = judge(&CreateRequest::default(), &VolumeFacts::default(), Some(&volume));
    assert_eq!(reply.map_err(|bad| bad.condition()), Err("reply-capacity-too-small"));
}

#[test]
fn unconfirmed_source_leaves_a_volume() {
    let facts = VolumeFacts { needs_source: true, ..VolumeFacts::default() };
    assert!(judged(&made("v"), &facts).unwrap_err().left_a_volume());
    let filled = CreatedVolume { source: Some(ContentSource::Snapshot("other".to_owned())), ..made("v") };
    assert_eq!(judged(&filled, &facts).map(|volume| volume.capacity_bytes), Ok(100));
}

fn with_segment(key: &str, value: &str) -> CreatedVolume {
    let segment = Segments::from([(key.to_owned(), value.to_owned())]);
    CreatedVolume { accessible_topology: vec![segment], ..made("v") }
}

#[test]
fn topology_that_no_label_can_have_is_refused() {
    let facts = VolumeFacts { topology_supported: true, ..VolumeFacts::default() };
    for (key, value) in [("", "v"), ("a/", "v"), ("/a", "v"), ("a/b/c", "v"), ("A.b/c", "v"), ("-a", "v"), ("a", "v v")]
    {
        let reply = judged(&with_segment(key, value), &facts);
        assert_eq!(reply.map_err(|bad| bad.condition()), Err("reply-topology-unusable"), "{key} {value}");
    }
    assert!(judged(&with_segment("topology.example.com/Zone_1", "z-1.A"), &facts).is_ok());
    assert!(judged(&with_segment("zone", ""), &facts).is_ok());
}

#[test]
fn topology_without_the_capability_is_passed_over() {
    let reply = judged(&with_segment("bad key", "v"), &VolumeFacts::default());
    assert_eq!(reply.map(|volume| volume.accessible_topology), Ok(Vec::new()));
}

#[test]
fn answer_too_large_for_an_object_is_refused() {
    let context = BTreeMap::from([("k".to_owned(), "v".repeat(LARGEST_REPLY))]);
    let reply = judged(&CreatedVolume { context, ..made("v") }, &VolumeFacts::default());
    assert_eq!(reply.map_err(|bad| bad.condition()), Err("reply-too-large"));
    let context = BTreeMap::from([("k".to_owned(), "v".repeat(5000))]);
    assert!(judged(&CreatedVolume { context, ..made("v") }, &VolumeFacts::default()).is_ok());
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_accepted_can_be_saved_and_is_large_enough(
            id in ".{0,5}",
            made in any::<i64>(),
            wanted in 0_i64..,
            segments in prop::collection::btree_map("[a-z/.]{0,8}", "[a-z ]{0,3}", 0..3),
            filled in any::<bool>(),
            needs_source in any::<bool>(),
        ) {
            let facts = VolumeFacts { topology_supported: true, needs_source, ..VolumeFacts::default() };
            let request = CreateRequest { required_bytes: wanted, ..CreateRequest::default() };
            let volume = CreatedVolume {
                id: id.clone(),
                capacity_bytes: made,
                source: filled.then(|| ContentSource::Volume(String::new())),
                accessible_topology: vec![segments],
                ..CreatedVolume::default()
            };
            match judge(&request, &facts, Some(&volume)) {
                Ok(accepted) => {
                    prop_assert!(!accepted.id.is_empty() && accepted.capacity_bytes >= wanted);
                    prop_assert!(filled || !needs_source);
                    prop_assert!(accepted.accessible_topology.iter().flatten().all(|(_, value)| !value.contains(' ')));
                }
                Err(bad) => prop_assert_eq!(bad.left_a_volume(), !id.is_empty()),
            }
        }
    }
}
