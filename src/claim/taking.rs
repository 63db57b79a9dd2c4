//! Whether this node's instance should take an immediate claim that is nobody's (provisioning.md 8.2 step 6).
//!
//! The request is planned as if the node had been selected; then the driver is asked for free space at each place of it.
//! Nothing is written for that: only the winner protects the claim's source (weak point 32 of the reference).

use super::plan::Attempt;
use crate::model::claim::SELECTED_NODE;
use crate::model::{Claim, Segments};

/// The claim as it would be with this node selected.
pub fn as_if_selected(claim: &Claim, node: &str) -> Claim {
    let mut claim = claim.clone();
    claim.metadata.annotations.get_or_insert_default().insert(SELECTED_NODE.to_owned(), node.to_owned());
    claim
}

/// The places to ask about; one question without a place if the request names none. No question if nothing is asked for:
/// no space is always there.
pub fn questions(attempt: &Attempt) -> Vec<Option<&Segments>> {
    let request = &attempt.request;
    match &request.accessibility {
        _ if request.required_bytes == 0 => Vec::new(),
        Some(accessibility) => accessibility.requisite.iter().map(Some).collect(),
        None => vec![None],
    }
}

/// Whether this much free space is enough for the request.
pub fn is_enough(available_bytes: i64, attempt: &Attempt) -> bool {
    available_bytes >= attempt.request.required_bytes
}
