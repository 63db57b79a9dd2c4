//! Helps with names that do not exist: flags of older releases, one dash instead of two, and near misses.

use super::raw::{SPECS, find};

/// Flags that older releases of the Go sidecar had, with what to do about each.
const REMOVED: &[(&str, &str)] = &[
    ("capacity-controller-deployment-mode", "it was replaced: use --enable-capacity, on nodes with --node-deployment"),
    ("connection-timeout", "it was removed: --timeout is the deadline of each call, the connection is awaited anyway"),
    ("enable-leader-election", "it was renamed: use --leader-election"),
    ("enable-node-deployment", "it is written --node-deployment"),
    ("leader-election-type", "it was removed: a Lease is always used"),
    ("provisioner", "it was removed: the driver tells its own name"),
];

/// Text-log flags of older releases, in the spelling with dashes.
const REMOVED_LOG_FLAGS: &[&str] = &[
    "add-dir-header",
    "alsologtostderr",
    "log-backtrace-at",
    "log-dir",
    "log-file",
    "log-file-max-size",
    "logtostderr",
    "one-output",
    "skip-headers",
    "skip-log-headers",
    "stderrthreshold",
];

/// The line for an unknown `--name`.
pub(super) fn unknown_flag(argument: &str, name: &str) -> String {
    let dashed = name.replace('_', "-");
    let head = format!("unknown flag {argument:?}");
    if name.is_empty() || name.starts_with('-') {
        return format!("{head}: a flag is two dashes and a name; example: --csi-address=/run/csi/socket");
    }
    if REMOVED_LOG_FLAGS.contains(&dashed.as_str()) {
        return format!(
            "{head}: the log flags of old releases were removed, take it out; the log goes to stderr always"
        );
    }
    if let Some((_, hint)) = REMOVED.iter().find(|(removed, _)| *removed == dashed) {
        return format!("{head}: {hint}");
    }
    match nearest(&dashed, SPECS.iter().map(|spec| spec.name)) {
        Some(near) => format!("{head}: did you mean --{near}? --help lists all flags"),
        None => format!("{head}: --help lists all flags"),
    }
}

/// The line for an unknown flag behind one dash.
pub(super) fn unknown_short(argument: &str, name: &str) -> String {
    if find(name).is_some() {
        format!("unknown flag {argument:?}: long names take two dashes, write --{name}")
    } else {
        format!("unknown flag {argument:?}: only -v and -h have one dash; --help lists all flags")
    }
}

/// The candidate with the fewest typing mistakes from `name`, if those are few enough to be mistakes.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = 1 + name.chars().count() / 4;
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Number of single characters to insert, delete, replace or swap with the neighbour (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut previous = None;
    for (row, left) in from.chars().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        for (column, right) in to.iter().enumerate() {
            let replaced = last.get(column).copied().unwrap_or(usize::MAX - 1) + usize::from(left != *right);
            let inserted = current.get(column).copied().unwrap_or(usize::MAX - 1) + 1;
            let deleted = last.get(column + 1).copied().unwrap_or(usize::MAX - 1) + 1;
            let swapped = column.checked_sub(1).filter(|at| to.get(*at) == Some(&left) && previous == Some(*right));
            let swapped = swapped.and_then(|at| before_last.get(at)).map_or(usize::MAX, |cost| cost + 1);
            current.push(replaced.min(inserted).min(deleted).min(swapped));
        }
        before_last = std::mem::replace(&mut last, current);
        previous = Some(left);
    }
    last.last().copied().unwrap_or(usize::MAX)
}
