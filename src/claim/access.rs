//! Access modes of a claim as capabilities of the driver's interface (provisioning.md 4.6; field case B12).

use super::refusal::{Refusal, cut};
use crate::model::request::{AccessMode, AccessType, VolumeCapability};

/// One capability per access mode, in the claim's order; an empty list stays empty.
///
/// `multi_writer` = the driver tells single-node modes apart (`SINGLE_NODE_MULTI_WRITER`).
pub fn capabilities(
    modes: &[String],
    access_type: &AccessType,
    multi_writer: bool,
) -> Result<Vec<VolumeCapability>, Refusal> {
    modes
        .iter()
        .map(|mode| {
            let access_mode = single_mode(mode, multi_writer).ok_or_else(|| unsupported(modes))?;
            Ok(VolumeCapability { access_mode, access_type: access_type.clone() })
        })
        .collect()
}

/// The one mode that covers all of `modes`, as those use it who ask for a volume with a single capability.
pub fn combined_mode(modes: &[String], multi_writer: bool) -> Result<AccessMode, Refusal> {
    let has = |wanted: &str| modes.iter().any(|mode| mode == wanted);
    let several = modes.iter().any(|mode| Some(mode) != modes.first());
    let excluded = || Refusal::AccessModesNotCombinable { modes: shown(modes) };
    if has("ReadWriteOncePod") {
        if several {
            return Err(excluded());
        }
        return single_mode("ReadWriteOncePod", multi_writer).ok_or_else(|| unsupported(modes));
    }
    if has("ReadWriteMany") {
        return Ok(AccessMode::MultiNodeMultiWriter);
    }
    match (has("ReadOnlyMany"), has("ReadWriteOnce")) {
        (true, true) => Err(excluded()),
        (true, false) => Ok(AccessMode::MultiNodeReaderOnly),
        (false, true) => single_mode("ReadWriteOnce", multi_writer).ok_or_else(|| unsupported(modes)),
        (false, false) => Err(unsupported(modes)),
    }
}

fn single_mode(mode: &str, multi_writer: bool) -> Option<AccessMode> {
    Some(match (mode, multi_writer) {
        ("ReadWriteOnce", true) => AccessMode::SingleNodeMultiWriter,
        ("ReadWriteOncePod", true) => AccessMode::SingleNodeSingleWriter,
        ("ReadWriteOnce" | "ReadWriteOncePod", false) => AccessMode::SingleNodeWriter,
        ("ReadOnlyMany", _) => AccessMode::MultiNodeReaderOnly,
        ("ReadWriteMany", _) => AccessMode::MultiNodeMultiWriter,
        (_, _) => return None,
    })
}

fn unsupported(modes: &[String]) -> Refusal {
    Refusal::AccessModesUnsupported { modes: shown(modes) }
}

/// The modes for a message; the API server allows at most a handful, whoever else sent more sees the first ones.
fn shown(modes: &[String]) -> Vec<String> {
    modes.iter().take(8).map(|mode| cut(mode)).collect()
}
