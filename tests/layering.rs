//! The allowed imports between rooms, held by reading the `use crate::` lines (docs/design.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its room, whether it does I/O, and the rooms that it names.
#[derive(Debug)]
struct File {
    path: PathBuf,
    room: String,
    acts: bool,
    imports: Vec<String>,
    lines: usize,
}

/// Rooms whose pure files decide; their `worker` and `watching` files act.
const FEATURE_ROOMS: [&str; 7] =
    ["claim", "volume", "topology", "protection", "migration", "capacity", "node_deployment"];

/// What a room may import besides itself, pure files first, acting files second.
fn allowed(room: &str) -> (&'static [&'static str], &'static [&'static str]) {
    const ACTING: &[&str] = &["model", "csi", "kube_api", "report", "clock", "random"];
    match room {
        "claim" => (&["model", "topology"], &["model", "topology", "csi", "kube_api", "report", "clock", "random"]),
        // The secret templates of a class are one rule for both rooms.
        "volume" => (&["model", "claim"], &["model", "claim", "csi", "kube_api", "report", "clock", "random"]),
        "topology" | "protection" | "migration" | "capacity" | "node_deployment" => (&["model"], ACTING),
        "model" => (&["signal"], &["signal"]),
        "csi" => (&["model", "random", "clock", "signal"], &["model", "random", "clock", "signal"]),
        "kube_api" => (&["model", "clock", "random", "report"], &["model", "clock", "random", "report"]),
        "report" => (&["clock", "kube_api", "csi", "flags"], &["clock", "kube_api", "csi", "flags"]),
        "flags" => (&["model", "report"], &["model", "report"]),
        "clock" | "random" | "signal" => (&[], &[]),
        // The sandbox judges the sidecar, so it shares only wire types with it; it may start the whole of it.
        "sandbox" => (&["csi", "clock", "random", "signal", "app"], &["csi", "clock", "random", "signal", "app"]),
        _ => (&["*"], &["*"]),
    }
}

#[test]
fn every_import_follows_the_drawn_edges() {
    let wrong: Vec<String> = files().iter().flat_map(violations).collect();
    assert!(wrong.is_empty(), "imports that cross rooms the wrong way:\n{}", wrong.join("\n"));
}

#[test]
fn an_import_the_wrong_way_is_found() {
    let file = File {
        path: PathBuf::from("src/claim/plan.rs"),
        room: "claim".into(),
        acts: false,
        imports: vec!["kube_api".into()],
        lines: 1,
    };
    assert_eq!(violations(&file).len(), 1);
}

#[test]
fn no_source_file_is_longer_than_500_lines() {
    let long: Vec<String> = files()
        .iter()
        .filter(|file| file.lines > 500)
        .map(|file| format!("{} has {} lines", file.path.display(), file.lines))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn pure_files_know_no_time_randomness_or_log() {
    let mut wrong = Vec::new();
    for file in files().iter().filter(|file| !file.acts && FEATURE_ROOMS.contains(&file.room.as_str())) {
        let text = without_tests(&fs::read_to_string(&file.path).expect("readable source"));
        for word in ["async fn", "Instant::now", "Timestamp::now", "tracing::", "tokio::spawn", "kube::Client"] {
            if text.contains(word) {
                wrong.push(format!("{} contains {word}", file.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn violations(file: &File) -> Vec<String> {
    let (pure, acting) = allowed(&file.room);
    let rooms = if file.acts { acting } else { pure };
    file.imports
        .iter()
        .filter(|import| **import != file.room && !rooms.contains(&"*") && !rooms.contains(&import.as_str()))
        .map(|import| format!("{}: {} may not import {import}", file.path.display(), file.room))
        .collect()
}

fn files() -> Vec<File> {
    let mut found = BTreeMap::new();
    collect(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").as_path(), &mut found);
    assert!(found.len() > 30, "the source tree was not found");
    found.into_values().collect()
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, File>) {
    for entry in fs::read_dir(folder).expect("readable folder") {
        let path = entry.expect("readable entry").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.insert(path.clone(), read(path));
        }
    }
}

fn read(path: PathBuf) -> File {
    let text = fs::read_to_string(&path).expect("readable source");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let relative = path.strip_prefix(root).expect("below src").with_extension("");
    let parts: Vec<String> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let acts = parts.iter().any(|part| matches!(part.as_str(), "worker" | "watching"));
    let test_file = parts.iter().any(|part| part == "tests" || part.starts_with("fake"));
    let body = without_tests(&text);
    let imports = if test_file { Vec::new() } else { imports(&body) };
    File { room: parts.first().cloned().unwrap_or_default(), lines: text.lines().count(), path, acts, imports }
}

/// The text before an inline test module.
fn without_tests(text: &str) -> String {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// First path segments after `crate::`, outside of comments.
fn imports(text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut found: Vec<String> = code
        .flat_map(|line| line.split("crate::").skip(1).map(str::to_owned).collect::<Vec<_>>())
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>())
        .filter(|name| !name.is_empty())
        .collect();
    found.sort();
    found.dedup();
    found
}
