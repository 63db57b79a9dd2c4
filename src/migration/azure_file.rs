//! `kubernetes.io/azure-file`: source fields, share handles and account secrets. Its classes are not translated.

use super::error::TranslateError;
use super::fields::{Built, Fields, secret_reference};
use super::object::VolumeObject;
use super::tables::{AZURE_FILE_RESOURCE_GROUP, Plugin};
use serde_json::{Map, Value};

/// Namespace of a secret that nothing else places.
pub(super) const DEFAULT_NAMESPACE: &str = "default";
const HANDLE_FORM: &str = "{resource group}#{account}#{share}#{disk}#{namespace}, at least the first three parts";
const SECRET_START: &str = "azure-storage-account-";
const SECRET_END: &str = "-secret";

/// Parts of a share handle; all but the first three may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareHandle<'a> {
    /// Resource group; empty means the driver's own.
    pub resource_group: &'a str,
    /// Storage account.
    pub account: &'a str,
    /// Share within the account.
    pub share: &'a str,
    /// Disk within the share, or what makes the handle unique.
    pub disk: &'a str,
}

/// Takes a share handle apart (migration.md 13).
pub fn parse_handle<'a>(handle: &'a str, object: &str) -> Result<ShareHandle<'a>, TranslateError> {
    let mut parts = handle.split('#');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(resource_group), Some(account), Some(share)) => {
            Ok(ShareHandle { resource_group, account, share, disk: parts.next().unwrap_or_default() })
        }
        _ => Err(TranslateError::HandleInvalid {
            object: object.to_owned(),
            handle: handle.to_owned(),
            expected: HANDLE_FORM,
        }),
    }
}

/// Account that a secret name of the form `azure-storage-account-<account>-secret` stands for; the account is as long
/// as possible and the form may sit anywhere in the name.
pub fn account_of_secret(secret_name: &str) -> Option<&str> {
    let (_, rest) = secret_name.split_once(SECRET_START)?;
    let (account, _) = rest.rsplit_once(SECRET_END)?;
    (!account.is_empty()).then_some(account)
}

/// What a share belongs to, as its handle tells.
pub(super) struct Belonging {
    resource_group: String,
    disk: String,
    namespace: String,
}

impl Belonging {
    /// Of a volume object. A namespace that is set but empty does not fall back to that of the claim.
    pub(super) fn of_volume(pv: &VolumeObject, source: &Fields<'_>) -> Result<Self, TranslateError> {
        let of_claim = || match pv.source("claimRef")? {
            Some(claim) => claim.text("namespace"),
            None => Ok(""),
        };
        let namespace = source.set_text("secretNamespace")?.map_or_else(of_claim, Ok)?;
        if namespace.is_empty() {
            return Err(TranslateError::SecretNamespaceMissing { object: pv.title().to_owned() });
        }
        Ok(Self {
            resource_group: pv.annotation(AZURE_FILE_RESOURCE_GROUP).unwrap_or_default().to_owned(),
            disk: pv.name().to_owned(),
            namespace: namespace.to_owned(),
        })
    }

    /// Of a pod volume.
    pub(super) fn of_pod(volume_name: &str, namespace: &str) -> Self {
        Self { resource_group: String::new(), disk: volume_name.to_owned(), namespace: namespace.to_owned() }
    }
}

/// CSI source of an in-tree source.
pub(super) fn to_csi(source: &Fields<'_>, belongs: &Belonging) -> Result<Map<String, Value>, TranslateError> {
    let secret = source.text("secretName")?;
    let share = source.text("shareName")?;
    let account = account_of_secret(secret).unwrap_or(secret);
    let Belonging { resource_group, disk, namespace } = belongs;
    Ok(Built::default()
        .with("driver", Plugin::AzureFile.driver_name())
        .with("volumeHandle", format!("{resource_group}#{account}#{share}#{disk}#{namespace}"))
        .with_flag("readOnly", source.flag("readOnly")?)
        .with("nodeStageSecretRef", secret_reference(secret, namespace))
        .with("volumeAttributes", Built::default().with("sharename", share).done())
        .done())
}

/// In-tree source of a CSI source, and the resource group for the annotation where the handle had to be read. Where an
/// attribute is spelled twice, the later spelling in sort order counts, which puts lower case last.
pub(super) fn to_in_tree(csi: &Fields<'_>) -> Result<(Map<String, Value>, Option<String>), TranslateError> {
    let attributes = csi.text_map("volumeAttributes")?;
    let attribute =
        |name: &str| attributes.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    let mut share = attribute("sharename").unwrap_or_default();
    let mut secret = attribute("secretname").unwrap_or_default().to_owned();
    let mut namespace = attribute("secretnamespace");
    if let Some(stage) = csi.inner("nodeStageSecretRef")? {
        let name = stage.text("name")?;
        if !name.is_empty() {
            name.clone_into(&mut secret);
            namespace = Some(stage.text("namespace")?);
        }
    }
    let mut resource_group = None;
    if share.is_empty() || secret.is_empty() {
        let handle = parse_handle(csi.text("volumeHandle")?, csi.object())?;
        if share.is_empty() {
            share = handle.share;
        }
        if secret.is_empty() {
            secret = format!("{SECRET_START}{}{SECRET_END}", handle.account);
        }
        resource_group = Some(handle.resource_group.to_owned()).filter(|group| !group.is_empty());
    }
    let source = Built::default()
        .with("shareName", share)
        .with("secretName", secret)
        .with("secretNamespace", namespace.unwrap_or(DEFAULT_NAMESPACE))
        .with_flag("readOnly", csi.flag("readOnly")?);
    Ok((source.done(), resource_group))
}
