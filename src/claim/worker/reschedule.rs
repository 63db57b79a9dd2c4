//! Gives a claim back to the scheduler: takes the selected-node annotation off.

use super::{ClaimRoom, Next};
use crate::kube_api::error::ApiErrorKind;
use crate::kube_api::objects::Path;
use crate::model::Claim;
use crate::model::claim::SELECTED_NODE;
use crate::model::meta::MetaExt;
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;
use tracing::info;

/// Tries on conflict (provisioning.md 3.6 point 2).
const TRIES: u32 = 4;
/// First pause between them; times five each.
const PAUSE: Duration = Duration::from_millis(10);

impl ClaimRoom {
    /// Removes the annotation that names the node which was tried. Done when it is gone, names another node already,
    /// or the claim was replaced.
    pub(super) async fn reschedule(&self, claim: &Claim) -> Next {
        let meta = &claim.metadata;
        let Some(node) = meta.annotation(SELECTED_NODE) else { return Next::Retry };
        let path = Path::core("persistentvolumeclaims").namespace(meta.namespace()).name(meta.name());
        for attempt in 0..TRIES {
            let mut fresh = match self.objects.get::<Value>(&path).await {
                Ok(fresh) => fresh,
                Err(error) if error.kind == ApiErrorKind::NotFound => return Next::Done,
                Err(error) => return Next::after_failure(&error),
            };
            if fresh["metadata"]["uid"].as_str() != Some(meta.uid()) {
                return Next::Done;
            }
            let Some(annotations) = fresh["metadata"]["annotations"].as_object_mut() else { return Next::Done };
            if annotations.get(SELECTED_NODE).and_then(Value::as_str) != Some(node) {
                return Next::Done;
            }
            annotations.remove(SELECTED_NODE);
            match self.objects.replace(&path, &fresh).await {
                Ok(_) => {
                    info!(target: "claim", claim = %meta.key(), node, "asked the scheduler for another node");
                    return Next::Done;
                }
                Err(error) if error.kind == ApiErrorKind::Conflict => sleep(PAUSE * 5u32.pow(attempt)).await,
                Err(error) => return Next::after_failure(&error),
            }
        }
        Next::Retry
    }
}
