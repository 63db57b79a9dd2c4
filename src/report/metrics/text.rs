//! Prometheus' text format, number for number as Go's client library writes it.
//!
//! The crate's own encoder writes `0.00000001` and `12345678` where Go writes `1e-08` and `1.2345678e+07`. Both are the
//! same number to a scraper, but a bucket limit is a **label**: mixed Go and Rust replicas would give two series.

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use std::fmt::Write;

/// One page of families, in the order given.
pub(super) fn page(families: &[MetricFamily]) -> String {
    let mut page = String::new();
    for family in families {
        write_family(&mut page, family);
    }
    page
}

fn write_family(page: &mut String, family: &MetricFamily) {
    let name = family.name();
    let kind = match family.get_field_type() {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        MetricType::SUMMARY => "summary",
        MetricType::UNTYPED => "untyped",
    };
    push(page, &["# HELP ", name, " ", &escaped(family.help(), false), "\n# TYPE ", name, " ", kind, "\n"]);
    for metric in family.get_metric() {
        match family.get_field_type() {
            MetricType::COUNTER => sample(page, name, metric, None, metric.get_counter().get_value()),
            MetricType::GAUGE => sample(page, name, metric, None, metric.get_gauge().get_value()),
            MetricType::HISTOGRAM => write_histogram(page, name, metric),
            // Nothing here makes them.
            MetricType::SUMMARY | MetricType::UNTYPED => {}
        }
    }
}

fn write_histogram(page: &mut String, name: &str, metric: &Metric) {
    let histogram = metric.get_histogram();
    let bucket = format!("{name}_bucket");
    for limit in histogram.get_bucket() {
        sample(page, &bucket, metric, Some(&number(limit.upper_bound())), float(limit.cumulative_count()));
    }
    let count = float(histogram.get_sample_count());
    sample(page, &bucket, metric, Some("+Inf"), count);
    sample(page, &format!("{name}_sum"), metric, None, histogram.get_sample_sum());
    sample(page, &format!("{name}_count"), metric, None, count);
}

fn sample(page: &mut String, name: &str, metric: &Metric, limit: Option<&str>, value: f64) {
    page.push_str(name);
    let mut separator = "{";
    let labels = metric.get_label().iter().map(|pair: &LabelPair| (pair.name(), escaped(pair.value(), true)));
    for (label, value) in labels.chain(limit.map(|limit| ("le", limit.to_owned()))) {
        push(page, &[separator, label, "=\"", &value, "\""]);
        separator = ",";
    }
    if separator == "," {
        page.push('}');
    }
    push(page, &[" ", &number(value), "\n"]);
}

fn push(page: &mut String, parts: &[&str]) {
    page.extend(parts.iter().copied());
}

/// Help texts and label values may contain anything; quotes matter in labels alone.
fn escaped(text: &str, label: bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => safe.push_str("\\\\"),
            '\n' => safe.push_str("\\n"),
            '"' if label => safe.push_str("\\\""),
            other => safe.push(other),
        }
    }
    safe
}

/// Counts beyond 2^53 lose their last digits, as in Go.
#[allow(clippy::cast_precision_loss, reason = "the format knows floating point numbers alone")]
fn float(count: u64) -> f64 {
    count as f64
}

/// A number as Go's `strconv` writes it in format `g`: the shortest digits that read back as the same number, plain
/// from 0.0001 to below a million, else with an exponent of at least two digits.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if value == 0.0 || (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let mut text = String::from(digits);
    let sign = if exponent < 0 { '-' } else { '+' };
    // Writing to a String cannot fail.
    let _ = write!(text, "e{sign}{:02}", exponent.abs());
    text
}

#[cfg(test)]
mod tests {
    use super::{escaped, number};

    #[test]
    fn numbers_are_written_as_in_go() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (1e-8 * 10.0 * 10.0 * 10.0, "9.999999999999999e-06"),
            (123_456.0, "123456"),
            (999_999.5, "999999.5"),
            (1e6, "1e+06"),
            (24_121_344.0, "2.4121344e+07"),
            (18_446_744_073_709_551_615.0, "1.8446744073709552e+19"),
            (1e100, "1e+100"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn label_values_may_contain_anything() {
        assert_eq!(escaped("a\"b\\c\nd", true), "a\\\"b\\\\c\\nd");
    }
}
