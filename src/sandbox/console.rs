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
        let plain = format!("{seconds:7.2}s  {:<7} {:<22} {}", line.about, line.object, line.text);
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

/// Writes a line to standard output. A reader that has gone away is no reason to leave the world standing.
pub fn say(text: &str) {
    let _gone = writeln!(std::io::stdout().lock(), "{text}");
}

/// Seconds with two digits, for people and documents.
pub fn rounded(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}
