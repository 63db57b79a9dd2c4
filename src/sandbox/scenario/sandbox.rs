//! The sandbox as a stage.

use super::stage::Stage;
use super::{ObjectName, Scenario};
use crate::sandbox::apiserver::DeleteOptions;
use crate::sandbox::apiserver::faults::Match;
use crate::sandbox::apiserver::patch::PatchKind;
use crate::sandbox::apiserver::refusal::Reason;
use crate::sandbox::apiserver::resources::RESOURCES;
use crate::sandbox::binder::objects::{name, text};
use crate::sandbox::driver::{DriverOptions, MockDriver};
use crate::sandbox::world::{DriverChoice, World, WorldOptions};
use anyhow::{Context, bail};
use serde_json::Value;
use std::time::Duration;

/// A world with a scenario's driver in it.
pub struct SandboxStage {
    world: World,
    driver: MockDriver,
}

impl SandboxStage {
    /// Starts the world that the scenario wants.
    pub async fn start(scenario: &Scenario) -> anyhow::Result<Self> {
        let driver = DriverOptions {
            segments: scenario.driver.segments.clone(),
            all_capabilities: scenario.driver.all_capabilities,
            publish: scenario.driver.all_capabilities,
            ..DriverOptions::default()
        };
        let options = WorldOptions {
            port: 0,
            driver: DriverChoice::Mock(driver),
            select_without_pod: false,
            sidecar_flags: Vec::new(),
            sidecar_log: false,
        };
        let world = World::start(options).await?;
        let driver = world.driver.clone().context("a world with a mock driver has it")?;
        Ok(Self { world, driver })
    }

    /// Ends it.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.world.stop().await
    }
}

impl Stage for SandboxStage {
    async fn apply(&mut self, object: &Value) -> anyhow::Result<()> {
        let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        let resource = RESOURCES.iter().find(|known| known.kind == kind && known.api_version() == version);
        let resource = resource.with_context(|| format!("{kind} of {version} is not served"))?;
        let namespace = match text(object, "/metadata/namespace") {
            _ if !resource.namespaced => "",
            "" => "default",
            namespace => namespace,
        };
        let server = &self.world.server;
        if !namespace.is_empty() {
            server.ensure_namespace(namespace);
        }
        match server.create(resource.plural, namespace, object.clone()) {
            Err(refusal) if refusal.reason == Reason::AlreadyExists => {
                server.patch(resource.plural, (namespace, name(object)), PatchKind::Merge, object)?;
            }
            Err(refusal) => bail!(refusal),
            Ok(_) => {}
        }
        Ok(())
    }

    async fn delete(&mut self, object: &ObjectName) -> anyhow::Result<()> {
        let options = DeleteOptions::default();
        match self.world.server.delete(&object.plural, &object.namespace, &object.name, &options) {
            Err(refusal) if refusal.reason != Reason::NotFound => bail!(refusal),
            Err(_) | Ok(_) => Ok(()),
        }
    }

    async fn get(&mut self, object: &ObjectName) -> anyhow::Result<Option<Value>> {
        match self.world.server.get(&object.plural, &object.namespace, &object.name) {
            Ok(found) => Ok(Some(found)),
            Err(refusal) if refusal.reason == Reason::NotFound => Ok(None),
            Err(refusal) => bail!(refusal),
        }
    }

    async fn list(&mut self, plural: &str) -> anyhow::Result<Vec<Value>> {
        Ok(self.world.server.list(plural, "")?)
    }

    fn driver(&self) -> &MockDriver {
        &self.driver
    }

    async fn kill_sidecar(&mut self) -> anyhow::Result<()> {
        self.world.kill_sidecar().await;
        Ok(())
    }

    async fn start_sidecar(&mut self) -> anyhow::Result<()> {
        self.world.start_sidecar()
    }

    async fn restart_api(&mut self, away: Duration) -> anyhow::Result<()> {
        self.world.restart_api(away).await
    }

    async fn cut_watches(&mut self) -> anyhow::Result<()> {
        self.world.server.faults().cut_watches(Match::any().user_agent("csi-provisioner"));
        Ok(())
    }
}
