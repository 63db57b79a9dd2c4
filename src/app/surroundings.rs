//! What one room needs to know of another, handed over here because rooms do not import each other.

use crate::claim;
use crate::claim::refusal::Refusal;
use crate::migration;
use crate::model::request::Accessibility;
use crate::model::{Claim, Class, Volume};
use crate::volume;
use serde_json::Value;
use std::sync::Arc;

/// What the claim room asks.
pub struct ForClaims {
    /// Volume objects that are not Bound yet.
    pub volumes: Arc<volume::book::Book>,
}

impl claim::worker::Surroundings for ForClaims {
    fn existing_volume(&self, name: &str) -> Option<String> {
        self.volumes.claim_of(name)
    }

    fn accessibility(&self, _claim: &Claim, _class: &Class) -> Result<Option<Accessibility>, Refusal> {
        Ok(None)
    }
}

/// What the volume room asks.
pub struct ForVolumes {
    /// Storage classes.
    pub classes: Arc<claim::classes::Classes>,
}

impl volume::worker::Surroundings for ForVolumes {
    fn class(&self, name: &str) -> Option<Arc<Class>> {
        self.classes.get(name)
    }

    fn to_csi(&self, volume: &Value) -> Result<Volume, String> {
        let translated = migration::volume_to_csi(volume).map_err(|error| error.to_string())?;
        serde_json::from_value(translated).map_err(|error| error.to_string())
    }
}
