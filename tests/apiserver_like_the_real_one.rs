//! The sandbox's API server answers as the real one does.
//!
//! Sends the steps of `cases/apiserver-steps.json` to both and compares code, reason, wrong fields and objects; the
//! words of error texts may differ. `REAL_API` is the plain HTTP address of a real API server without controllers,
//! for instance of `kubectl proxy` in front of it.
#![cfg(feature = "sandbox")]

use csi_provisioner::clock::Clock;
use csi_provisioner::random::Random;
use csi_provisioner::sandbox::apiserver::ApiServer;
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const STEPS: &str = include_str!("cases/apiserver-steps.json");

/// What the real server has and the sandbox does without: nothing of it concerns storage clients.
const ONLY_REAL: [&str; 12] = [
    "managedFields",
    "description",
    "imagePullPolicy",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "preemptionPolicy",
    "priority",
    "tolerations",
    "qosClass",
    "generation",
    "preventPodSchedulingIfMissing",
    "deletionGracePeriodSeconds",
];

/// One of the two servers, with what earlier answers told.
struct Side {
    client: Client,
    known: BTreeMap<String, String>,
    uids: Vec<String>,
}

impl Side {
    fn new(client: Client, namespace: &str) -> Self {
        Self { client, known: BTreeMap::from([("ns".to_owned(), namespace.to_owned())]), uids: Vec::new() }
    }

    fn filled(&self, text: &str) -> String {
        self.known.iter().rev().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }

    async fn answer(&mut self, step: &Value) -> Value {
        let told = |key: &str| step.get(key).and_then(Value::as_str);
        let (method, path) = told("do").and_then(|it| it.split_once(' ')).expect("method and path");
        let body = match (step.get("body"), told("text")) {
            (Some(body), _) => self.filled(&body.to_string()),
            (None, text) => self.filled(text.unwrap_or_default()),
        };
        let content_type = match told("type") {
            None => "application/json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some("merge") => "application/merge-patch+json",
            Some("json") => "application/json-patch+json",
            Some(other) => other,
        };
        let accept = match told("accept") {
            None => "application/json",
            Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Some("partial") => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            Some("partial list") => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Some(other) => other,
        };
        let request = Request::builder()
            .method(method)
            .uri(self.filled(path))
            .header("content-type", content_type)
            .header("accept", accept)
            .body(kube::client::Body::from(body.into_bytes()))
            .expect("a request");
        let (parts, body) = self.client.send(request).await.expect("an answer").into_parts();
        let bytes = body.collect().await.expect("all of it").to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let documents: Vec<Value> = match serde_json::from_str::<Value>(&text) {
            Ok(whole) => vec![whole],
            Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        };
        self.remember(step, documents.first());
        let documents: Vec<Value> = documents.iter().map(|document| self.comparable("", document)).collect();
        json!({"code": parts.status.as_u16(), "documents": documents})
    }

    fn remember(&mut self, step: &Value, answer: Option<&Value>) {
        for (name, path) in step.get("save").and_then(Value::as_object).into_iter().flatten() {
            let pointer = format!("/{}", path.as_str().unwrap_or_default().replace('.', "/"));
            let value = answer.and_then(|answer| answer.pointer(&pointer)).and_then(Value::as_str).unwrap_or_default();
            self.known.insert(name.clone(), value.to_owned());
        }
    }

    fn comparable(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                // Words for people are each server's own; an event's message is not.
                let worded = key == "causes" || fields.get("kind") == Some(&json!("Status"));
                let dropped = |name: &str| ONLY_REAL.contains(&name) || (worded && name == "message");
                let kept = fields.iter().filter(|(name, _)| !dropped(name));
                let made: Map<String, Value> = kept
                    .map(|(name, field)| (name.clone(), self.comparable(name, field)))
                    .filter(|(_, field)| !field.is_null() && *field != json!({}))
                    .collect();
                Value::Object(made)
            }
            Value::Array(items) => {
                let mut made: Vec<Value> = items.iter().map(|item| self.comparable(key, item)).collect();
                if key == "causes" {
                    made.sort_by_key(Value::to_string);
                }
                Value::Array(made)
            }
            Value::String(text) => json!(self.text(key, text)),
            other => other.clone(),
        }
    }

    /// UIDs become their order, times and revisions their kind.
    fn text(&mut self, key: &str, text: &str) -> String {
        match key {
            "resourceVersion" | "continue" => return key.to_owned(),
            "uid" if text.len() == 36 => {
                let at = self.uids.iter().position(|known| known == text).unwrap_or_else(|| {
                    self.uids.push(text.to_owned());
                    self.uids.len() - 1
                });
                return format!("uid {at}");
            }
            "name" if text.starts_with("g-") || text.starts_with("csisc-") => return "generated".to_owned(),
            "cells"
                if text.ends_with(['s', 'm', 'h', 'd', 'y']) && text.starts_with(|it: char| it.is_ascii_digit()) =>
            {
                return "age".to_owned();
            }
            _ => {}
        }
        if text.len() >= 20 && text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T') {
            return "time".to_owned();
        }
        text.to_owned()
    }
}

#[tokio::test]
#[ignore = "needs a real API server at REAL_API"]
async fn cluster_answers_are_those_of_the_real_server() {
    let address = std::env::var("REAL_API").expect("REAL_API is the address of a real API server");
    let mut config = kube::Config::new(address.parse().expect("an address"));
    // A 504 is an answer to compare here, not one to try again.
    config.default_retry = false;
    let real = Client::try_from(config).expect("a client");
    let server = ApiServer::new(Clock::system(), Random::from_os());
    server.namespace_sweep(false);
    let namespace = format!("like-{}", std::process::id());
    let mut sides = [Side::new(real, &namespace), Side::new(Client::new(server.service(), "default"), &namespace)];
    let steps: Vec<Value> = serde_json::from_str(STEPS).expect("steps");
    let mut differences = Vec::new();
    for step in &steps {
        let [real, ours] = &mut sides;
        let (wanted, found) = (real.answer(step).await, ours.answer(step).await);
        if wanted != found {
            differences.push(format!("{step}\n  real: {wanted}\n  ours: {found}"));
        }
    }
    assert!(differences.is_empty(), "{} of {}:\n{}", differences.len(), steps.len(), differences.join("\n"));
}
