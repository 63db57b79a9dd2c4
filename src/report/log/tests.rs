//! Lines as they leave the process, and which of them do.

use super::filter::{Filter, matches_file};
use super::{Format, LogConfig, Vmodule, fatal, subscriber};
use crate::clock::Clock;
use k8s_openapi::jiff::Timestamp;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::{Level, debug, error, info, trace, warn};

const SECOND_OF_DECEMBER: &str = "2026-12-02T03:04:05.006007Z";

/// What `events` logs under these settings, at a fixed time, as process 25818.
fn logged(verbosity: u32, vmodule: &[(&str, u32)], format: Format, events: impl FnOnce()) -> Vec<String> {
    let vmodule = vmodule.iter().map(|(pattern, level)| Vmodule { pattern: (*pattern).to_owned(), level: *level });
    let config = LogConfig { verbosity, vmodule: vmodule.collect(), format, flush: Duration::from_secs(5) };
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let lines = Arc::clone(&lines);
        move |line: &str| lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without I/O").block_on(async {
        let clock = Clock::simulated(SECOND_OF_DECEMBER.parse::<Timestamp>().expect("a time stamp"));
        tracing::subscriber::with_default(subscriber(&config, clock, 25_818, sink), events);
    });
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    lines.clone()
}

fn text(events: impl FnOnce()) -> String {
    logged(0, &[], Format::Text, events).concat()
}

fn json(events: impl FnOnce()) -> String {
    logged(5, &[], Format::Json, events).concat()
}

/// The line without the part that depends on where the event stands in this file.
fn behind_place(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, rest)| rest)
}

#[test]
fn text_line_has_klogs_header() {
    let place = line!() + 1;
    let line = text(|| info!("Started"));
    assert_eq!(line, format!("I1202 03:04:05.006007   25818 report/log/tests.rs:{place}] \"Started\"\n"));
}

#[test]
fn letter_tells_the_level() {
    let letters = |lines: Vec<String>| lines.iter().filter_map(|line| line.chars().next()).collect::<String>();
    let lines = logged(9, &[], Format::Text, || {
        info!("a");
        warn!("b");
        error!("c");
        debug!("d");
        fatal("e");
    });
    assert_eq!(letters(lines), "IWEIF");
}

#[test]
fn fatal_line_has_the_place_of_its_caller() {
    let place = line!() + 1;
    let line = text(|| fatal("no driver"));
    assert_eq!(line, format!("F1202 03:04:05.006007   25818 report/log/tests.rs:{place}] \"no driver\"\n"));
}

#[test]
fn texts_are_quoted_and_numbers_are_not() {
    let line = text(|| info!(claim = "ns/data", bytes = 5_u64, delta = -3, ready = true, "Saved"));
    assert_eq!(behind_place(&line), "\"Saved\" claim=\"ns/data\" bytes=5 delta=-3 ready=true\n");
}

#[test]
fn error_field_is_called_err_and_has_its_sources() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::fmt::Error);
    let error = Outer(std::fmt::Error);
    let line = text(|| error!(error = &error as &dyn std::error::Error, "Failed"));
    let inner = std::fmt::Error.to_string();
    assert_eq!(behind_place(&line), format!("\"Failed\" err=\"outer: {inner}\"\n"));
}

#[test]
fn values_cannot_break_or_disguise_a_line() {
    let line = text(|| info!(value = "a\nF1202 \"x\" \\ \u{1b}[31m \u{85} \u{202e} \u{2028} ü", "two\nlines"));
    let expected = r#""two\nlines" value="a\nF1202 \"x\" \\ \x1b[31m \u0085 \u202e \u2028 ü""#;
    assert_eq!(behind_place(&line), format!("{expected}\n"));
}

