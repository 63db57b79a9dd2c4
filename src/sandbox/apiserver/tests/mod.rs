//! The operations together, over direct access.

mod objects;
mod watches;

use super::*;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

fn server() -> ApiServer {
    ApiServer::new(Clock::simulated(Timestamp::UNIX_EPOCH), Random::seeded(1))
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

fn volume(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "d.example.org", "volumeHandle": "h"}}})
}
