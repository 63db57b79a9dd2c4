//! Decides whether a claim is to be provisioned here and what to ask of the driver.
//!
//! The way: [`should_provision`] says whether anything is due; [`draft`] does every check that needs no reads, so a
//! hopeless claim costs no request and no write (weak point W35 of the reference); the worker reads secrets, source,
//! attributes class and places; [`finish`] makes the request out of both.
//!
//! Promises:
//! - the same input gives the same request, byte for byte;
//! - a claim that already names a volume, or is being deleted, never gets a new one (weak point W39);
//! - [`VolumeFacts`] is enough to build the volume object later, whatever happens to claim, class and flags meanwhile.
//!
//! Not here: what the driver's answer means ([`super::answer`]) and the volume object ([`super::volume`]).

use super::refusal::{Capability, Refusal, cut};
use super::secrets::{Role, SecretFault, SecretRefs, TemplateClaim, resolve};
use super::source::{DataSource, SourceKind};
use super::{access, attributes, naming, parameters, source};
use crate::model::claim::MIGRATED_TO;
use crate::model::class::AttributesClass;
use crate::model::driver::Capabilities;
use crate::model::grant::Grant;
use crate::model::meta::MetaExt;
use crate::model::request::{AccessMode, AccessType, ContentSource, CreateRequest, VolumeCapability};
use crate::model::{Accessibility, Claim, Class, Driver, Options, Secrets, quantity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is due for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A volume.
    Provision,
    /// Nothing: the claim or its class is for another provisioner.
    NotOurs,
    /// Nothing: a volume is named.
    AlreadyHasVolume,
    /// Nothing new: the claim is going away. An unresolved earlier attempt still has to be finished.
    BeingDeleted,
    /// Nothing yet: no node was selected.
    WaitsForConsumer,
    /// The class does not exist (yet).
    ClassMissing {
        /// Its name, possibly empty.
        name: String,
    },
}

/// Whether the claim is meant for this driver: the annotations of the cluster's volume controller name it
/// (provisioning.md 3.4 points 2 and 4). The node check of node deployment is not part of it.
pub fn is_ours(claim: &Claim, driver: &Driver) -> bool {
    let Some(named) = claim.named_provisioner() else { return false };
    let meant = named == driver.name || claim.metadata.annotation(MIGRATED_TO) == Some(&driver.name);
    meant && driver.is_known_as(named)
}

/// What is due for a claim (provisioning.md 3.4, 3.5 points 4 and 5).
pub fn should_provision(claim: &Claim, class: Option<&Class>, driver: &Driver) -> Verdict {
    if claim.has_volume() {
        return Verdict::AlreadyHasVolume;
    }
    if !is_ours(claim, driver) {
        return Verdict::NotOurs;
    }
    if claim.metadata.is_being_deleted() {
        return Verdict::BeingDeleted;
    }
    let Some(class) = class else { return Verdict::ClassMissing { name: claim.class_name().to_owned() } };
    if class.binds_late() && !has_selected_node(claim) {
        return Verdict::WaitsForConsumer;
    }
    if !driver.is_known_as(&class.provisioner) {
        return Verdict::NotOurs;
    }
    Verdict::Provision
}

/// Late binding looks at the stable annotation only (provisioning.md 3.4 point 6).
fn has_selected_node(claim: &Claim) -> bool {
    claim.metadata.annotation(crate::model::claim::SELECTED_NODE).is_some_and(|node| !node.is_empty())
}

impl Verdict {
    /// The verdict as a refusal, where it is one: for the event of a missing class (weak point W42) and for `explain`.
    pub fn refusal(&self, driver: &Driver) -> Option<Refusal> {
        match self {
            Self::NotOurs => Some(Refusal::NotForThisDriver { driver: driver.name.clone() }),
            Self::ClassMissing { name } => Some(Refusal::ClassNotFound { class: cut(name) }),
            Self::Provision | Self::AlreadyHasVolume | Self::BeingDeleted | Self::WaitsForConsumer => None,
        }
    }
}

/// The surroundings of a [`draft`].
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Our driver.
    pub driver: &'a Driver,
    /// Our flags.
    pub options: &'a Options,
    /// The class in the CSI driver's terms, if it is one of the in-tree plug-in that the driver replaced.
    pub translated_class: Option<&'a Class>,
    /// Reference grants: at least those of the source's namespace.
    pub grants: &'a [Grant],
}

/// A request that waits for what has to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Name of the volume.
    pub volume_name: String,
    /// Its size.
    pub required_bytes: i64,
    /// Its capabilities.
    pub capabilities: Vec<VolumeCapability>,
    /// Parameters for the driver.
    pub parameters: BTreeMap<String, String>,
    /// Secrets by role; the provisioner's has to be read.
    pub refs: SecretRefs,
    /// Source to check.
    pub source: Option<DataSource>,
    /// Attributes class to read.
    pub attributes_class: Option<String>,
    /// For the volume object.
    pub facts: VolumeFacts,
}

