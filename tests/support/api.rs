//! The API server as the tests see it: plain JSON by path, with patience for restarts.

use super::wait::SOON;
use http::{Method, Request};
use kube::config::Kubeconfig;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// Path of volumes.
pub const VOLUMES: &str = "/api/v1/persistentvolumes";
/// Path of classes.
pub const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
/// Path of attachments.
pub const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// A client of one test.
pub struct Api {
    remote: Remote,
    runtime: Runtime,
}

impl Api {
    /// Reads a kubeconfig; nothing is sent yet.
    pub fn new(kubeconfig: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let remote = runtime.block_on(Remote::new(kubeconfig));
        Self { remote, runtime }
    }

    /// An object, or nothing if there is none.
    pub fn find(&self, path: &str) -> Option<Value> {
        self.runtime.block_on(self.remote.find(path))
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
    pub fn create(&self, path: &str, object: &Value) {
        self.runtime.block_on(self.remote.create(path, object));
    }

    /// Changes parts of an object.
    #[track_caller]
    pub fn merge(&self, path: &str, change: &Value) {
        assert!(self.runtime.block_on(self.remote.merge(path, change)).is_some(), "there is no {path}");
    }

    /// Asks for an end; one that has ended is as good.
    pub fn delete(&self, path: &str) {
        self.runtime.block_on(self.remote.delete(path));
    }
}

/// The same for asynchronous callers.
pub struct Remote(Client);

impl Remote {
    /// Reads a kubeconfig; nothing is sent yet.
    pub async fn new(kubeconfig: &Path) -> Self {
        let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await;
        Self(Client::try_from(config.expect("a usable kubeconfig")).expect("a client"))
    }

    /// See [`Api::find`].
    pub async fn find(&self, path: &str) -> Option<Value> {
        self.send(&Method::GET, path, "", &Value::Null).await
    }

    /// Creates an object: as it is now, or nothing if it exists already.
    pub async fn create(&self, path: &str, object: &Value) -> Option<Value> {
        self.send(&Method::POST, path, "application/json", object).await
    }

    /// Changes parts of an object: as it is now, or nothing if there is none.
    pub async fn merge(&self, path: &str, change: &Value) -> Option<Value> {
        self.send(&Method::PATCH, path, "application/merge-patch+json", change).await
    }

    /// See [`Api::delete`].
    pub async fn delete(&self, path: &str) {
        self.send(&Method::DELETE, path, "application/json", &json!({"gracePeriodSeconds": 0})).await;
    }

    async fn send(&self, method: &Method, path: &str, content_type: &str, body: &Value) -> Option<Value> {
        let start = Instant::now();
        loop {
            let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
            let mut request = Request::builder().method(method.clone()).uri(path);
            if !content_type.is_empty() {
                request = request.header("Content-Type", content_type);
            }
            let request = request.body(body).expect("a request");
            let error = match timeout(Duration::from_secs(10), self.0.request::<Value>(request)).await {
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
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A string inside an object; empty if it is not there.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}
