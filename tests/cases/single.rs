//! Groups about one pure function.

use super::table::{read, read_all, strings};
use csi_provisioner::claim::hold_back::{Fingerprint, HoldBack};
use csi_provisioner::claim::secrets::{Role, TemplateClaim, resolve};
use csi_provisioner::claim::{access, naming, parameters, source};
use csi_provisioner::model::claim::Claim;
use csi_provisioner::model::request::AccessMode;
use csi_provisioner::model::{Class, quantity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

pub fn parameter_stripping(input: &Value) -> Value {
    match parameters::strip(&read(&input["parameters"])) {
        Ok(sent) => json!({ "error": null, "parameters": sent }),
        Err(refusal) => json!({ "error": { "condition": refusal.condition() } }),
    }
}

pub fn quantity_format(input: &Value) -> Value {
    json!({ "quantity": quantity::format_bytes(input["bytes"].as_i64().expect("a number")) })
}

pub fn secret_reference(input: &Value) -> Value {
    let role = input["role"].as_str().expect("a role");
    let role = Role::ALL.into_iter().find(|known| known.name() == role).expect("a known role");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let claim = &input["claim"]["metadata"];
    let (namespace, name) = (text(&claim["namespace"]), text(&claim["name"]));
    let annotations: BTreeMap<String, String> = read(&claim["annotations"]);
    let known = TemplateClaim { namespace: &namespace, name: &name, annotations: Some(&annotations) };
    let known = (!input["claim"].is_null()).then_some(known);
    match resolve(role, &read(&input["parameters"]), &text(&input["pv_name"]), known) {
        Ok(secret) => json!({ "error": null, "secret_ref": secret }),
        Err(fault) => json!({ "error": { "condition": fault.condition() } }),
    }
}

pub fn volume_name(input: &Value) -> Value {
    let length = i32::try_from(input["uuid_length"].as_i64().expect("a number")).expect("a small number");
    let text = |key: &str| input[key].as_str().expect("a text");
    match naming::volume_name(text("prefix"), length, text("uid")) {
        Ok(name) => json!({ "error": null, "name": name }),
        Err(fault) => {
            let condition = fault.condition();
            super::chain::refusal_error(&fault.into(), condition)
        }
    }
}

pub fn lease_name(input: &Value) -> Value {
    json!({ "lease_name": csi_provisioner::kube_api::lease::lease_name(input["driver_name"].as_str().expect("a name")) })
}

pub fn access_modes(input: &Value) -> Value {
    let multi_writer = input["single_node_multi_writer"] == Value::Bool(true);
    match access::combined_mode(&strings(&input["access_modes"]), multi_writer) {
        Ok(mode) => json!({ "error": null, "csi_access_mode": mode_name(mode) }),
        Err(refusal) => json!({ "error": { "condition": refusal.condition() } }),
    }
}

/// The interface's name of a mode.
pub fn mode_name(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::SingleNodeWriter => "SINGLE_NODE_WRITER",
        AccessMode::SingleNodeSingleWriter => "SINGLE_NODE_SINGLE_WRITER",
        AccessMode::SingleNodeMultiWriter => "SINGLE_NODE_MULTI_WRITER",
        AccessMode::MultiNodeReaderOnly => "MULTI_NODE_READER_ONLY",
        AccessMode::MultiNodeMultiWriter => "MULTI_NODE_MULTI_WRITER",
    }
}

pub fn reference_grant(input: &Value) -> Value {
    let claim: Claim = read(&input["claim"]);
    let grants = read_all(&input["objects"]["referenceGrants"]);
    let answer = source::data_source(&claim, true, &grants);
    let refused =
        answer.err().map(|refusal| refusal.condition()).filter(|condition| *condition != "external-populator");
    json!({ "allowed": refused.is_none(), "error": refused.map(|condition| json!({ "condition": condition })) })
}

pub fn slow_set(input: &Value) -> Value {
    let millis = |value: &Value| Duration::from_millis(value.as_u64().expect("milliseconds"));
    let start = Instant::now();
    let mut held = HoldBack::new(millis(&input["retention_ms"]));
    let request = Fingerprint::of(&Claim::default(), &Class::default());
    let mut uid = "";
    for step in input["steps"].as_array().into_iter().flatten() {
        uid = step["add"].as_str().expect("a key");
        held.hold(uid, request.clone(), start + millis(&step["at_ms"]));
    }
    let remaining = held.remaining(uid, &request, start + millis(&input["check_at_ms"]));
    json!({
        "contained": remaining.is_some(),
        "added_at_ms": held.since(uid).map(|since| since.duration_since(start).as_millis()),
        "remaining_ms": remaining.unwrap_or_default().as_millis(),
    })
}
