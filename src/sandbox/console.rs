//! Where lines go: to a terminal with colour, to a file or pipe without, or into a document.

use super::narrate::{Line, Tone};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tokio::time::Instant;

/// Takes lines as they happen and keeps them.
pub struct Console {
    started: Instant,
    quiet: bool,
    colour: bool,
    timeline: Vec<Value>,
}

impl Console {
    /// For standard output; quiet when only a document is printed at the end.
    pub fn new(quiet: bool) -> Self {
        // https://no-color.org: any value that is not empty.
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = !no_colour && std::io::stdout().is_terminal();
        Self { started: Instant::now(), quiet, colour, timeline: Vec::new() }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Takes a line.
    pub fn line(&mut self, line: &Line) {
        let seconds = self.elapsed().as_secs_f64();
        self.timeline.push(json!({
            "seconds": rounded(seconds), "about": line.about, "object": line.object, "text": line.text,
        }));
        self.print(&self.painted(seconds, line));
    }

    /// Takes a remark that is no step of an object.
    pub fn remark(&mut self, text: &str) {
        self.print(text);
    }

    /// All lines so far, for a document.
    pub fn timeline(&self) -> &[Value] {
        &self.timeline
    }

    fn painted(&self, seconds: f64, line: &Line) -> String {
        let text = if line.tone == Tone::Bad { line.text.clone() } else { cut(&line.text) };
        let plain = abbreviated(&format!("{seconds:7.2}s  {:<7} {:<18} {text}", line.about, abbreviated(&line.object)));
        match (self.colour, line.tone) {
            (false, _) | (true, Tone::Plain) => plain,
            (true, Tone::Good) => format!("\u{1b}[32m{plain}\u{1b}[0m"),
            (true, Tone::Bad) => format!("\u{1b}[31m{plain}\u{1b}[0m"),
        }
    }

    fn print(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }
}

/// What does not fit into a line beside the rest; bad news is never cut.
const LONGEST_TEXT: usize = 110;

fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST_TEXT {
        return text.to_owned();
    }
    text.chars().take(LONGEST_TEXT).chain(['\u{2026}']).collect()
}

/// Names such as `pvc-` and a UID are shown with the first eight digits, which tell them apart well enough here.
fn abbreviated(text: &str) -> String {
    const UID: usize = 36;
    const SHOWN: usize = 8;
    let mut parts = text.split("pvc-");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        short.push_str("pvc-");
        let is_uid = |uid: &str| uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        match (part.get(..SHOWN), part.get(..UID).filter(|uid| is_uid(uid)), part.get(UID..)) {
            (Some(shown), Some(_), Some(rest)) => {
                short.push_str(shown);
                short.push('\u{2026}');
                short.push_str(rest);
            }
            _ => short.push_str(part),
        }
    }
    short
}

/// Writes a line to standard output. A reader that has gone away is no reason to leave the world standing.
pub fn say(text: &str) {
    let _gone = writeln!(std::io::stdout().lock(), "{text}");
}

/// Seconds with two digits, for people and documents.
pub fn rounded(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_a_uid_is_abbreviated_and_others_are_not() {
        let text = "Bound to pvc-31a54247-a58c-4d79-b93b-a573aa14d754 (1Gi) beside pvc-mine";
        assert_eq!(abbreviated(text), "Bound to pvc-31a54247\u{2026} (1Gi) beside pvc-mine");
    }

    #[test]
    fn long_text_is_cut_between_letters() {
        let text = "\u{e4}".repeat(200);
        assert_eq!(cut(&text).chars().count(), LONGEST_TEXT + 1);
        assert_eq!(cut("short"), "short");
    }
}
