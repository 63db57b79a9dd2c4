//! Flags of provisioning and deletion: which values would crash, loop or stall later and are refused now.

use super::gates::Gates;
use super::raw::ProvisioningFlags;
use super::{Exit, rules};
use crate::model::Options;
use std::time::Duration;

/// The checked flags of this group; the fields are described at [`super::Config`].
pub(super) struct Work {
    pub options: Options,
    /// Base and cap of the back-off.
    pub retry: (Duration, Duration),
    pub threads: usize,
    pub cloning_protection_threads: usize,
    pub snapshot_sweep_interval: Option<Duration>,
}

/// Names with fewer characters of the UID than this are worth a warning. With 12 characters, two of a million
/// volumes share a name in one of 500 clusters; with 6 they do so in half of all clusters of 5,000 volumes.
const SAFE_UUID_LENGTH: i32 = 12;

/// Checks the provisioning flags and joins them with the gates.
///
/// # Errors
/// Exit code 2 for a value that cannot work.
pub(super) fn resolve(flags: ProvisioningFlags, gates: Gates, warnings: &mut Vec<String>) -> Result<Work, Exit> {
    let ProvisioningFlags {
        volume_name_prefix,
        volume_name_uuid_length,
        default_fstype,
        extra_create_metadata,
        strict_topology,
        immediate_topology,
        controller_publish_readonly,
        prevent_volume_mode_conversion,
        worker_threads,
        retry_interval_start,
        retry_interval_max,
        cloning_protection_threads,
        snapshot_orphan_sweep_interval,
    } = flags;
    let no_pause = "a failed item would be retried without a pause";
    let retry_start = rules::above_zero("retry-interval-start", retry_interval_start, no_pause, "1s")?;
    let retry_max = rules::above_zero("retry-interval-max", retry_interval_max, no_pause, "5m")?;
    if volume_name_prefix.is_empty() {
        // Go starts, and refuses claim by claim; so do we, because the event reaches the claim's owner.
        warnings
            .push("--volume-name-prefix is empty: every claim will fail; example: --volume-name-prefix=pvc".to_owned());
    }
    let options = Options {
        volume_name_uuid_length: uuid_length(volume_name_uuid_length, warnings)?,
        volume_name_prefix,
        default_fstype,
        extra_create_metadata,
        controller_publish_readonly,
        prevent_volume_mode_conversion,
        strict_topology,
        immediate_topology,
        topology: gates.topology,
        cross_namespace_source: gates.cross_namespace_source,
        attributes_class: gates.attributes_class,
    };
    if worker_threads == 0 {
        let why = "no claim would ever be worked on";
        return Err(Exit::bad_value("worker-threads", "0", why, rules::THREADS, "100"));
    }
    Ok(Work {
        options,
        retry: (retry_start, retry_max),
        threads: rules::threads("worker-threads", worker_threads, warnings)?,
        cloning_protection_threads: rules::threads("cloning-protection-threads", cloning_protection_threads, warnings)?,
        // Zero and negative switch the sweep off.
        snapshot_sweep_interval: snapshot_orphan_sweep_interval.positive(),
    })
}

/// The Go sidecar crashes on the first claim when the length is outside of the UID (W22).
fn uuid_length(length: i64, warnings: &mut Vec<String>) -> Result<i32, Exit> {
    let in_range = i32::try_from(length).ok().filter(|length| (-1..=32).contains(length));
    let length = in_range.ok_or_else(|| {
        let why = "a UID has 32 characters without its dashes";
        let allowed = "-1 for the whole UID with dashes, or 0 to 32";
        Exit::bad_value("volume-name-uuid-length", &length.to_string(), why, allowed, "-1")
    })?;
    if (0..SAFE_UUID_LENGTH).contains(&length) {
        warnings.push(format!(
            "--volume-name-uuid-length={length} is short: two claims can get one volume name, and the second one \
             then never gets a volume; {SAFE_UUID_LENGTH} or more, or -1, is safe"
        ));
    }
    Ok(length)
}
