//! `kubernetes.io/aws-ebs`: class parameters, source fields and volume ids.

use super::class::{Draft, Given};
use super::error::TranslateError;
use super::fields::{Built, Fields};
use super::tables::{FSTYPE_PARAMETER, Plugin};
use serde_json::{Map, Value};

/// One class parameter. The in-tree plug-in raised too small IOPS by itself, so the driver is told to do the same.
pub(super) fn parameter(draft: &mut Draft, given: &Given<'_>) -> Result<(), TranslateError> {
    if draft.takes_zones(given)? {
        return Ok(());
    }
    match given.name.as_str() {
        "fstype" => draft.put(FSTYPE_PARAMETER, given.value, given.key),
        "iopspergb" => {
            draft.keep(given)?;
            draft.put("allowautoiopspergbincrease", "true", given.key)
        }
        _ => draft.keep(given),
    }
}

/// The bare volume id of an in-tree id: text that does not start with `aws://` is taken unchecked, the URL forms
/// `aws://<zone>/<id>` and `aws:///<id>` must hold an id `vol-…` (migration.md 13).
pub fn volume_id(text: &str, object: &str) -> Result<String, TranslateError> {
    let Some(url) = text.strip_prefix("aws://") else { return Ok(text.to_owned()) };
    let path = url.split_once('/').map_or("", |(_zone, path)| path);
    let id = path.trim_matches('/');
    // The characters that mean something in a URL cannot be part of an id either.
    if id.starts_with("vol-") && !id.contains(['/', '?', '#', '%']) {
        return Ok(id.to_owned());
    }
    Err(TranslateError::HandleInvalid {
        object: object.to_owned(),
        handle: text.to_owned(),
        expected: "aws://{zone}/vol-{id} or vol-{id}",
    })
}

/// CSI source of an in-tree source.
pub(super) fn to_csi(source: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    let attributes = Built::default().with("partition", source.number("partition")?.to_string());
    Ok(Built::default()
        .with("driver", Plugin::AwsEbs.driver_name())
        .with("volumeHandle", volume_id(source.text("volumeID")?, source.object())?)
        .with_text("fsType", source.text("fsType")?)
        .with_flag("readOnly", source.flag("readOnly")?)
        .with("volumeAttributes", attributes.done())
        .done())
}

/// In-tree source of a CSI source. Here an empty partition is an error, unlike with gce-pd (migration.md 9).
pub(super) fn to_in_tree(csi: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    let attributes = csi.text_map("volumeAttributes")?;
    let partition = match attributes.get("partition") {
        None => 0,
        Some(text) => partition(text, csi.object())?,
    };
    let built = Built::default()
        .with("volumeID", csi.text("volumeHandle")?)
        .with_text("fsType", csi.text("fsType")?)
        .with_flag("readOnly", csi.flag("readOnly")?);
    Ok(with_partition(built, partition).done())
}

/// A partition number from the attribute's text.
pub(super) fn partition(text: &str, object: &str) -> Result<i32, TranslateError> {
    let wrong = |_| TranslateError::PartitionInvalid { object: object.to_owned(), partition: text.to_owned() };
    text.parse().map_err(wrong)
}

/// Sets the partition, which the API leaves out when it is 0.
pub(super) fn with_partition(built: Built, partition: i32) -> Built {
    if partition == 0 { built } else { built.with("partition", partition) }
}
