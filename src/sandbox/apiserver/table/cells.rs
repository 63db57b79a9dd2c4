//! What cells are made of.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// One object about to become a row.
pub struct Row<'a> {
    /// The object.
    pub object: &'a Value,
    /// The time that ages are counted to.
    pub now: Timestamp,
}

impl Row<'_> {
    /// The object's name.
    pub fn name(&self) -> Value {
        self.text("/metadata/name")
    }

    /// A text at a path, empty when absent.
    pub fn text(&self, path: &str) -> Value {
        json!(self.str(path))
    }

    /// A text at a path, or what is shown instead.
    pub fn text_or(&self, path: &str, absent: &str) -> Value {
        json!(self.object.pointer(path).and_then(Value::as_str).unwrap_or(absent))
    }

    /// A text at a path, empty when absent.
    pub fn str(&self, path: &str) -> &str {
        self.object.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number at a path, 0 when absent.
    pub fn number(&self, path: &str) -> i64 {
        self.object.pointer(path).and_then(Value::as_i64).unwrap_or(0)
    }

    /// A yes or no at a path, no when absent.
    pub fn flag(&self, path: &str) -> Value {
        json!(self.object.pointer(path).and_then(Value::as_bool).unwrap_or(false))
    }

    /// The texts of a list at a path.
    pub fn list(&self, path: &str) -> Vec<&str> {
        self.object.pointer(path).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// How many entries a list or map has.
    pub fn count(&self, path: &str) -> usize {
        match self.object.pointer(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => 0,
        }
    }

    /// The object's age.
    pub fn age(&self) -> Value {
        self.since("/metadata/creationTimestamp")
    }

    /// The time since the stamp at a path.
    pub fn since(&self, path: &str) -> Value {
        let Ok(stamp) = self.str(path).parse::<Timestamp>() else { return json!("<unknown>") };
        json!(duration_text(self.now.duration_since(stamp).as_secs()))
    }

    /// The phase at a path, or that the object is going away.
    pub fn phase(&self, path: &str) -> Value {
        if self.str("/metadata/deletionTimestamp").is_empty() { self.text(path) } else { json!("Terminating") }
    }

    /// Access modes in their short form.
    pub fn access_modes(&self, path: &str) -> Value {
        let short = |mode: &str| match mode {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            _ => "",
        };
        let modes = self.list(path);
        let known = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
        json!(known.iter().filter(|mode| modes.contains(mode)).map(|mode| short(mode)).collect::<Vec<_>>().join(","))
    }

    /// Labels at a path as `a=b,c=d`, or `<none>`.
    pub fn labels(&self, path: &str) -> Value {
        let labels = self.object.pointer(path).and_then(Value::as_object);
        let texts: Vec<String> = labels
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        json!(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
    }

    /// A field of every container of the pod template, joined by commas.
    pub fn containers(&self, field: &str) -> Value {
        let containers = self.object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        let texts: Vec<&str> = containers.into_iter().flatten().filter_map(|it| it.get(field)?.as_str()).collect();
        json!(texts.join(","))
    }
}

/// A duration the way kubectl writes it: two units at most, fewer the longer it is.
fn duration_text(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, small: i64, units: (&str, &str)| match small {
        0 => format!("{large}{}", units.0),
        small => format!("{large}{}{small}{}", units.0, units.1),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, seconds % 60, ("m", "s")),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, minutes % 60, ("h", "m")),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, hours % 24, ("d", "h")),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, days % 365, ("y", "d")),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_lose_detail_with_length() {
        let cases = [
            (5, "5s"),
            (119, "119s"),
            (125, "2m5s"),
            (180, "3m"),
            (3700, "61m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (900_000, "10d"),
        ];
        for (seconds, wanted) in cases {
            assert_eq!(duration_text(seconds), wanted);
        }
    }

    #[test]
    fn access_modes_are_short_and_in_a_fixed_order() {
        let object = json!({"modes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteMany"]});
        assert_eq!(Row { object: &object, now: Timestamp::UNIX_EPOCH }.access_modes("/modes"), "RWO,RWX");
    }
}
