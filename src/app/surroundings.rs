//! What one room needs to know of another, handed over here because rooms do not import each other.

use crate::claim;
use crate::claim::places;
use crate::claim::refusal::{Refusal, cut};
use crate::claim::source::{DataSource, SourceKind};
use crate::claim::taking;
use crate::claim::worker::ClaimRoom;
use crate::kube_api::queue::Queue;
use crate::migration;
use crate::migration::deletion::deletable;
use crate::model::driver::DriverCell;
use crate::model::grant::Grant;
use crate::model::meta::MetaExt;
use crate::model::{Accessibility, Claim, Class, Driver, Options, Turn, Volume};
use crate::node_deployment::worker::Instance;
use crate::protection;
use crate::protection::SourceKey;
use crate::protection::index::Kind;
use crate::topology::watching::SharedNodes;
use crate::volume;
use crate::volume::delete::OwnNode;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What the claim room asks.
pub struct ForClaims {
    /// Volume objects that are not Bound yet.
    pub volumes: Arc<volume::book::Book>,
    /// Places of the cluster.
    pub nodes: SharedNodes,
    /// Reference grants.
    pub grants: Arc<claim::grants::Grants>,
    /// The driver.
    pub driver: DriverCell,
    /// Settings.
    pub options: Options,
    /// Source claims to look at.
    pub source_claims: Queue<SourceKey>,
    /// Snapshots to look at.
    pub snapshots: Queue<SourceKey>,
    /// This node's instance in a node deployment.
    pub instance: Option<Instance>,
}

impl ForClaims {
    /// Whether the class's topologies let this node serve the claim (field fault T10); asked before the claim is taken.
    fn may_serve(&self, claim: &Claim, class: &Class, node: &str) -> bool {
        let claim = taking::as_if_selected(claim, node);
        let driver = self.driver.get();
        let Ok(translated) = claim::worker::Surroundings::translate_class(self, class, &driver) else { return true };
        let class = translated.as_ref().unwrap_or(class);
        let place = places::accessibility(&claim, class, &driver, &self.options, &mut self.nodes.lock());
        class.allowed_topologies.is_empty() || place.is_ok()
    }
}

impl claim::worker::Surroundings for ForClaims {
    fn existing_volume(&self, name: &str) -> Option<String> {
        self.volumes.claim_of(name)
    }

    fn accessibility(&self, claim: &Claim, class: &Class) -> Result<Option<Accessibility>, Refusal> {
        places::accessibility(claim, class, &self.driver.get(), &self.options, &mut self.nodes.lock())
    }

    fn translate_class(&self, class: &Class, driver: &Driver) -> Result<Option<Class>, Refusal> {
        if !migration::is_translated(class, driver) {
            return Ok(None);
        }
        migration::translate_class(class).map(Some).map_err(|error| Refusal::ClassNotTranslatable {
            class: cut(class.metadata.name()),
            why: error.to_string(),
        })
    }

    fn to_in_tree(&self, volume: &Value) -> Result<Value, String> {
        migration::volume_to_in_tree(volume).map_err(|error| error.to_string())
    }

    fn source_may_be_free(&self, source: &DataSource) {
        let key = SourceKey::new(&source.namespace, &source.name);
        match source.kind {
            SourceKind::Claim => self.source_claims.add(key),
            SourceKind::Snapshot => self.snapshots.add(key),
        }
    }

    fn grants(&self, namespace: &str) -> Vec<Grant> {
        self.grants.of_namespace(namespace)
    }

    fn turn(&self, claim: &Claim, class: Option<&Class>, now: Instant) -> Turn {
        let Some(instance) = &self.instance else { return Turn::Ours };
        instance.turn(claim, class, |class| self.may_serve(claim, class, instance.name()), now)
    }

    fn try_later(&self, uid: &str, now: Instant) -> Duration {
        self.instance.as_ref().map_or(Duration::ZERO, |instance| instance.try_later(uid, now))
    }

    fn own_node(&self) -> Option<&str> {
        self.instance.as_ref().map(Instance::name)
    }
}

/// What the volume room asks.
pub struct ForVolumes {
    /// The claim room.
    pub claims: Arc<ClaimRoom>,
    /// Storage classes.
    pub classes: Arc<claim::classes::Classes>,
    /// The driver.
    pub driver: DriverCell,
    /// This node's instance in a node deployment.
    pub instance: Option<Instance>,
}

impl volume::worker::Surroundings for ForVolumes {
    fn class(&self, name: &str) -> Option<Arc<Class>> {
        let class = self.classes.get(name)?;
        if !migration::is_translated(&class, &self.driver.get()) {
            return Some(class);
        }
        migration::translate_class(&class).ok().map(Arc::new)
    }

    fn to_csi(&self, volume: &Value) -> Result<Volume, String> {
        let translated = deletable(volume, &self.driver.get()).map_err(|error| error.to_string())?;
        serde_json::from_value(translated.volume).map_err(|error| error.to_string())
    }

    fn is_creation_open(&self, claim_uid: &str) -> bool {
        self.claims.is_open(claim_uid)
    }

    fn own_node(&self) -> Option<OwnNode<'_>> {
        self.instance.as_ref().map(|instance| OwnNode { name: instance.name(), segments: instance.segments() })
    }
}

/// What the protection room asks.
pub struct ForProtection {
    /// The claim room.
    pub claims: Arc<ClaimRoom>,
}

impl protection::worker::Surroundings for ForProtection {
    fn open_creations(&self, kind: Kind, source: &SourceKey) -> usize {
        self.claims.book.open_copies(source_kind(kind), &source.namespace, &source.name)
    }

    fn take_snapshot(&self, source: &SourceKey) -> Option<Value> {
        self.claims.sources.take(SourceKind::Snapshot, &source.namespace, &source.name)
    }

    fn protects_snapshot(&self, source: &SourceKey) -> bool {
        self.claims.sources.protects(&source.namespace, &source.name)
    }

    fn snapshot_released(&self, source: &SourceKey) {
        self.claims.sources.released(&source.namespace, &source.name);
    }
}

fn source_kind(kind: Kind) -> SourceKind {
    match kind {
        Kind::Claim => SourceKind::Claim,
        Kind::Snapshot => SourceKind::Snapshot,
    }
}
