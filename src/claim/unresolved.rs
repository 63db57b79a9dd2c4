//! What may exist in the backend for one claim, and what an answer of the driver makes of it.
//!
//! Promises:
//! - only an answer of the driver, a saved volume object or a confirmed deletion changes the knowledge; errors before
//!   the driver was reached, changes of the cluster and a deleted claim never do (weak points W1 to W4);
//! - an unresolved request is kept as it was sent, so that it can be repeated byte for byte;
//! - a volume that must not be used is remembered until its deletion is confirmed (W7, W15).
//!
//! Not here: who calls the driver and when ([`super::worker`]), what a status code means ([`super::answer`]).

use super::answer::{self, Accepted, AttemptState};
use super::plan::{Attempt, VolumeFacts};
use crate::model::request::Code;
use crate::model::{CallError, CreatedVolume};
use std::sync::Arc;

/// Knowledge about one claim. No entry at all means that nothing was ever sent, or that what was sent has ended.
#[derive(Clone, Debug)]
pub enum Creation {
    /// The driver was asked and has not given a final answer: a volume may exist or appear.
    Unresolved(Arc<Attempt>),
    /// A usable volume exists; its volume object is not confirmed yet.
    Created(Arc<Made>),
    /// A volume exists that nobody may use: it is deleted by its id until that is confirmed.
    Discarding(Arc<Discard>),
}

/// A usable volume and the attempt that made it.
#[derive(Clone, Debug)]
pub struct Made {
    /// The attempt.
    pub attempt: Arc<Attempt>,
    /// The driver's answer, checked and completed.
    pub volume: Accepted,
}

/// A volume that has to go.
#[derive(Clone, Debug)]
pub struct Discard {
    /// Id as the driver returned it.
    pub volume_id: String,
    /// The attempt that made it: its secrets delete it too, and its request finds it again.
    pub attempt: Arc<Attempt>,
}

/// What came back from `CreateVolume`.
#[derive(Clone, Debug)]
pub enum Reply {
    /// OK with a volume.
    Volume(CreatedVolume),
    /// OK without a volume.
    NoVolume,
    /// Anything but OK.
    Failed(CallError),
}

/// Knowledge after an answer, with the text for the claim's event where it is not success.
#[derive(Clone, Debug)]
pub enum Settled {
    /// Usable: save it.
    Created(Arc<Made>),
    /// Exists but unusable: delete it, then ask again.
    Discard(Arc<Discard>, String),
    /// Still open: repeat the same request.
    Unresolved(String),
    /// Nothing exists.
    Nothing {
        /// What the driver said.
        text: String,
        /// The request cannot succeed as it is: hold it back until something about it changes.
        infeasible: bool,
        /// The driver did not accept the secret, so a cached copy must not be used again.
        secret_refused: bool,
    },
    /// Nothing exists, and another node should be picked.
    Reschedule(String),
}

/// Applies the driver's answer to an attempt.
pub fn settle(attempt: &Arc<Attempt>, reply: &Reply) -> Settled {
    let volume = match reply {
        Reply::Failed(error) => return settle_failure(attempt, error),
        Reply::NoVolume => None,
        Reply::Volume(volume) => Some(volume),
    };
    match (answer::judge(&attempt.request, &attempt.facts, volume), volume) {
        (Ok(volume), _) => Settled::Created(Arc::new(Made { attempt: Arc::clone(attempt), volume })),
        (Err(bad), Some(volume)) if bad.left_a_volume() => {
            Settled::Discard(Arc::new(Discard::of(attempt, &volume.id)), bad.to_string())
        }
        // Without an id nothing can be deleted: asking again by name is the only way to learn it.
        (Err(bad), _) => Settled::Unresolved(bad.to_string()),
    }
}

fn settle_failure(attempt: &Attempt, error: &CallError) -> Settled {
    let (text, facts) = (error.to_string(), &attempt.facts);
    match answer::classify(error, facts.topology_supported, facts.node_selected) {
        AttemptState::Background => Settled::Unresolved(text),
        AttemptState::Reschedule => Settled::Reschedule(text),
        state @ (AttemptState::Final | AttemptState::Infeasible) => Settled::Nothing {
            text,
            infeasible: state == AttemptState::Infeasible,
            secret_refused: matches!(error.code, Code::Unauthenticated | Code::PermissionDenied),
        },
    }
}

impl Discard {
    /// The volume of this id, made by this attempt.
    pub fn of(attempt: &Arc<Attempt>, volume_id: &str) -> Self {
        Self { volume_id: volume_id.to_owned(), attempt: Arc::clone(attempt) }
    }
}

impl Creation {
    /// Name of the volume that this creation is about.
    pub fn volume_name(&self) -> &str {
        &self.facts().volume_name
    }

    /// Facts of the claim that it is about.
    pub fn facts(&self) -> &VolumeFacts {
        match self {
            Self::Unresolved(attempt) => &attempt.facts,
            Self::Created(made) => &made.attempt.facts,
            Self::Discarding(discard) => &discard.attempt.facts,
        }
    }
}
