//! The operations together, over direct access.

use super::*;
use crate::sandbox::apiserver::patch::PatchKind;
use crate::sandbox::apiserver::watching::EventKind;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

fn server() -> ApiServer {
    ApiServer::new(Clock::simulated(Timestamp::UNIX_EPOCH), Random::seeded(1))
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}
