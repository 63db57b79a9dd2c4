//! The API server as the tests see it: plain JSON by path, with patience for restarts.

use super::wait::SOON;
use http::{Method, Request};
use kube::config::Kubeconfig;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Path of volumes.
pub const VOLUMES: &str = "/api/v1/persistentvolumes";
/// Path of classes.
pub const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
/// Path of attachments.
pub const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// A client of one test.
pub struct Api {
    client: Client,
    runtime: Runtime,
}

impl Api {
    /// Reads a kubeconfig; nothing is sent yet.
    pub fn new(kubeconfig: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let client = runtime.block_on(async {
            let config = Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await;
            Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
        });
        Self { client, runtime }
    }

    /// An object, or nothing if there is none.
    pub fn find(&self, path: &str) -> Option<Value> {
        self.send(&Method::GET, path, "", &Value::Null)
    }

    /// An object that must be there.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.find(path).unwrap_or_else(|| panic!("there is no {path}"))
    }

    /// All objects at a path.
    #[track_caller]
    pub fn list(&self, path: &str) -> Vec<Value> {
        self.get(path)["items"].as_array().cloned().unwrap_or_default()
    }

    /// Creates an object. One that exists already is as good: the answer to the first try may have been lost.
    #[track_caller]
    pub fn create(&self, path: &str, object: &Value) {
        self.send(&Method::POST, path, "application/json", object);
    }

    /// Changes parts of an object.
    #[track_caller]
    pub fn merge(&self, path: &str, change: &Value) {
        let kind = "application/merge-patch+json";
        assert!(self.send(&Method::PATCH, path, kind, change).is_some(), "there is no {path}");
    }

    /// Asks for an end; one that has ended is as good.
    #[track_caller]
    pub fn delete(&self, path: &str) {
        self.send(&Method::DELETE, path, "application/json", &json!({}));
    }

    #[track_caller]
    fn send(&self, method: &Method, path: &str, content_type: &str, body: &Value) -> Option<Value> {
        let start = Instant::now();
        loop {
            let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
            let mut request = Request::builder().method(method.clone()).uri(path);
            if !content_type.is_empty() {
                request = request.header("Content-Type", content_type);
            }
            let request = request.body(body).expect("a request");
            let answer = self.runtime.block_on(async {
                tokio::time::timeout(Duration::from_secs(10), self.client.request::<Value>(request)).await
            });
            let error = match answer {
                Ok(Ok(value)) => return Some(value),
                Ok(Err(kube::Error::Api(status))) if status.code == 404 && *method != Method::POST => return None,
                Ok(Err(kube::Error::Api(status))) if status.code == 409 && *method == Method::POST => return None,
                Ok(Err(kube::Error::Api(status))) if status.code < 500 && status.code != 429 => {
                    panic!("{method} {path}: {status:?}")
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            assert!(start.elapsed() < SOON, "{method} {path}: {error}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A string inside an object; empty if it is not there.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}