#[test]
fn json_line_has_the_keys_of_go() {
    let place = line!() + 1;
    let line = json(|| info!(v = 4, claim = "ns/data", bytes = 5, "Saved"));
    let head = format!(r#"{{"ts":1796180645006.007,"caller":"report/log/tests.rs:{place}","#);
    assert_eq!(line, format!(r#"{head}"msg":"Saved","v":4,"claim":"ns/data","bytes":5}}{}"#, "\n"));
}

#[test]
fn json_marks_every_level() {
    let level = |events: fn()| {
        let value: serde_json::Value = serde_json::from_str(&json(events)).expect("the line is JSON");
        (value.get("v").cloned(), value.get("level").cloned())
    };
    assert_eq!(level(|| debug!("a")), (Some(5.into()), None));
    assert_eq!(level(|| warn!("a")), (Some(0.into()), Some("warning".into())));
    assert_eq!(level(|| error!("a")), (None, None));
    assert_eq!(level(|| fatal("a")), (Some(0.into()), Some("fatal".into())));
}

#[test]
fn json_gives_back_every_value() {
    let hostile = "a\n\"\\\t\u{0}\u{7f}\u{85}\u{202e}\u{2028} ü \u{1f600}";
    let line = json(|| info!(value = hostile, rate = f64::INFINITY, "m"));
    let value: serde_json::Value = serde_json::from_str(&line).expect("the line is JSON");
    assert_eq!(value.get("value").and_then(|value| value.as_str()), Some(hostile));
    assert_eq!(value.get("rate").and_then(|value| value.as_str()), Some("inf"));
    assert_eq!(line.matches('\n').count(), 1);
}

/// One event for each verbosity that matters; gives those shown.
fn shown(verbosity: u32, vmodule: &[(&str, u32)]) -> String {
    let lines = logged(verbosity, vmodule, Format::Text, || {
        info!("0");
        info!(v = 2, "2");
        info!(v = 4, "4");
        debug!("5");
        trace!("6");
        trace!(v = 8, "8");
    });
    lines.iter().map(|line| behind_place(line).trim().trim_matches('"')).collect()
}

#[test]
fn verbosity_shows_what_is_at_or_below_it() {
    let cases = [(0, "0"), (1, "0"), (2, "02"), (4, "024"), (5, "0245"), (6, "02456"), (8, "024568")];
    for (verbosity, expected) in cases {
        assert_eq!(shown(verbosity, &[]), expected, "-v={verbosity}");
    }
}

#[test]
fn vmodule_raises_and_lowers_the_verbosity_of_its_files() {
    assert_eq!(shown(0, &[("tests", 5)]), "0245");
    assert_eq!(shown(8, &[("report/log/t*", 2)]), "02");
    assert_eq!(shown(2, &[("worker", 9)]), "02");
    assert_eq!(shown(0, &[("t*", 2), ("tests", 9)]), "02");
}

#[test]
fn vmodule_pattern_means_file_or_room_and_file() {
    let cases = [
        ("worker", "src/claim/worker.rs", true),
        ("claim/worker", "src/claim/worker.rs", true),
        ("claim/*", "src/claim/worker.rs", true),
        ("claim", "src/claim/mod.rs", true),
        ("wor?er", "src/claim/worker.rs", true),
        ("[a-x]orke[^a]", "src/claim/worker.rs", true),
        ("*e*", "src/kube_api/lease.rs", true),
        ("kube-client-*/client/*", "/home/x/kube-client-5.0.0/src/client/auth.rs", true),
        ("mod", "src/claim/mod.rs", false),
        ("work", "src/claim/worker.rs", false),
        ("*", "src/claim/worker.rs", true),
        ("*/x", "src/claim/worker.rs", false),
        ("c*worker", "src/claim/worker.rs", false),
        ("c?aim?worker", "src/claim/worker.rs", false),
        ("[orker", "src/claim/worker.rs", false),
        ("", "src/claim/worker.rs", false),
    ];
    for (pattern, file, expected) in cases {
        assert_eq!(matches_file(pattern, file), expected, "{pattern:?} on {file}");
    }
}

#[test]
fn other_crates_show_only_warnings_and_errors() {
    let shown = |module: &str| {
        let filter = Filter::new(9, Vec::new());
        let levels = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
        levels.into_iter().filter(|level| filter.shows_at(*level, module, "src/x.rs", 0)).count()
    };
    let others = ["kube_client::client", "hyper", "csi_provisioner_other::x", ""].map(shown);
    let ours = ["csi_provisioner", "csi_provisioner::claim::worker", "csi_sandbox::x"].map(shown);
    assert_eq!((others, ours), ([2; 4], [5; 3]));
}

#[test]
fn target_of_an_event_is_named_as_logger() {
    let line = text(|| info!(target: "lease", holder = "x", "Taken"));
    assert_eq!(behind_place(&line), "\"Taken\" holder=\"x\" logger=\"lease\"\n");
}

#[test]
fn places_name_no_folders_of_the_machine() {
    use super::line::place;
    assert_eq!(place("src/claim/worker.rs", 3), "claim/worker.rs:3");
    assert_eq!(
        place("/root/reg/src/index/kube-client-5.0.0/src/client/mod.rs", 3),
        "kube-client-5.0.0/client/mod.rs:3"
    );
    assert_eq!(place("/root/x.rs", 3), "x.rs:3");
}

#[test]
fn spans_are_never_entered() {
    let line = text(|| {
        let _inside = tracing::error_span!("outer", secret = "x").entered();
        info!("m");
    });
    assert_eq!(behind_place(&line), "\"m\"\n");
}
