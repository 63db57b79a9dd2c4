//! `kubernetes.io/azure-disk`: class parameters, source fields and disk URIs.
//!
//! The affinity keeps the driver's topology key in both forms (migration.md 17, W9).

use super::class::{Draft, Given};
use super::error::TranslateError;
use super::fields::{Built, Fields};
use super::tables::Plugin;
use crate::model::class::TopologyTerm;
use serde_json::{Map, Value};

const MANAGED: &str = "Managed";
const MANAGED_FORM: &str = "/subscriptions/{id}/resourceGroups/{group}/providers/Microsoft.Compute/disks/{name}";
const UNMANAGED_FORM: &str = "http://{account}/vhds/{name}";

/// One class parameter.
pub(super) fn parameter(draft: &mut Draft, given: &Given<'_>) -> Result<(), TranslateError> {
    if draft.takes_zones(given)? { Ok(()) } else { draft.keep(given) }
}

/// Regions without zones number their fault domains; the driver calls that place the empty zone.
pub(super) fn blank_numeric_zones(terms: &mut [TopologyTerm]) {
    let zone_key = Plugin::AzureDisk.zone_key();
    for expression in terms.iter_mut().flat_map(|term| &mut term.match_label_expressions) {
        if Some(expression.key.as_str()) == zone_key {
            for value in &mut expression.values {
                if value.bytes().all(|byte| byte.is_ascii_digit()) {
                    value.clear();
                }
            }
        }
    }
}

/// Whether a URI is that of a managed disk: unmanaged ones start with `http` in any letter case (migration.md 13).
pub fn is_managed(uri: &str) -> bool {
    !(uri.len() > 4 && uri.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http")))
}

/// Name of the disk at the end of its URI.
pub fn disk_name(uri: &str, object: &str) -> Result<String, TranslateError> {
    let (found, expected) =
        if is_managed(uri) { (managed_name(uri), MANAGED_FORM) } else { (unmanaged_name(uri), UNMANAGED_FORM) };
    found.filter(|_| !uri.contains('\n')).map(str::to_owned).ok_or_else(|| TranslateError::HandleInvalid {
        object: object.to_owned(),
        handle: uri.to_owned(),
        expected,
    })
}

fn managed_name(uri: &str) -> Option<&str> {
    let (_, rest) = uri.split_once("/subscriptions/")?;
    let (_, rest) = rest.split_once("/resourceGroups/")?;
    after_last(rest, "/providers/Microsoft.Compute/disks/")
}

fn unmanaged_name(uri: &str) -> Option<&str> {
    let (_, rest) = uri.split_once("http")?;
    let (_, rest) = rest.split_once("://")?;
    after_last(rest, "/vhds/")
}

/// What follows the last `mark` that something follows. Marks start with a slash and may share it with the one before.
fn after_last<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let at = |(start, _): (usize, char)| text.get(start..)?.strip_prefix(mark);
    text.char_indices().filter_map(at).rfind(|rest| !rest.is_empty())
}

/// What becomes of a caching mode that is set to the empty text: volume objects keep it, pod volumes do not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptyCaching {
    Kept,
    LeftOut,
}

/// CSI source of an in-tree source.
pub(super) fn to_csi(source: &Fields<'_>, empty: EmptyCaching) -> Result<Map<String, Value>, TranslateError> {
    let kind = source.text("kind")?;
    if !kind.is_empty() && !kind.eq_ignore_ascii_case(MANAGED) {
        return Err(TranslateError::DiskKindUnsupported { object: source.object().to_owned(), kind: kind.to_owned() });
    }
    let mut attributes = Built::default().with("kind", MANAGED);
    match source.set_text("cachingMode")? {
        Some(mode) if !mode.is_empty() || empty == EmptyCaching::Kept => {
            attributes = attributes.with("cachingmode", mode);
        }
        Some(_) | None => {}
    }
    let fs_type = source.text("fsType")?;
    Ok(Built::default()
        .with("driver", Plugin::AzureDisk.driver_name())
        .with("volumeHandle", source.text("diskURI")?)
        .with_text("fsType", fs_type)
        .with_flag("readOnly", source.flag("readOnly")?)
        .with("volumeAttributes", attributes.with_text("fstype", fs_type).done())
        .done())
}

/// In-tree source of a CSI source. Where an attribute is spelled twice, the later spelling in sort order counts, which
/// puts lower case last.
pub(super) fn to_in_tree(csi: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    let attributes = csi.text_map("volumeAttributes")?;
    let attribute = |name: &str| {
        let mut spelled = attributes.iter().filter(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_empty());
        spelled.next_back().map(|(_, value)| *value)
    };
    let uri = csi.text("volumeHandle")?;
    let built = Built::default()
        .with("diskName", disk_name(uri, csi.object())?)
        .with("diskURI", uri)
        .with("fsType", attribute("fstype").unwrap_or(csi.text("fsType")?))
        .with("readOnly", csi.flag("readOnly")?)
        .with("kind", MANAGED);
    Ok(built.with_text("cachingMode", attribute("cachingmode").unwrap_or_default()).done())
}
