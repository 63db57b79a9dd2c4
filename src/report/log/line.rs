//! Renders one event as one line, in klog's text or as JSON.

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;
use std::error::Error;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};

/// Weight of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With its verbosity.
    Info(u32),
    Warning,
    Error,
    Fatal,
}

/// What an event carries.
#[derive(Default)]
pub(super) struct Record {
    message: String,
    fields: Vec<(&'static str, Value)>,
    /// Field `v`.
    pub verbosity: Option<u32>,
    /// Place that the event names itself instead of its own.
    pub caller: Option<String>,
    caller_file: String,
}

enum Value {
    /// Quoted and escaped.
    Text(String),
    /// Number or boolean, as it is.
    Plain(String),
}

// === impl Record ===

impl Record {
    /// Adds the name of the part that speaks, as the last field.
    pub(super) fn name_logger(&mut self, name: &str) {
        self.fields.push(("logger", Value::Text(name.to_owned())));
    }

    fn push(&mut self, field: &Field, value: Value) {
        // klog calls it `err`, and that is what people search for.
        let name = if field.name() == "error" { "err" } else { field.name() };
        self.fields.push((name, value));
    }

    fn number(&mut self, field: &Field, number: Option<u32>, text: String) {
        match (field.name(), number) {
            ("v", Some(verbosity)) => self.verbosity = Some(verbosity),
            ("caller_line", Some(line)) => self.caller = Some(place(&self.caller_file, line)),
            _ => self.push(field, Value::Plain(text)),
        }
    }
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else {
            self.push(field, Value::Text(text));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "caller_file" => value.clone_into(&mut self.caller_file),
            _ => self.push(field, Value::Text(value.to_owned())),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, u32::try_from(value).ok(), value.to_string());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, u32::try_from(value).ok(), value.to_string());
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.push(field, Value::Plain(value.to_string()));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.push(field, Value::Plain(value.to_string()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinity and no NaN.
        let text = value.to_string();
        self.push(field, if value.is_finite() { Value::Plain(text) } else { Value::Text(text) });
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, Value::Plain(value.to_string()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        // With its sources: the innermost one usually is what has to be repaired.
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(error) = source {
            let _ = write!(text, ": {error}");
            source = error.source();
        }
        self.push(field, Value::Text(text));
    }
}

/// klog's text line.
pub(super) fn text(kind: Kind, now: Timestamp, process: u32, caller: &str, record: &Record) -> String {
    let letter = match kind {
        Kind::Info(_) => 'I',
        Kind::Warning => 'W',
        Kind::Error => 'E',
        Kind::Fatal => 'F',
    };
    let time = TimeZone::UTC.to_datetime(now);
    let mut line = format!(
        "{letter}{:02}{:02} {:02}:{:02}:{:02}.{:06} {process:7} {caller}] ",
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.subsec_nanosecond() / 1_000,
    );
    quote(&mut line, &record.message);
    for (name, value) in &record.fields {
        let _ = write!(line, " {name}=");
        match value {
            Value::Text(text) => quote(&mut line, text),
            Value::Plain(text) => line.push_str(text),
        }
    }
    line.push('\n');
    line
}

/// The JSON line: `v` for information, as in Go; warnings and fatal lines, which Go does not mark, carry `level`.
pub(super) fn json(kind: Kind, now: Timestamp, caller: &str, record: &Record) -> String {
    let micros = now.as_microsecond();
    let mut line = format!("{{\"ts\":{}.{:03},\"caller\":", micros.div_euclid(1_000), micros.rem_euclid(1_000));
    json_string(&mut line, caller);
    line.push_str(",\"msg\":");
    json_string(&mut line, &record.message);
    let _ = match kind {
        Kind::Info(verbosity) => write!(line, ",\"v\":{verbosity}"),
        Kind::Warning => write!(line, ",\"v\":0,\"level\":\"warning\""),
        Kind::Error => Ok(()),
        Kind::Fatal => write!(line, ",\"v\":0,\"level\":\"fatal\""),
    };
    for (name, value) in &record.fields {
        line.push(',');
        json_string(&mut line, name);
        line.push(':');
        match value {
            Value::Text(text) => json_string(&mut line, text),
            Value::Plain(text) => line.push_str(text),
        }
    }
    line.push_str("}\n");
    line
}

/// `file:line` as shown in a line.
pub(super) fn place(file: &str, line: u32) -> String {
    format!("{}:{line}", short_path(file))
}

/// A source path without what differs from machine to machine: room and file for us, package, folder and file for
/// other crates.
pub(super) fn short_path(file: &str) -> String {
    if let Some(ours) = file.strip_prefix("src/") {
        return ours.to_owned();
    }
    match file.rsplit_once("/src/") {
        Some((package, inside)) => format!("{}/{inside}", package.rsplit('/').next().unwrap_or(package)),
        None => file.rsplit('/').next().unwrap_or(file).to_owned(),
    }
}

/// Characters that break a line, hide text or turn its direction.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Quotes as Go's `%q` does.
fn quote(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if c.is_ascii_control() => drop(write!(line, "\\x{:02x}", u32::from(c))),
            c if is_unsafe(c) => drop(write!(line, "\\u{:04x}", u32::from(c))),
            c => line.push(c),
        }
    }
    line.push('"');
}

fn json_string(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if is_unsafe(c) => drop(write!(line, "\\u{:04x}", u32::from(c))),
            c => line.push(c),
        }
    }
    line.push('"');
}
