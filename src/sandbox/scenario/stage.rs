//! Where a scenario plays: a sandbox, or a real cluster beside the mock driver.

use super::ObjectName;
use crate::sandbox::driver::MockDriver;
use serde_json::Value;
use std::future::Future;
use std::time::Duration;

/// What a scenario needs of its surroundings. Waiting, counting and judging are the runner's.
pub trait Stage: Send {
    /// Creates the object, or merges it into the one that exists; its namespace is made if needed.
    fn apply(&mut self, object: &Value) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Deletes an object; one that is gone already is no error.
    fn delete(&mut self, object: &ObjectName) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Reads an object; none if it does not exist.
    fn get(&mut self, object: &ObjectName) -> impl Future<Output = anyhow::Result<Option<Value>>> + Send;
    /// All objects of a kind in all namespaces, by its plural.
    fn list(&mut self, plural: &str) -> impl Future<Output = anyhow::Result<Vec<Value>>> + Send;
    /// The driver: its script takes faults and counts calls, its backend shows the volumes.
    fn driver(&self) -> &MockDriver;
    /// Ends the sidecar where it stands.
    fn kill_sidecar(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Starts it again.
    fn start_sidecar(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Cuts all connections to the API server and refuses new ones for a while.
    fn restart_api(&mut self, away: Duration) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Cuts the sidecar's watches.
    fn cut_watches(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;
}
