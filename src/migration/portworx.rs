//! `kubernetes.io/portworx-volume`: class parameters, source fields and the secret.
//!
//! The read-only flag is lost on the way to CSI (migration.md 17, W9).

use super::class::{Draft, Given};
use super::error::TranslateError;
use super::fields::{Built, Fields, secret_reference};
use super::object::VolumeObject;
use super::tables::{PORTWORX_SECRET_NAME, PORTWORX_SECRET_NAMESPACE, Plugin};
use serde_json::{Map, Value};

/// Operations of the driver that get the secret, as class parameters spell them.
const OPERATIONS: [&str; 6] =
    ["provisioner", "controller-publish", "node-stage", "node-publish", "controller-expand", "node-expand"];

/// Fields of a CSI source that refer to the secret.
const REFERENCES: [&str; 5] = [
    "controllerPublishSecretRef",
    "nodeStageSecretRef",
    "nodePublishSecretRef",
    "controllerExpandSecretRef",
    "nodeExpandSecretRef",
];

/// One class parameter.
pub(super) fn parameter(draft: &mut Draft, given: &Given<'_>) -> Result<(), TranslateError> {
    let part = match given.name.as_str() {
        PORTWORX_SECRET_NAME => "name",
        PORTWORX_SECRET_NAMESPACE => "namespace",
        _ => return draft.keep(given),
    };
    OPERATIONS.into_iter().try_for_each(|operation| {
        draft.put(&format!("csi.storage.k8s.io/{operation}-secret-{part}"), given.value, given.key)
    })
}

/// The secret that a volume object names in its annotations.
pub(super) struct Secret {
    name: String,
    namespace: String,
}

impl Secret {
    /// `None` unless both annotations are there.
    pub(super) fn of_volume(pv: &VolumeObject) -> Option<Self> {
        Some(Self {
            name: pv.annotation(PORTWORX_SECRET_NAME)?.to_owned(),
            namespace: pv.annotation(PORTWORX_SECRET_NAMESPACE)?.to_owned(),
        })
    }
}

/// CSI source of an in-tree source.
pub(super) fn to_csi(source: &Fields<'_>, secret: Option<&Secret>) -> Result<Map<String, Value>, TranslateError> {
    let mut built = Built::default()
        .with("driver", Plugin::Portworx.driver_name())
        .with("volumeHandle", source.text("volumeID")?)
        .with_text("fsType", source.text("fsType")?);
    if let Some(Secret { name, namespace }) = secret {
        for field in REFERENCES {
            built = built.with(field, secret_reference(name, namespace));
        }
    }
    Ok(built.done())
}

/// In-tree source of a CSI source.
pub(super) fn to_in_tree(csi: &Fields<'_>) -> Result<Map<String, Value>, TranslateError> {
    Ok(Built::default()
        .with("volumeID", csi.text("volumeHandle")?)
        .with_text("fsType", csi.text("fsType")?)
        .with_flag("readOnly", csi.flag("readOnly")?)
        .done())
}
