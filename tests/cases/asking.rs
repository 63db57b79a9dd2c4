//! Name, readiness and log form of the driver's calls, against a scripted driver in this process.

use super::words::code_of;
use csi_provisioner::csi::identity::{ProbeError, probe_until_ready};
use csi_provisioner::csi::proto::v1;
use csi_provisioner::csi::redact;
// Also what the scripted driver needs from here.
use csi_provisioner::csi::{CallObserver, Calls, NameError, Transport};
use csi_provisioner::model::request::Code;
use csi_provisioner::model::{CreateRequest, Driver};
use scripted::{Answer, driver};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[path = "../../src/csi/scripted.rs"]
#[allow(dead_code, reason = "shared with the unit tests of the csi room")]
mod scripted;

/// The outcome of a future in a world without waiting.
pub fn with_paused_clock<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(future)
}

/// Number of a code on the wire.
fn number(name: &str) -> i32 {
    match code_of(name) {
        Code::Canceled => 1,
        Code::Unknown => 2,
        Code::InvalidArgument => 3,
        Code::DeadlineExceeded => 4,
        Code::NotFound => 5,
        Code::AlreadyExists => 6,
        Code::PermissionDenied => 7,
        Code::ResourceExhausted => 8,
        Code::FailedPrecondition => 9,
        Code::Aborted => 10,
        Code::OutOfRange => 11,
        Code::Unimplemented => 12,
        Code::Internal => 13,
        Code::Unavailable => 14,
        Code::DataLoss => 15,
        Code::Unauthenticated => 16,
    }
}

fn answers(replies: &Value, ok: impl Fn(&Value) -> Answer) -> Vec<Answer> {
    let replies = replies.as_array().expect("replies");
    replies
        .iter()
        .map(|reply| reply["code"].as_str().map_or_else(|| ok(reply), |code| Answer::Status(number(code))))
        .collect()
}

/// One name query per reply.
pub fn driver_name(input: &Value) -> Value {
    let replies = answers(&input["GetPluginInfo_replies"], |reply| {
        let name = reply["name"].as_str().unwrap_or_default().to_owned();
        Answer::reply(&v1::GetPluginInfoResponse { name, ..Default::default() })
    });
    let (mut names, mut error) = (Vec::new(), Value::Null);
    let queries = replies.len();
    let (calls, _) = driver(replies);
    for _ in 0..queries {
        match with_paused_clock(calls.driver_name()) {
            Ok(name) => names.push(name),
            Err(NameError::Call(_)) => error = json!({ "condition": "plugin-info-call-failed" }),
            Err(NameError::Empty) => error = json!({ "condition": "driver-name-empty" }),
        }
    }
    json!({ "error": error, "driver_names": names })
}

/// Waits for the driver.
pub fn probe(input: &Value) -> Value {
    let replies =
        answers(&input["probe_replies"], |reply| Answer::reply(&v1::ProbeResponse { ready: reply["ready"].as_bool() }));
    let (calls, seen) = driver(replies);
    let tick = Duration::from_secs(1);
    let error = match with_paused_clock(probe_until_ready(&calls, tick, &CancellationToken::new())) {
        Ok(()) => Value::Null,
        Err(ProbeError::Refused(error)) => json!({ "condition": "probe-failed", "grpc_code": error.code.name() }),
        Err(ProbeError::Stopped) => json!({ "condition": "stopped" }),
    };
    json!({ "error": error, "calls": { "Probe": seen.told().len() } })
}

/// What the metrics are told about a call for a driver that took over an in-tree plug-in.
pub fn migrated_label(input: &Value) -> Value {
    let replaced = Driver { name: "driver".to_owned(), in_tree_name: Some("in-tree".to_owned()), ..Driver::default() };
    json!({ "labels": { "migrated": label_of(&replaced, input["migrated"] == Value::Bool(true)) } })
}

/// The label `migrated` of a call's metrics.
pub fn label_of(of: &Driver, migrated: bool) -> Option<String> {
    let (calls, seen) = driver([Answer::reply(&v1::CreateVolumeResponse::default())]);
    calls.set_driver_name(&of.name, of.in_tree_name.is_some());
    let _ = with_paused_clock(calls.create_volume(&CreateRequest::default(), migrated));
    seen.told().pop().and_then(|(_, _, _, migrated)| migrated).map(|migrated| migrated.to_string())
}

/// A request as the log shows it.
pub fn log_form(input: &Value) -> Value {
    let wanted = &input["CreateVolumeRequest"];
    let strings = |value: &Value| -> BTreeMap<String, String> { super::table::read(value) };
    let capabilities = wanted["volume_capabilities"].as_array().into_iter().flatten().map(|capability| {
        let mode = &capability["access_mode"]["mode"];
        let named = mode.as_str().and_then(v1::volume_capability::access_mode::Mode::from_str_name).map(i32::from);
        let mode = named.or_else(|| mode.as_i64().and_then(|number| i32::try_from(number).ok())).unwrap_or_default();
        let mount = capability.get("mount").map(|mount| {
            let mount_flags = super::table::strings(&mount["mount_flags"]);
            let fs_type = mount["fs_type"].as_str().unwrap_or_default().to_owned();
            let mount = v1::volume_capability::MountVolume { fs_type, mount_flags, ..Default::default() };
            v1::volume_capability::AccessType::Mount(mount)
        });
        let access_mode = Some(v1::volume_capability::AccessMode { mode });
        v1::VolumeCapability { access_mode, access_type: mount }
    });
    let request = v1::CreateVolumeRequest {
        name: wanted["name"].as_str().unwrap_or_default().to_owned(),
        capacity_range: wanted.get("capacity_range").map(|range| v1::CapacityRange {
            required_bytes: range["required_bytes"].as_i64().unwrap_or_default(),
            limit_bytes: range["limit_bytes"].as_i64().unwrap_or_default(),
        }),
        volume_capabilities: capabilities.collect(),
        parameters: strings(&wanted["parameters"]),
        secrets: strings(&wanted["secrets"]),
        volume_content_source: wanted.get("volume_content_source").map(|_| v1::VolumeContentSource::default()),
        accessibility_requirements: wanted
            .get("accessibility_requirements")
            .map(|_| v1::TopologyRequirement::default()),
        ..Default::default()
    };
    json!({ "log_json": serde_json::from_str::<Value>(&redact::render(&request)).expect("JSON") })
}