/// The claim as the volume object refers to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimIdentity {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Resource version when the request was drafted.
    pub resource_version: String,
}

/// Everything that the volume object needs besides the driver's answer. Holds no secret, only where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "one field per fact")]
pub struct VolumeFacts {
    /// Name of volume and volume object.
    pub volume_name: String,
    /// The claim.
    pub claim: ClaimIdentity,
    /// Its class, by annotation or field.
    pub class_name: String,
    /// The class's provisioner: the in-tree name for a migrated class.
    pub class_provisioner: String,
    /// The class's reclaim policy, if it has one.
    pub reclaim_policy: Option<String>,
    /// Mount options of the class as written.
    pub mount_options: Vec<String>,
    /// Access modes of the claim.
    pub access_modes: Vec<String>,
    /// Volume mode of the claim, if it has one.
    pub volume_mode: Option<String>,
    /// Secrets by role.
    pub refs: SecretRefs,
    /// Attributes class of the claim, if the gate is on.
    pub attributes_class: Option<String>,
    /// Name of our driver.
    pub driver: String,
    /// Whether topology in the driver's answer counts.
    pub topology_supported: bool,
    /// Whether a node was selected for the claim.
    pub node_selected: bool,
    /// `spec.csi.readOnly` of the volume object.
    pub read_only: bool,
    /// File system type; empty for block volumes and where neither class nor flags name one.
    pub fs_type: String,
    /// Whether the class is one of the in-tree plug-in that the driver replaced.
    pub migrated: bool,
    /// Whether the driver must say that it filled the volume from the source (provisioning.md 5.1 point 4).
    pub needs_source: bool,
    /// The source that stays protected while this is open.
    pub source: Option<DataSource>,
}

