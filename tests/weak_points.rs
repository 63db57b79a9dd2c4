//! docs/weak-points.md is true: every id has one row, and every test that it names exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Ids of field faults of the kinds that the table covers.
const FAULTS: [&str; 66] = [
    "L01", "L02", "L03", "L04", "L07", "L08", "L09", "L10", "L13", "D01", "D02", "D03", "D04", "D05", "S01", "S02",
    "S03", "S04", "S05", "S07", "S08", "S09", "S10", "S11", "O01", "O02", "O03", "O04", "O05", "O06", "O07", "R01",
    "R02", "R04", "R05", "R07", "R09", "R10", "R11", "R13", "B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08",
    "B10", "B11", "B12", "B15", "U01", "U02", "U03", "U04", "U05", "U08", "U09", "U11", "X01", "X02", "X03", "X04",
    "X05", "X08",
];

fn table() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/weak-points.md")).expect("readable table")
}

/// Id and last cell of each row.
fn rows(table: &str) -> Vec<(&str, &str)> {
    table
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|line| {
            let mut parts = line.trim_matches('|').split(" | ");
            let id = parts.next()?.trim();
            let numbered = id.len() > 1 && id.get(1..)?.bytes().all(|byte| byte.is_ascii_digit());
            numbered.then_some((id, parts.last()?.trim()))
        })
        .collect()
}

/// Every `file::name` between backticks.
fn named_tests(text: &str) -> Vec<(&str, &str)> {
    text.split('`')
        .filter_map(|part| part.split_once(".rs::").map(|_| part))
        .filter_map(|part| part.split_once("::"))
        .collect()
}

/// Whether the file has a test of this name: a function right under a test attribute.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let head = format!("fn {name}(");
    lines.iter().enumerate().any(|(number, line)| {
        let above = lines.get(number.saturating_sub(3)..number).unwrap_or_default();
        line.contains(&head) && above.iter().any(|line| line.contains("#[test]") || line.contains("#[tokio::test"))
    })
}

#[test]
fn every_id_has_one_row_with_a_test_or_the_room_it_waits_for() {
    let text = table();
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    for (id, tests) in rows(&text) {
        *times.entry(id).or_default() += 1;
        assert!(!named_tests(tests).is_empty() || tests.contains("later: "), "{id} names neither a test nor a room");
    }
    let weak_points: Vec<String> = (1..=45).map(|number| format!("W{number}")).collect();
    let ids = weak_points.iter().map(String::as_str).chain(FAULTS);
    let wrong: Vec<&str> = ids.filter(|id| times.remove(id) != Some(1)).collect();
    assert_eq!((wrong, times), (Vec::new(), BTreeMap::new()));
}

#[test]
fn every_test_that_is_named_exists() {
    let text = table();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let missing: Vec<String> = named_tests(&text)
        .into_iter()
        .filter(|(file, name)| !fs::read_to_string(root.join(file)).is_ok_and(|source| has_test(&source, name)))
        .map(|(file, name)| format!("{file}::{name}"))
        .collect();
    assert!(missing.is_empty(), "named in docs/weak-points.md and not there:\n{}", missing.join("\n"));
}

#[test]
fn a_function_that_is_no_test_is_not_taken_for_one() {
    assert!(has_test("#[test]\nfn rule_holds() {}", "rule_holds"));
    assert!(!has_test("fn rule_holds() {}", "rule_holds"));
    assert!(!has_test("#[test]\nfn rule_holds() {}", "rule"));
}
