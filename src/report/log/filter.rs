//! Decides which events are shown: verbosity, its exceptions by source file, and the cap on other crates.

use super::Vmodule;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};

/// Verbosity from which `debug!` is shown.
const DEBUG: u32 = 5;
/// Verbosity from which `trace!` is shown.
const TRACE: u32 = 6;

/// Verbosity that an event without `v` needs.
pub(super) fn usual_verbosity(level: Level) -> u32 {
    match level {
        Level::TRACE => TRACE,
        Level::DEBUG => DEBUG,
        _ => 0,
    }
}

/// The settled settings.
pub(super) struct Filter {
    verbosity: u32,
    vmodule: Vec<Vmodule>,
}

impl Filter {
    pub(super) fn new(verbosity: u32, vmodule: Vec<Vmodule>) -> Self {
        Self { verbosity, vmodule }
    }

    /// The most detailed level that any file may show.
    pub(super) fn most(&self) -> LevelFilter {
        match self.vmodule.iter().map(|item| item.level).fold(self.verbosity, u32::max) {
            TRACE.. => LevelFilter::TRACE,
            DEBUG.. => LevelFilter::DEBUG,
            _ => LevelFilter::INFO,
        }
    }

    /// False if no event of this place can be shown, whatever it carries.
    pub(super) fn may_show(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.shows(metadata, usual_verbosity(*metadata.level()))
    }

    /// Whether an event of that verbosity is shown.
    pub(super) fn shows(&self, metadata: &Metadata<'_>, verbosity: u32) -> bool {
        // The target is free text that rooms choose; only the module tells whose event it is.
        let module = metadata.module_path().unwrap_or(metadata.target());
        self.shows_at(*metadata.level(), module, metadata.file().unwrap_or(""), verbosity)
    }

    /// Warnings and errors always are shown; the rest only of our own modules.
    pub(super) fn shows_at(&self, level: Level, module: &str, file: &str, verbosity: u32) -> bool {
        level <= Level::WARN || (is_ours(module) && verbosity <= self.verbosity_of(file))
    }

    fn verbosity_of(&self, file: &str) -> u32 {
        let found = self.vmodule.iter().find(|item| matches_file(&item.pattern, file));
        found.map_or(self.verbosity, |item| item.level)
    }
}

/// Our two programs, their library, and the tests.
fn is_ours(module: &str) -> bool {
    let package = module.split("::").next().unwrap_or(module);
    package == "csi_provisioner" || package == "csi_sandbox"
}

/// Whether a `--vmodule` pattern means this source file.
pub(super) fn matches_file(pattern: &str, file: &str) -> bool {
    let path = super::line::short_path(file);
    let path = path.strip_suffix(".rs").unwrap_or(&path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let subject = if pattern.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
    glob(&pattern.chars().collect::<Vec<_>>(), &subject.chars().collect::<Vec<_>>())
}

/// Shell patterns: `*` and `?` stand for anything but a slash, `[a-z]` and `[^a-z]` for one of some characters. A
/// pattern with an open bracket matches nothing.
fn glob(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['*', after @ ..], text) => {
            glob(after, text) || matches!(text, [c, rest @ ..] if *c != '/' && glob(pattern, rest))
        }
        (['?', pattern @ ..], [c, text @ ..]) => *c != '/' && glob(pattern, text),
        (['[', pattern @ ..], [c, text @ ..]) => match pattern.iter().position(|c| *c == ']') {
            Some(end) => {
                let (set, rest) = pattern.split_at(end);
                in_set(set, *c) && rest.split_first().is_some_and(|(_, rest)| glob(rest, text))
            }
            None => false,
        },
        ([wanted, pattern @ ..], [c, text @ ..]) => wanted == c && glob(pattern, text),
        (_, []) | ([], _) => false,
    }
}

fn in_set(set: &[char], c: char) -> bool {
    let (negated, mut rest) = match set {
        ['^', rest @ ..] => (true, rest),
        set => (false, set),
    };
    let mut found = false;
    while let [first, after @ ..] = rest {
        let (last, after) = match after {
            ['-', last, after @ ..] => (last, after),
            after => (first, after),
        };
        found |= (*first..=*last).contains(&c);
        rest = after;
    }
    found != negated
}