/// Everything of a request that needs no reads, or why there will be none (provisioning.md 4.2 steps 1 to 11, 17, 18).
pub fn draft(claim: &Claim, class: &Class, setting: &Setting<'_>) -> Result<Draft, Refusal> {
    let (driver, options) = (setting.driver, setting.options);
    if !is_ours(claim, driver) {
        return Err(Refusal::NotForThisDriver { driver: driver.name.clone() });
    }
    let source = source::data_source(claim, options.cross_namespace_source, setting.grants)?;
    let effective = setting.translated_class.unwrap_or(class);
    let attributes_class = attributes::class_name(claim, options.attributes_class).map(str::to_owned);
    check_capabilities(driver.can, source.as_ref(), attributes_class.is_some())?;
    if claim.spec.selector.is_some() {
        return Err(Refusal::Selector);
    }
    let volume_name = naming::storable_name_for(claim, options)?;
    let required_bytes = required_bytes(claim)?;
    let access_type = access_type(claim, effective, options)?;
    let multi_writer = driver.can.single_node_multi_writer;
    let capabilities = access::capabilities(&claim.spec.access_modes, &access_type, multi_writer)?;
    let refs = secret_refs(claim, &effective.parameters, &volume_name)?;
    let mut parameters = parameters::strip(&effective.parameters)?;
    if options.extra_create_metadata {
        let values = [claim.metadata.name(), claim.metadata.namespace(), &volume_name];
        let added = parameters::METADATA_KEYS.into_iter().zip(values);
        parameters.extend(added.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
    let facts = VolumeFacts {
        volume_name: volume_name.clone(),
        read_only: options.controller_publish_readonly && is_read_only(&capabilities),
        fs_type: match access_type {
            AccessType::Block => String::new(),
            AccessType::Mount { fs_type, .. } => fs_type,
        },
        refs: refs.clone(),
        attributes_class: attributes_class.clone(),
        source: source.clone(),
        ..facts_of(claim, class, setting)
    };
    Ok(Draft { volume_name, required_bytes, capabilities, parameters, refs, source, attributes_class, facts })
}

/// The facts that are copied from claim, class and driver as they are.
fn facts_of(claim: &Claim, class: &Class, setting: &Setting<'_>) -> VolumeFacts {
    let (driver, options, meta) = (setting.driver, setting.options, &claim.metadata);
    VolumeFacts {
        claim: ClaimIdentity {
            namespace: meta.namespace().to_owned(),
            name: meta.name().to_owned(),
            uid: meta.uid().to_owned(),
            resource_version: meta.version().to_owned(),
        },
        class_name: claim.class_name().to_owned(),
        class_provisioner: class.provisioner.clone(),
        reclaim_policy: class.reclaim_policy.clone().filter(|policy| !policy.is_empty()),
        mount_options: class.mount_options.clone(),
        access_modes: claim.spec.access_modes.clone(),
        volume_mode: claim.spec.volume_mode.clone().filter(|mode| !mode.is_empty()),
        driver: driver.name.clone(),
        topology_supported: driver.can.accessibility_constraints && options.topology,
        node_selected: !claim.selected_node().is_empty(),
        migrated: driver.in_tree_name.as_deref() == Some(&class.provisioner),
        needs_source: claim.source().is_some(),
        ..VolumeFacts::default()
    }
}

/// The first missing capability (provisioning.md 4.3).
fn check_capabilities(can: Capabilities, source: Option<&DataSource>, attributes: bool) -> Result<(), Refusal> {
    let kind = source.map(|source| source.kind);
    let needed = [
        (true, can.controller_service, Capability::ControllerService),
        (true, can.create_delete_volume, Capability::CreateDeleteVolume),
        (kind == Some(SourceKind::Snapshot), can.create_delete_snapshot, Capability::CreateDeleteSnapshot),
        (kind == Some(SourceKind::Claim), can.clone_volume, Capability::CloneVolume),
        (attributes, can.modify_volume, Capability::ModifyVolume),
    ];
    let missing = needed.into_iter().find(|(needed, there, _)| *needed && !*there);
    missing.map_or(Ok(()), |(_, _, capability)| Err(Refusal::Capability(capability)))
}

/// Requested size; 0 when none is requested. A negative one is refused, since the driver's interface has none.
pub fn required_bytes(claim: &Claim) -> Result<i64, Refusal> {
    let Some(request) = claim.spec.resources.requests.get("storage") else { return Ok(0) };
    let unreadable = |why: String| Refusal::RequestUnreadable { request: cut(request), why };
    match quantity::ceil_bytes(request) {
        Ok(bytes) if bytes >= 0 => Ok(bytes),
        Ok(_) => Err(unreadable("it is negative".to_owned())),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

fn access_type(claim: &Claim, class: &Class, options: &Options) -> Result<AccessType, Refusal> {
    // Checked for block volumes too, so that a bad class shows itself at once.
    let fs_type = parameters::fs_type(&class.parameters, &options.default_fstype)?;
    Ok(if claim.is_block() {
        AccessType::Block
    } else {
        AccessType::Mount { fs_type, mount_flags: class.mount_options.clone() }
    })
}

fn is_read_only(capabilities: &[VolumeCapability]) -> bool {
    matches!(capabilities, [one] if one.access_mode == AccessMode::MultiNodeReaderOnly)
}

fn secret_refs(
    claim: &Claim,
    parameters: &BTreeMap<String, String>,
    volume_name: &str,
) -> Result<SecretRefs, SecretFault> {
    let known = TemplateClaim {
        namespace: claim.metadata.namespace(),
        name: claim.metadata.name(),
        annotations: claim.metadata.annotations.as_ref(),
    };
    let of = |role| resolve(role, parameters, volume_name, Some(known));
    Ok(SecretRefs {
        provisioner: of(Role::Provisioner)?,
        controller_publish: of(Role::ControllerPublish)?,
        node_stage: of(Role::NodeStage)?,
        node_publish: of(Role::NodePublish)?,
        controller_expand: of(Role::ControllerExpand)?,
        node_expand: of(Role::NodeExpand)?,
        controller_modify: of(Role::ControllerModify)?,
    })
}

/// What was read for a draft.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Entries of the provisioner secret, if the draft names one.
    pub secrets: Option<Secrets>,
    /// Checked source, if the draft names one.
    pub source: Option<ContentSource>,
    /// Attributes class, if the draft names one.
    pub attributes: Option<AttributesClass>,
    /// Where the volume must be reachable from; `None` asks for nothing.
    pub accessibility: Option<Accessibility>,
}

/// A complete request and the facts for the volume object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// What is asked; repeated as it is until it is resolved.
    pub request: CreateRequest,
    /// For the volume object.
    pub facts: VolumeFacts,
}

/// The request, or why there is none (provisioning.md 4.2 step 19, 4.15).
pub fn finish(draft: Draft, gathered: Gathered) -> Result<Attempt, Refusal> {
    let missing = |wanted: bool, there: bool, missing: &'static str| {
        if wanted && !there { Err(Refusal::Unprepared { missing }) } else { Ok(()) }
    };
    missing(draft.refs.provisioner.is_some(), gathered.secrets.is_some(), "provisioner secret")?;
    missing(draft.source.is_some(), gathered.source.is_some(), "data source")?;
    missing(draft.attributes_class.is_some(), gathered.attributes.is_some(), "volume attributes class")?;
    let mutable_parameters = match gathered.attributes {
        Some(class) if draft.attributes_class.is_some() => attributes::mutable_parameters(class, &draft.facts.driver)?,
        Some(_) | None => BTreeMap::new(),
    };
    let request = CreateRequest {
        name: draft.volume_name,
        required_bytes: draft.required_bytes,
        capabilities: draft.capabilities,
        parameters: draft.parameters,
        secrets: gathered.secrets.unwrap_or_default(),
        source: gathered.source,
        accessibility: gathered.accessibility,
        mutable_parameters,
    };
    Ok(Attempt { request, facts: draft.facts })
}

#[cfg(test)]
mod tests;
