//! Tells what happens to claims, volumes and pods in lines that somebody who knows kubectl can read. No printing here.

use super::binder::names::{PROVISIONED_BY, SELECTED_NODE};
use super::binder::objects::{annotation, claim_key, finalizers, is_deleting, key, name, phase, text};
use super::direct::News;
use super::driver::script::Step;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kinds that are told of.
pub const KINDS: [&str; 4] = ["persistentvolumeclaims", "persistentvolumes", "events", "pods"];

/// How a line feels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Plain,
    /// An end that was wanted.
    Good,
    /// Something went wrong.
    Bad,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is about: `claim`, `volume`, `event`, `pod`, `driver`.
    pub about: &'static str,
    /// Name of the object; claims and pods outside the default namespace with their namespace.
    pub object: String,
    /// What happened.
    pub text: String,
    /// How it feels.
    pub tone: Tone,
}

impl Line {
    fn new(about: &'static str, object: String, text: impl Into<String>) -> Self {
        Self { about, object, text: text.into(), tone: Tone::Plain }
    }

    fn toned(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// What has been told so far: the objects in their last state.
#[derive(Clone, Debug, Default)]
pub struct Narrator {
    /// Claims by key.
    pub claims: BTreeMap<String, Arc<Value>>,
    /// Volumes by name.
    pub volumes: BTreeMap<String, Arc<Value>>,
    /// Events by key.
    pub events: BTreeMap<String, Arc<Value>>,
    pods: BTreeMap<String, Arc<Value>>,
}

impl Narrator {
    /// The lines for a piece of news.
    pub fn hears(&mut self, news: News) -> Vec<Line> {
        match news {
            News::Changed("persistentvolumeclaims", claim) => {
                let old = self.claims.insert(key(&claim), Arc::clone(&claim));
                claim_lines(old.as_deref(), &claim)
            }
            News::Changed("persistentvolumes", volume) => {
                let old = self.volumes.insert(name(&volume).to_owned(), Arc::clone(&volume));
                volume_lines(old.as_deref(), &volume)
            }
            News::Changed("pods", pod) => {
                let old = self.pods.insert(key(&pod), Arc::clone(&pod));
                pod_lines(old.as_deref(), &pod)
            }
            News::Changed("events", event) => {
                let old = self.events.insert(key(&event), Arc::clone(&event));
                event_line(old.as_deref(), &event).into_iter().collect()
            }
            News::Gone("persistentvolumeclaims", claim) => {
                self.claims.remove(&key(&claim));
                vec![Line::new("claim", short(&claim), "gone")]
            }
            News::Gone("persistentvolumes", volume) => {
                self.volumes.remove(name(&volume));
                vec![Line::new("volume", name(&volume).to_owned(), "gone").toned(Tone::Good)]
            }
            News::Gone("pods", pod) => {
                self.pods.remove(&key(&pod));
                vec![Line::new("pod", short(&pod), "gone")]
            }
            News::Relisted(_) | News::Changed(..) | News::Gone(..) => Vec::new(),
        }
    }

    /// The last thing that was said about a claim, warnings first: the best guess at why it is not Bound.
    pub fn last_word(&self, claim: &Value) -> Option<String> {
        let about = |event: &&Arc<Value>| text(event, "/involvedObject/uid") == text(claim, "/metadata/uid");
        let age = |event: &&Arc<Value>| {
            let warning = text(event, "/type") == "Warning";
            (
                warning,
                text(event, "/lastTimestamp").to_owned(),
                text(event, "/metadata/resourceVersion").parse::<u64>().ok(),
            )
        };
        let last = self.events.values().filter(about).max_by_key(age)?;
        Some(format!("{}: {}", text(last, "/reason"), text(last, "/message")))
    }
}

/// The name, with its namespace unless that is the default one.
pub fn short(object: &Value) -> String {
    match text(object, "/metadata/namespace") {
        "" | "default" => name(object).to_owned(),
        _ => key(object),
    }
}

fn modes(object: &Value, pointer: &str) -> String {
    let modes = object.pointer(pointer).and_then(Value::as_array);
    modes.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

fn claim_lines(old: Option<&Value>, new: &Value) -> Vec<Line> {
    let line = |text: String| Line::new("claim", short(new), text);
    let mut lines = Vec::new();
    let Some(old) = old else {
        let class = match super::binder::objects::class(new) {
            "" => "without a class".to_owned(),
            class => format!("class {class}"),
        };
        let (size, mode) = (text(new, "/spec/resources/requests/storage"), super::binder::objects::mode(new));
        let what =
            format!("{}: wants {size}, {}, {mode}, {class}", phase_or_pending(new), modes(new, "/spec/accessModes"));
        return vec![line(what)];
    };
    match (annotation(old, SELECTED_NODE), annotation(new, SELECTED_NODE)) {
        (before, Some(node)) if before != Some(node) => lines.push(line(format!("node {node} chosen"))),
        (Some(node), None) => lines.push(line(format!("node {node} taken back")).toned(Tone::Bad)),
        _ => {}
    }
    if phase(old) != phase(new) && !phase(new).is_empty() {
        let (before, now) = (phase_or_pending(old), phase(new));
        lines.push(match now {
            "Bound" => {
                let size = text(new, "/status/capacity/storage");
                let what = format!(
                    "{before} -> Bound to {} ({size}, {})",
                    text(new, "/spec/volumeName"),
                    modes(new, "/status/accessModes")
                );
                line(what).toned(Tone::Good)
            }
            "Lost" => line(format!("{before} -> Lost")).toned(Tone::Bad),
            _ if before == now => return lines,
            _ => line(format!("{before} -> {now}")),
        });
    }
    lines.extend(terminating(old, new).map(line));
    lines
}

fn phase_or_pending(object: &Value) -> &str {
    match phase(object) {
        "" => "Pending",
        phase => phase,
    }
}

fn terminating(old: &Value, new: &Value) -> Option<String> {
    let begins = is_deleting(new) && !is_deleting(old);
    begins.then(|| format!("{} -> Terminating, held by {}", phase_or_pending(new), finalizers(new).join(", ")))
}

fn volume_lines(old: Option<&Value>, new: &Value) -> Vec<Line> {
    let line = |text: String| Line::new("volume", name(new).to_owned(), text);
    let Some(old) = old else {
        let size = text(new, "/spec/capacity/storage");
        let maker = annotation(new, PROVISIONED_BY).map(|maker| format!(" by {maker}")).unwrap_or_default();
        let owner = claim_key(new).map(|owner| format!(" for {owner}")).unwrap_or_default();
        let policy = text(new, "/spec/persistentVolumeReclaimPolicy");
        let handle = match text(new, "/spec/csi/volumeHandle") {
            "" => String::new(),
            handle => format!(", handle {handle}"),
        };
        return vec![line(format!("{}: saved{maker}{owner}, {size}, {policy}{handle}", phase_or_pending(new)))];
    };
    let mut lines = Vec::new();
    if phase(old) != phase(new) {
        let message = text(new, "/status/message");
        let why = if message.is_empty() { String::new() } else { format!(": {message}") };
        let tone = if phase(new) == "Failed" { Tone::Bad } else { Tone::Plain };
        lines.push(line(format!("{} -> {}{why}", phase_or_pending(old), phase(new))).toned(tone));
    }
    lines.extend(terminating(old, new).map(line));
    lines
}

fn pod_lines(old: Option<&Value>, new: &Value) -> Vec<Line> {
    let line = |text: String| Line::new("pod", short(new), text);
    let Some(old) = old else { return vec![line(format!("{}: created", phase_or_pending(new)))] };
    let mut lines = Vec::new();
    if text(old, "/spec/nodeName") != text(new, "/spec/nodeName") {
        lines.push(line(format!("placed on {}", text(new, "/spec/nodeName"))));
    }
    if phase_or_pending(old) != phase_or_pending(new) {
        lines.push(line(format!("{} -> {}", phase_or_pending(old), phase(new))).toned(Tone::Good));
    }
    lines
}

/// Repetitions of an event are told only for warnings.
fn event_line(old: Option<&Value>, new: &Value) -> Option<Line> {
    let (kind, count) = (text(new, "/type"), new.get("count").and_then(Value::as_i64).unwrap_or(1));
    if old.is_some() && kind != "Warning" {
        return None;
    }
    let object = match text(new, "/involvedObject/kind") {
        "PersistentVolumeClaim" => "claim",
        "PersistentVolume" => "volume",
        "Pod" => "pod",
        _ => "object",
    };
    let times = if count > 1 { format!(" (x{count})") } else { String::new() };
    let object = format!("{object}/{}", text(new, "/involvedObject/name"));
    let line = Line::new("event", object, format!("{kind} {}: {}{times}", text(new, "/reason"), text(new, "/message")));
    Some(line.toned(if kind == "Warning" { Tone::Bad } else { Tone::Plain }))
}

/// The line for an answer of the driver about a volume or snapshot; other calls and arrivals have none.
pub fn call_line(step: &Step) -> Option<Line> {
    let Step::Answered(call, code) = step else { return None };
    if call.subject.is_empty() {
        return None;
    }
    let tone = if *code == tonic::Code::Ok { Tone::Plain } else { Tone::Bad };
    Some(Line::new("driver", call.subject.clone(), format!("{} -> {code:?}", call.method)).toned(tone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(phase: &str, volume: &str) -> Arc<Value> {
        Arc::new(json!({
            "metadata": {"namespace": "default", "name": "data", "uid": "u1"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "fast", "volumeName": volume,
            },
            "status": {"phase": phase, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
        }))
    }

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn new_claim_tells_what_it_wants() {
        let mut narrator = Narrator::default();
        let lines = narrator.hears(News::Changed("persistentvolumeclaims", claim("Pending", "")));
        assert_eq!(texts(&lines), ["Pending: wants 1Gi, ReadWriteOnce, Filesystem, class fast"]);
        assert_eq!(lines[0].object, "data");
    }

    #[test]
    fn bound_claim_tells_volume_and_size() {
        let mut narrator = Narrator::default();
        narrator.hears(News::Changed("persistentvolumeclaims", claim("Pending", "")));
        let lines = narrator.hears(News::Changed("persistentvolumeclaims", claim("Bound", "pvc-1")));
        assert_eq!(texts(&lines), ["Pending -> Bound to pvc-1 (1Gi, ReadWriteOnce)"]);
        assert_eq!(lines[0].tone, Tone::Good);
    }

    #[test]
    fn change_that_shows_nothing_has_no_line() {
        let mut narrator = Narrator::default();
        narrator.hears(News::Changed("persistentvolumeclaims", claim("Pending", "")));
        assert!(narrator.hears(News::Changed("persistentvolumeclaims", claim("Pending", "pvc-1"))).is_empty());
    }

    fn event(kind: &str, count: i64) -> Arc<Value> {
        Arc::new(json!({
            "metadata": {"namespace": "default", "name": "data.1"}, "type": kind, "reason": "Why", "message": "because",
            "count": count, "involvedObject": {"kind": "PersistentVolumeClaim", "name": "data", "uid": "u1"},
        }))
    }

    #[test]
    fn repeated_warning_is_told_with_its_count_and_a_repeated_normal_event_is_not() {
        let mut narrator = Narrator::default();
        narrator.hears(News::Changed("events", event("Warning", 1)));
        let lines = narrator.hears(News::Changed("events", event("Warning", 2)));
        assert_eq!(texts(&lines), ["Warning Why: because (x2)"]);
        assert_eq!(lines[0].object, "claim/data");
        assert!(narrator.hears(News::Changed("events", event("Normal", 3))).is_empty());
    }

    #[test]
    fn last_word_about_a_claim_is_its_warning() {
        let mut narrator = Narrator::default();
        narrator.hears(News::Changed("events", event("Warning", 1)));
        assert_eq!(narrator.last_word(&claim("Pending", "")).as_deref(), Some("Why: because"));
    }
}
