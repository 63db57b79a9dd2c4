//! The log: klog's text format or JSON like the Go sidecar's `--logging-format=json`, on stderr, one line per event.
//!
//! How rooms write, and what level that is:
//! - `error!`, `warn!`, `info!`: always shown (`E`, `W`, `I`);
//! - `info!(v = 3, ..)`: shown from `-v=3` on;
//! - `debug!`: shown from `-v=5` on (every driver call); `trace!`: from `-v=6` on, `trace!(v = 8, ..)` from 8 on.
//!
//! Promises:
//! - one event is one line and one write, whatever is in its values;
//! - a target that an event names stands in its line as `logger`, as Go's named loggers do;
//! - of other crates only warnings and errors come through (the API client tells whole requests at debug);
//! - the wall clock is the one handed in; times are UTC.
//!
//! Spans are not used: a line carries what it needs itself.

mod filter;
mod line;
#[cfg(test)]
mod tests;

use crate::clock::Clock;
use filter::Filter;
use line::{Kind, Record};
use std::io::Write as _;
use std::panic::Location;
use std::time::Duration;
use tracing::subscriber::{Interest, SetGlobalDefaultError};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Settings of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `-v`.
    pub verbosity: u32,
    /// `--vmodule`: the first pattern that matches a source file replaces `verbosity` there.
    pub vmodule: Vec<Vmodule>,
    /// `--logging-format`.
    pub format: Format,
    /// `--log-flush-frequency`; without effect, each line is written at once.
    pub flush: Duration,
}

/// Verbosity of some source files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vmodule {
    /// Glob over the file's name without `.rs` (a `mod.rs` goes by its room's name); with a slash, over room and file.
    pub pattern: String,
    /// Verbosity there.
    pub level: u32,
}

/// Form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `I1129 15:58:11.474972   25818 claim/worker.rs:143] "message" key="value"`.
    Text,
    /// `{"ts":1795968086819.826,"caller":"claim/worker.rs:143","msg":"message","v":0,"key":"value"}`.
    Json,
}

/// Target of the one event that ends the process.
const FATAL: &str = "csi_provisioner::fatal";

/// Sends all events of this process to stderr from now on.
///
/// # Errors
/// If a log was set up before.
pub fn init(config: &LogConfig, clock: Clock) -> Result<(), SetGlobalDefaultError> {
    // A log that cannot be written is no reason to stop the work.
    let stderr = |line: &str| drop(std::io::stderr().lock().write_all(line.as_bytes()));
    tracing::subscriber::set_global_default(subscriber(config, clock, std::process::id(), stderr))
}

/// The log as a subscriber that hands each finished line, line break included, to `sink`.
pub fn subscriber(
    config: &LogConfig,
    clock: Clock,
    process: u32,
    sink: impl Fn(&str) + Send + Sync + 'static,
) -> impl Subscriber + Send + Sync {
    Log { filter: Filter::new(config.verbosity, config.vmodule.clone()), format: config.format, clock, process, sink }
}

/// Writes klog's `F` line at the caller's place. The caller then ends the process with code 255.
#[track_caller]
pub fn fatal(message: &str) {
    let place = Location::caller();
    tracing::error!(target: FATAL, caller_file = place.file(), caller_line = place.line(), "{message}");
}

struct Log<S> {
    filter: Filter,
    format: Format,
    clock: Clock,
    process: u32,
    sink: S,
}

// === impl Log ===

impl<S: Fn(&str) + Send + Sync + 'static> Subscriber for Log<S> {
    /// What a call site's place and level say is settled once, so a hidden line costs one load.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.filter.may_show(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.filter.may_show(metadata)
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(self.filter.most())
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut record = Record::default();
        event.record(&mut record);
        let level = record.verbosity.unwrap_or_else(|| filter::usual_verbosity(*metadata.level()));
        if !self.filter.shows(metadata, level) {
            return;
        }
        let kind = match *metadata.level() {
            Level::ERROR if metadata.target() == FATAL => Kind::Fatal,
            Level::ERROR => Kind::Error,
            Level::WARN => Kind::Warning,
            _ => Kind::Info(level),
        };
        let caller = record
            .caller
            .take()
            .unwrap_or_else(|| line::place(metadata.file().unwrap_or("unknown"), metadata.line().unwrap_or_default()));
        if metadata.module_path().is_some_and(|module| module != metadata.target()) && kind != Kind::Fatal {
            record.name_logger(metadata.target());
        }
        let now = self.clock.now();
        let line = match self.format {
            Format::Text => line::text(kind, now, self.process, &caller, &record),
            Format::Json => line::json(kind, now, &caller, &record),
        };
        (self.sink)(&line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        // Never asked for: no span is enabled.
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
