//! `kubernetes.io/cinder`: class parameters and source fields. A `zone` parameter is none here, it passes to the driver.

use super::class::{Draft, Given};
use super::error::TranslateError;
use super::fields::{Built, Fields};
use super::tables::{FSTYPE_PARAMETER, Plugin};
use serde_json::{Map, Value};

/// One class parameter.
pub(super) fn parameter(draft: &mut Draft, given: &Given<'_>) -> Result<(), TranslateError> {
    match given.name.as_str() {
        "fstype" => draft.put(FSTYPE_PARAMETER, given.value, given.key),
        _ => draft.keep(given),
    }
}

/// CSI source of an in-tree source.
pub(super) fn to_csi(source: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    Ok(Built::default()
        .with("driver", Plugin::Cinder.driver_name())
        .with("volumeHandle", source.text("volumeID")?)
        .with_text("fsType", source.text("fsType")?)
        .with_flag("readOnly", source.flag("readOnly")?)
        .done())
}

/// In-tree source of a CSI source.
pub(super) fn to_in_tree(csi: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    Ok(Built::default()
        .with("volumeID", csi.text("volumeHandle")?)
        .with_text("fsType", csi.text("fsType")?)
        .with_flag("readOnly", csi.flag("readOnly")?)
        .done())
}
