//! The volume binder: brings claims and volumes together and lets them go.
//!
//! It does what `persistentvolume-binder-controller` of Kubernetes 1.37 does when no in-tree plug-in is loaded
//! (cluster-volume-controllers.md A). Dynamic provisioning is left to the sidecar: the binder names the provisioner in
//! the claim's annotations and binds what the sidecar saves.
//!
//! - [`claim`] and [`volume`] decide the next writes for one object, [`provision`] and [`reclaim`] those of the
//!   operations behind them;
//! - [`search`] finds a volume for a claim, `bind` edits both sides, `migrated` keeps the migration marks;
//! - [`plan`] is what a decision looks like, [`worker`] carries plans out.
//!
//! Everything but the worker is pure: the same view gives the same plan.

mod bind;
pub mod claim;
mod migrated;
pub mod names;
pub mod objects;
pub mod plan;
pub mod provision;
pub mod reclaim;
pub mod search;
mod selector;
#[cfg(test)]
mod tests;
pub mod volume;
pub mod worker;
