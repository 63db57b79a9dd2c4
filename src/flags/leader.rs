//! Leader election: the relations between its times, and labels that the API server will accept.
//!
//! The Go sidecar crashes on wrong relations when the election starts, and never leads with labels that the API
//! server refuses; both are said at start here (provisioning.md 1.4).

use super::config::LeaderConfig;
use super::duration::GoDuration;
use super::raw::LeaderFlags;
use super::{Exit, Surroundings, rules};
use std::time::Duration;

/// Leader election and node deployment together. The Go sidecar runs that, so it is not refused.
const ONE_LEADER_FOR_ALL_NODES: &str = "--leader-election and --node-deployment are both set: all nodes \
    share one Lease, so every node but one stays idle and its volumes are never provisioned; take --leader-election \
    out";

/// The line about both together, if they are.
pub(super) fn conflict_warning(leader_election: bool, node_deployment: bool) -> Option<String> {
    (leader_election && node_deployment).then(|| ONE_LEADER_FOR_ALL_NODES.to_owned())
}

/// Checks the leader election flags; none if it is off.
///
/// # Errors
/// Exit code 2, as the Go sidecar's crash.
pub(super) fn resolve(flags: LeaderFlags, around: &Surroundings<'_>) -> Result<Option<LeaderConfig>, Exit> {
    let LeaderFlags {
        leader_election,
        leader_election_namespace,
        leader_election_lease_duration: lease,
        leader_election_renew_deadline: renew,
        leader_election_retry_period: retry,
        leader_election_labels: labels,
    } = flags;
    if !leader_election {
        return Ok(None);
    }
    let hot = "the Lease would be written without a pause";
    let retry_period = rules::above_zero("leader-election-retry-period", retry, hot, "5s")?;
    let too_early = "the leader would give up at once";
    let renew_deadline = rules::above_zero("leader-election-renew-deadline", renew, too_early, "10s")?;
    let lease_duration = lease.positive().filter(|lease| *lease >= Duration::from_secs(1)).ok_or_else(|| {
        let why = "a Lease counts whole seconds";
        Exit::bad_value("leader-election-lease-duration", &lease.to_string(), why, "1s or more", "15s")
    })?;
    relations(lease, renew, retry)?;
    for (key, value) in &labels {
        label(key, value)?;
    }
    let namespace = around.namespace_or_own(leader_election_namespace);
    Ok(Some(LeaderConfig { namespace, lease_duration, renew_deadline, retry_period, labels }))
}

/// lease duration > renew deadline > 1.2 times retry period.
fn relations(lease: GoDuration, renew: GoDuration, retry: GoDuration) -> Result<(), Exit> {
    if lease <= renew {
        let why = format!(
            "--leader-election-lease-duration={lease} has to be greater than it, else a replica takes over while the \
             leader still works"
        );
        let allowed = "less than --leader-election-lease-duration";
        return Err(Exit::bad_value("leader-election-renew-deadline", &renew.to_string(), &why, allowed, "10s"));
    }
    if i128::from(renew.nanos()) * 10 <= i128::from(retry.nanos()) * 12 {
        let why = format!("--leader-election-renew-deadline={renew} has to be greater than 1.2 times it");
        let allowed = "less than --leader-election-renew-deadline divided by 1.2";
        return Err(Exit::bad_value("leader-election-retry-period", &retry.to_string(), &why, allowed, "5s"));
    }
    Ok(())
}

/// A label that the API server would refuse keeps every replica from leading.
fn label(key: &str, value: &str) -> Result<(), Exit> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let prefix_fits = prefix.is_none_or(|prefix| {
        prefix.len() <= 253
            && prefix.split('.').all(|part| {
                is_enclosed(part, |c| c == '-')
                    && part.chars().all(|c| c == '-' || c.is_ascii_digit() || c.is_ascii_lowercase())
            })
    });
    let fits = |text: &str| text.len() <= 63 && is_enclosed(text, |c| matches!(c, '-' | '_' | '.'));
    if prefix_fits && fits(name) && (value.is_empty() || fits(value)) {
        return Ok(());
    }
    let why = "the API server would refuse the Lease because of this label";
    let allowed = "keys and values of up to 63 letters, digits, '-', '_' and '.' that begin and end with a letter or \
                   digit; a key may have a DNS name and '/' in front";
    Err(Exit::bad_value("leader-election-labels", &format!("{key}:{value}"), why, allowed, "app:csi"))
}

/// Letters and digits, with characters of the other kind only inside.
fn is_enclosed(text: &str, inside: impl Fn(char) -> bool) -> bool {
    let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    end(text.chars().next())
        && end(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || inside(c))
}
