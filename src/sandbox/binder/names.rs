//! Annotation keys, finalizers and words of the volume controllers (cluster-volume-controllers.md A.1).

/// Mark on a claim: its first binding is finished.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Mark on claim or volume: a controller, not a person, set the pointer to the other side.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a volume: who made it.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// CSI driver that took over from an in-tree plug-in.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// On a claim: who shall make the volume.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The same under its old key.
pub const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// On a claim: node chosen by the scheduler.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Outranks the class field when present, even when empty.
pub const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// On a volume: capacity to show in the claim instead of the volume's.
pub const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
/// Marks of a default class.
pub const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// Finalizer of in-tree volumes.
pub const IN_TREE_FINALIZER: &str = "kubernetes.io/pv-controller";
/// Finalizer of volumes made by a sidecar.
pub const PROVISIONER_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// Prefix of in-tree provisioner names.
pub const IN_TREE_PREFIX: &str = "kubernetes.io/";

/// The value that the controllers write into marks.
pub const YES: &str = "yes";
