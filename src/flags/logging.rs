//! Log flags: what the Go sidecar's logging library permits of them (provisioning.md 1.8). Whatever it refuses
//! ends with code 1, before gates and variables are looked at.

use super::Exit;
use super::raw::LoggingFlags;
use crate::report::log::{Format, LogConfig};

/// Checks the log flags.
///
/// # Errors
/// Exit code 1 for an unknown format, a flush time that is not above 0, `--vmodule` with JSON, alpha options.
pub(super) fn resolve(flags: LoggingFlags) -> Result<LogConfig, Exit> {
    let LoggingFlags {
        verbosity,
        vmodule,
        logging_format,
        log_flush_frequency,
        log_text_split_stream,
        log_text_info_buffer_size,
        log_json_split_stream,
        log_json_info_buffer_size,
    } = flags;
    let format = match logging_format.as_str() {
        "text" => Format::Text,
        "json" => Format::Json,
        other => {
            let why = "there is no such log format; allowed: text or json; example: --logging-format=json";
            return Err(refused("logging-format", &format!("={other:?}"), why));
        }
    };
    let Some(flush) = log_flush_frequency.positive() else {
        let why = "it has to be above 0; allowed: a duration such as 5s; example: --log-flush-frequency=5s";
        return Err(refused("log-flush-frequency", &format!("={log_flush_frequency}"), why));
    };
    if format == Format::Json && !vmodule.is_empty() {
        let why = "levels per file exist in the text format only; leave it out or write --logging-format=text";
        return Err(refused("vmodule", "", why));
    }
    let alpha = [
        ("log-text-split-stream", log_text_split_stream),
        ("log-text-info-buffer-size", !log_text_info_buffer_size.is_zero),
        ("log-json-split-stream", log_json_split_stream),
        ("log-json-info-buffer-size", !log_json_info_buffer_size.is_zero),
    ];
    if let Some((flag, _)) = alpha.iter().find(|(_, used)| *used) {
        let why = "this alpha option cannot be switched on, take it out; allowed: its default (false or 0)";
        return Err(refused(flag, "", why));
    }
    Ok(LogConfig { verbosity: verbosity.0, vmodule, format, flush })
}

fn refused(flag: &str, value: &str, why: &str) -> Exit {
    Exit::new(1, format!("--{flag}{value}: {why}"))
}
