//! What a run came to: as a table for people, as a document for programs.

use super::binder::objects::{class, phase, text};
use super::console::rounded;
use comfy_table::{Table, presets};
use serde_json::{Value, json};

/// One claim at the end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Phase.
    pub phase: String,
    /// Its volume, empty without one.
    pub volume: String,
    /// Size that it got.
    pub size: String,
    /// Its class.
    pub class: String,
    /// Seconds from its creation until it was Bound.
    pub bound_after_secs: Option<f64>,
    /// Why it is not Bound, as far as anybody said.
    pub reason: Option<String>,
}

impl ClaimResult {
    /// A claim as the API has it.
    pub fn new(claim: &Value, bound_after_secs: Option<f64>, reason: Option<String>) -> Self {
        let phase = match phase(claim) {
            "" => "Pending",
            phase => phase,
        };
        Self {
            namespace: text(claim, "/metadata/namespace").to_owned(),
            name: text(claim, "/metadata/name").to_owned(),
            phase: phase.to_owned(),
            volume: text(claim, "/spec/volumeName").to_owned(),
            size: text(claim, "/status/capacity/storage").to_owned(),
            class: class(claim).to_owned(),
            bound_after_secs,
            reason: if phase == "Bound" { None } else { reason },
        }
    }

    /// Whether it has its volume.
    pub fn is_bound(&self) -> bool {
        self.phase == "Bound"
    }

    fn document(&self) -> Value {
        json!({
            "namespace": self.namespace, "name": self.name, "phase": self.phase, "volume": self.volume,
            "size": self.size, "storageClass": self.class, "boundAfterSeconds": self.bound_after_secs.map(rounded),
            "reason": self.reason,
        })
    }
}

/// The table.
pub fn table(claims: &[ClaimResult]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["NAMESPACE", "CLAIM", "STATUS", "VOLUME", "SIZE", "CLASS", "SECONDS"]);
    for claim in claims {
        let seconds = claim.bound_after_secs.map(|seconds| format!("{seconds:.2}")).unwrap_or_default();
        table.add_row([
            &claim.namespace,
            &claim.name,
            &claim.phase,
            &claim.volume,
            &claim.size,
            &claim.class,
            &seconds,
        ]);
    }
    table.to_string()
}

/// The document. `volumes_left` = volumes in the API at the end.
pub fn document(
    ok: bool,
    reason: Option<&str>,
    claims: &[ClaimResult],
    volumes_left: &[String],
    timeline: &[Value],
) -> Value {
    let claims: Vec<Value> = claims.iter().map(ClaimResult::document).collect();
    json!({"ok": ok, "reason": reason, "claims": claims, "volumesLeft": volumes_left, "timeline": timeline})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_claim_has_no_reason_and_its_seconds() {
        let claim = json!({
            "metadata": {"namespace": "default", "name": "data"}, "spec": {"volumeName": "pvc-1"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
        });
        let result = ClaimResult::new(&claim, Some(0.123), Some("ExternalProvisioning: waits".into()));
        assert_eq!(result.reason, None);
        let table = table(&[result]);
        assert!(table.contains("0.12") && table.contains("pvc-1") && table.contains("1Gi"), "{table}");
    }

    #[test]
    fn claim_without_a_phase_counts_as_pending_and_keeps_its_reason() {
        let result = ClaimResult::new(&json!({"metadata": {"name": "data"}}), None, Some("why".into()));
        assert_eq!((result.phase.as_str(), result.reason.as_deref()), ("Pending", Some("why")));
    }
}
