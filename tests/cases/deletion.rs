//! The way of a released volume.

use super::chain::secret_in;
use super::table::{read, read_all};
use super::words::driver;
use csi_provisioner::model::meta::MetaExt;
use csi_provisioner::model::volume::CsiSource;
use csi_provisioner::model::{Attachment, Class, Secrets, Segments, Volume};
use csi_provisioner::volume::delete::{self, DeleteRefusal, DeleteState, OwnNode, SecretSource};
use serde_json::{Value, json};

/// Runs the deletion of the storage once; the driver answers OK.
pub fn delete(input: &Value) -> Value {
    let mut reads = 0;
    match storage(input, &mut reads) {
        Ok((handle, secrets)) => json!({
            "error": null,
            "calls": { "DeleteVolume": 1 },
            "requests": { "DeleteVolume": { "volume_id": handle, "secrets": secrets.reveal() } },
            "secret_reads": reads,
        }),
        Err(refusal) => {
            json!({ "error": error(&refusal), "calls": { "DeleteVolume": 0 }, "secret_reads": reads })
        }
    }
}

fn storage(input: &Value, reads: &mut u32) -> Result<(String, Secrets), DeleteRefusal> {
    let mut driver = driver(input, "test-driver");
    if input["driver"].is_null() {
        // Rows about translation leave the driver open.
        (driver.can.controller_service, driver.can.create_delete_volume) = (true, true);
    }
    let volume: Volume = read(&input["volume"]);
    let translated: Option<CsiSource> =
        input["translation"].get("volume_to_csi").map(|translation| read(&translation["csi"]));
    let csi = translated.as_ref().or(volume.spec.csi.as_ref());
    let segments: Segments = read(&input["node_deployment"]["segments"]);
    let node = input["node_deployment"]["node"].as_str().map(|name| OwnNode { name, segments: &segments });
    let handle = delete::handle(&volume, csi, driver.can, node)?.to_owned();
    if driver.can.publish_unpublish_volume {
        let attachments: Vec<Attachment> = read_all(&input["objects"]["volumeAttachments"]);
        let name = volume.metadata.name();
        let blocking = attachments.iter().find(|one| one.spec.source.persistent_volume_name.as_deref() == Some(name));
        delete::check_attachments(&volume, blocking.map(|one| one.spec.node_name.as_str()))?;
    }
    let secret = match delete::secret_source(&volume) {
        SecretSource::None | SecretSource::HalfAnnotated => None,
        SecretSource::Named(secret) => Some(secret),
        SecretSource::Class(name) => {
            let classes: Vec<Class> = read_all(&input["objects"]["classes"]);
            let class = classes.iter().find(|class| class.metadata.name() == name);
            delete::secret_from_class(&volume, class)?
        }
    };
    *reads += u32::from(secret.is_some());
    let secrets = secret.and_then(|secret| secret_in(&input["objects"]["secrets"], &secret)).unwrap_or_default();
    Ok((handle, secrets))
}

fn error(refusal: &DeleteRefusal) -> Value {
    let (reason, ignored, in_use) = match refusal.state() {
        DeleteState::Ignored => (None, true, false),
        DeleteState::InUse => (Some("VolumeDelete"), false, true),
        DeleteState::Failed => (Some("VolumeFailedDelete"), false, false),
    };
    let cause = match refusal {
        DeleteRefusal::SecretUnresolvable { fault, .. } => Some(fault.condition()),
        _ => None,
    };
    json!({ "condition": refusal.condition(), "reason": reason, "ignored": ignored, "in_use": in_use, "cause": cause })
}
