//! What `DeleteVolume` is asked for a volume object, migrated or not (migration.md 7).

use super::error::TranslateError;
use super::object::VolumeObject;
use super::tables::Plugin;
use crate::model::Driver;
use serde_json::Value;

/// A volume object ready for deletion of its storage.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletable {
    /// The object in its CSI form; node deployment compares its affinity.
    pub volume: Value,
    /// Volume id for the driver; parts of it may be `UNSPECIFIED`, they are not repaired here.
    pub handle: String,
    /// Whether it was translated. Then the class is translated too before its secret is looked up, and the metric label
    /// `migrated` is true.
    pub migrated: bool,
}

/// The CSI form and handle of a volume object.
///
/// A source of a plug-in that another driver replaced is refused: its handle means nothing to this driver
/// (migration.md 17, W7).
pub fn deletable(pv: &Value, driver: &Driver) -> Result<Deletable, TranslateError> {
    let plugin = Plugin::of_volume(pv);
    if let Some(plugin) = plugin.filter(|plugin| plugin.driver_name() != driver.name) {
        return Err(TranslateError::OtherDriver {
            object: VolumeObject::read(pv)?.title().to_owned(),
            plugin: plugin.in_tree_name(),
            owner: plugin.driver_name(),
            driver: driver.name.clone(),
        });
    }
    let volume = match plugin {
        Some(plugin) => plugin.volume_to_csi(pv)?,
        None => pv.clone(),
    };
    let object = VolumeObject::read(&volume)?;
    let csi = object.source("csi")?.ok_or_else(|| TranslateError::NotCsi { object: object.title().to_owned() })?;
    let handle = csi.text("volumeHandle")?.to_owned();
    Ok(Deletable { volume, handle, migrated: plugin.is_some() })
}
