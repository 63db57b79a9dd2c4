//! The mapping of failures, without a socket.

use super::*;
use crate::model::Secrets;
use proptest::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(10);

fn said(number: i32, message: &str) -> Testimony {
    Testimony { number, message: message.to_owned() }
}

#[test]
fn status_that_came_over_the_wire_is_the_drivers() {
    let error = explain(
        &Status::aborted("library's words"),
        Some(said(10, "driver's words")),
        false,
        TIMEOUT,
        &Veil::default(),
    );
    assert_eq!(error, CallError { code: Code::Aborted, from_driver: true, message: "driver's words".to_owned() });
}

#[test]
fn status_that_nobody_heard_is_ours() {
    let error = explain(&Status::invalid_argument("made up"), None, false, TIMEOUT, &Veil::default());
    assert_eq!((error.code, error.from_driver), (Code::InvalidArgument, false));
}

#[test]
fn failure_after_the_drivers_ok_is_ours() {
    let error = explain(&Status::internal("missing message"), Some(said(0, "")), false, TIMEOUT, &Veil::default());
    assert_eq!((error.code, error.from_driver), (Code::Internal, false));
}

#[test]
fn drivers_code_survives_what_the_library_made_of_it() {
    // The library turns a status into Unknown, which is final, when its message is not UTF-8.
    let error =
        explain(&Status::unknown("bad header"), Some(said(14, "bad \u{fffd}")), false, TIMEOUT, &Veil::default());
    assert_eq!((error.code, error.from_driver), (Code::Unavailable, true));
}

#[test]
fn number_outside_the_list_reads_as_unknown() {
    let error = explain(&Status::unknown(""), Some(said(77, "new code")), false, TIMEOUT, &Veil::default());
    assert_eq!((error.code, error.from_driver), (Code::Unknown, true));
}

#[test]
fn cancelled_after_the_deadline_is_our_deadline_whoever_said_it() {
    for heard in [None, Some(said(1, "Timeout expired"))] {
        let error = explain(&Status::cancelled("Timeout expired"), heard, true, TIMEOUT, &Veil::default());
        assert_eq!((error.code, error.from_driver), (Code::DeadlineExceeded, false));
    }
}

#[test]
fn cancelled_before_the_deadline_stays_what_it_is() {
    let error = explain(&Status::cancelled(""), Some(said(1, "driver stops")), false, TIMEOUT, &Veil::default());
    assert_eq!((error.code, error.from_driver), (Code::Canceled, true));
}

#[test]
fn final_code_of_the_driver_counts_even_after_the_deadline() {
    let error = explain(&Status::not_found(""), Some(said(5, "source is gone")), true, TIMEOUT, &Veil::default());
    assert_eq!((error.code, error.from_driver), (Code::NotFound, true));
}

#[test]
fn transport_failures_read_as_unavailable_with_their_cause() {
    let cause = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset by peer");
    let error = explain(&Status::from_error(Box::new(cause)), None, false, TIMEOUT, &Veil::default());
    assert_eq!((error.code, error.from_driver), (Code::Unavailable, false));
    assert!(error.message.ends_with("reset by peer"), "{}", error.message);
}

#[test]
fn oversize_does_not_read_as_a_volume_size_problem() {
    let error = explain(&Status::out_of_range("message too large"), None, false, TIMEOUT, &Veil::default());
    assert_eq!(error.code, Code::ResourceExhausted);
}

#[test]
fn line_breaks_and_escapes_leave_the_text() {
    let error =
        explain(&Status::aborted(""), Some(said(10, "a\nb\u{1b}[31mc\u{85}d")), false, TIMEOUT, &Veil::default());
    assert_eq!(error.message, "a b [31mc d");
}

#[test]
fn long_text_ends_at_a_character() {
    let error = explain(
        &Status::aborted(""),
        Some(said(10, &format!("x{}", "\u{e4}".repeat(5000)))),
        false,
        TIMEOUT,
        &Veil::default(),
    );
    assert_eq!(error.message.len(), 4095);
}

proptest! {
    #[test]
    fn any_failure_is_explained(
        code in any::<i32>(),
        text in any::<String>(),
        heard in proptest::option::of((any::<i32>(), any::<String>())),
        expired in any::<bool>(),
        has_source in any::<bool>(),
    ) {
        let status = if has_source {
            Status::from_error(Box::new(std::io::Error::other(text)))
        } else {
            Status::new(tonic::Code::from_i32(code), text)
        };
        let final_word = heard.as_ref().is_some_and(|(number, _)| *number != 0);
        let heard = heard.map(|(number, message)| Testimony { number, message });
        let error = explain(&status, heard, expired, TIMEOUT, &Veil::default());
        prop_assert!(error.message.len() <= LONGEST_MESSAGE);
        prop_assert!(!error.message.chars().any(char::is_control));
        prop_assert!(!error.from_driver || final_word);
    }
}

#[test]
fn secret_that_the_driver_tells_is_hidden_before_the_text_is_cut() {
    let secrets = Secrets::new(std::collections::BTreeMap::from([("key".to_owned(), "hunter2\nhunter3".to_owned())]));
    let told = format!("{}hunter2\nhunter3", "x".repeat(LONGEST_MESSAGE - 4));
    let error = explain(&Status::aborted(""), Some(said(10, &told)), false, TIMEOUT, &Veil::over(&secrets));
    assert!(!error.message.contains("hunt"), "{}", error.message);
}
