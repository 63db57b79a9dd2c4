//! Node deployments: takes a claim that is nobody's for this node, by one write of the selected-node annotation.
//!
//! The write is optimistic: a conflict means that somebody else wrote, mostly another instance that was faster. The
//! claim that comes back through the watch then says whose it is.

use super::{ClaimRoom, Hindrance, Next};
use crate::claim::plan::Attempt;
use crate::claim::refusal::{Refusal, RefusalState};
use crate::claim::taking;
use crate::csi::CapacityQuery;
use crate::kube_api::error::{ApiError, ApiErrorKind};
use crate::kube_api::objects::Path;
use crate::model::claim::SELECTED_NODE;
use crate::model::meta::MetaExt;
use crate::model::{CallError, Claim, Class, Turn};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;
use tracing::{debug, info};

/// Why it cannot be told whether there is space.
#[derive(Debug, thiserror::Error)]
enum CannotTell {
    /// No request can be made of the claim.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The driver did not say.
    #[error("the driver does not tell its free space: {0}")]
    Driver(#[from] CallError),
    /// The API server wants to be left alone for this time.
    #[error("the API server is busy")]
    Busy(Duration),
}

impl From<Hindrance> for CannotTell {
    fn from(hindrance: Hindrance) -> Self {
        hindrance.busy.map_or(Self::Refused(hindrance.refusal), Self::Busy)
    }
}

impl ClaimRoom {
    /// What is due instead of provisioning: `None` if it is this instance's turn.
    pub(super) async fn not_our_turn(&self, uid: &str, claim: &Claim, class: Option<&Class>) -> Option<Next> {
        match self.surroundings.turn(claim, class, Instant::now()) {
            Turn::Ours => None,
            Turn::Others => Some(Next::Done),
            Turn::Later(wait) => Some(Next::After(wait)),
            Turn::Take => Some(self.take(uid, claim, class).await),
        }
    }

    async fn take(&self, uid: &str, claim: &Claim, class: Option<&Class>) -> Next {
        let (Some(node), Some(class)) = (self.surroundings.own_node(), class) else { return Next::Done };
        match self.has_room(&taking::as_if_selected(claim, node), class).await {
            Ok(true) => {}
            Ok(false) => {
                // Asked again at the pace of the race, so that free space is found without anybody's help (weak point 29).
                debug!(target: "claim", claim = %claim.metadata.key(), node, "too little space on this node for the claim");
                return self.try_later(uid);
            }
            // An external populator's, for example: taking it would only hide it from others (weak point W28).
            Err(CannotTell::Refused(refusal)) if refusal.state() == RefusalState::Ignored => return Next::Done,
            Err(CannotTell::Busy(wait)) => return Next::Busy(wait),
            // It is taken all the same: then one instance tells what is wrong, as an event of the attempt.
            Err(why) => {
                debug!(target: "claim", claim = %claim.metadata.key(), node, %why, "cannot tell whether there is space")
            }
        }
        self.write_node(uid, claim, node).await
    }

    /// Whether this node has space for the claim.
    async fn has_room(&self, claim: &Claim, class: &Class) -> Result<bool, CannotTell> {
        let (draft, effective) = self.draft(claim, class, &self.driver.get())?;
        let attempt = self.gather(claim, effective.as_ref().unwrap_or(class), draft).await?;
        let questions = taking::questions(&attempt);
        if questions.is_empty() {
            return Ok(true);
        }
        let Attempt { request, .. } = &attempt;
        for segments in questions {
            let query =
                CapacityQuery { segments, parameters: Some(&request.parameters), capabilities: &request.capabilities };
            let free = self.calls.get_capacity(query).await?;
            if taking::is_enough(free.available_bytes, &attempt) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn write_node(&self, uid: &str, claim: &Claim, node: &str) -> Next {
        let meta = &claim.metadata;
        let path = Path::core("persistentvolumeclaims").namespace(meta.namespace()).name(meta.name());
        let failed = |error: ApiError| {
            Hindrance::by(&error, Refusal::NodeNotWritten { node: node.to_owned(), why: error.to_string() })
        };
        let mut fresh = match self.objects.get::<Value>(&path).await {
            Ok(fresh) => fresh,
            Err(error) if error.kind == ApiErrorKind::NotFound => return Next::Done,
            Err(error) => return self.hindered(claim, failed(error)).await,
        };
        if fresh["metadata"]["uid"].as_str() != Some(uid) {
            return Next::Done;
        }
        // Without any annotation it is nobody's claim any more.
        let Some(annotations) = fresh["metadata"]["annotations"].as_object_mut() else { return Next::Done };
        if annotations.get(SELECTED_NODE).and_then(Value::as_str).is_some_and(|selected| !selected.is_empty()) {
            // The watch will tell the same in a moment.
            return Next::Done;
        }
        annotations.insert(SELECTED_NODE.to_owned(), Value::from(node));
        match self.objects.replace(&path, &fresh).await {
            Ok(_) => {
                info!(target: "claim", claim = %meta.key(), node, "took the claim for this node");
                Next::Done
            }
            Err(error) if error.kind == ApiErrorKind::Conflict => self.try_later(uid),
            Err(error) if error.kind == ApiErrorKind::NotFound => Next::Done,
            Err(error) => self.hindered(claim, failed(error)).await,
        }
    }

    fn try_later(&self, uid: &str) -> Next {
        Next::After(self.surroundings.try_later(uid, Instant::now()))
    }
}
