//! Who owns capacity objects: the walk from the pod up its controllers (topology-and-capacity.md, owner walk).
//!
//! Pure: whoever walks hands in the objects. Promises: the last object of the walk is never read (the reference that
//! names it is enough), and the walk ends after as many steps as were asked for, whatever the objects say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;

/// An object on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace of the pod: owners live in the same one.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// What is read of an object on the way.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Walked {
    /// Its metadata.
    pub metadata: WalkedMeta,
}

/// The metadata of an object on the way.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WalkedMeta {
    /// UID.
    pub uid: String,
    /// Owners.
    pub owner_references: Vec<Reference>,
}

/// One owner.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Whether it is the one that controls the object.
    pub controller: bool,
}

/// The next step of a walk.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Read this object and go on with [`Walk::read`].
    Read(Place),
    /// The end: the reference that capacity objects get, `controller: true` and without `blockOwnerDeletion`.
    Found(OwnerReference),
}

/// The walk cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} {:?} ({}) in namespace {:?} has no controlling owner, so --capacity-ownerref-level asks for more levels than there \
     are; lower it, or use -1 for objects without owner",
    .0.kind, .0.name, .0.api_version, .0.namespace
)]
pub struct NoOwner(pub Place);

/// A walk that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    at: Place,
    /// Steps up that are left.
    left: u32,
}

impl Walk {
    /// Begins at an object; `levels` steps up lead to the owner, 0 = the object itself.
    pub fn begin(at: Place, levels: u32) -> Self {
        Self { at, left: levels }
    }

    /// Where it is: the object to read next.
    pub fn place(&self) -> &Place {
        &self.at
    }

    /// Takes in the object at [`Self::place`].
    ///
    /// # Errors
    /// Nothing controls it, although steps are left.
    pub fn read(&mut self, object: Walked) -> Result<Step, NoOwner> {
        let Walked { metadata: WalkedMeta { uid, owner_references } } = object;
        let Place { api_version, kind, name, .. } = self.at.clone();
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(Step::Found(owner(api_version, kind, name, uid)));
        };
        let controller = owner_references.into_iter().find(|reference| reference.controller);
        let Reference { api_version, kind, name, uid, controller: _ } =
            controller.ok_or_else(|| NoOwner(self.at.clone()))?;
        if left == 0 {
            return Ok(Step::Found(owner(api_version, kind, name, uid)));
        }
        self.at = Place { api_version, kind, name, namespace: self.at.namespace.clone() };
        self.left = left;
        Ok(Step::Read(self.at.clone()))
    }
}

fn owner(api_version: String, kind: String, name: String, uid: String) -> OwnerReference {
    OwnerReference { api_version, kind, name, uid, controller: Some(true), block_owner_deletion: None }
}
