//! `csi-sandbox up`: serves the world until it is told to stop.

use super::console::say;
use super::interrupted;
use super::world::{World, WorldOptions, write_kubeconfig};
use serde_json::json;
use std::path::PathBuf;

/// Serves until Ctrl-C or until the sidecar ends by itself.
pub async fn up(options: WorldOptions, kubeconfig: Option<PathBuf>) -> anyhow::Result<bool> {
    let world = World::start(options).await?;
    let path = kubeconfig.unwrap_or_else(|| world.kubeconfig().to_owned());
    write_kubeconfig(&path, world.address)?;
    let driver = &world.facts.name;
    let class = json!({
        "metadata": {
            "name": "csi-sandbox", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": driver, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
    });
    world.server.create("storageclasses", "", class)?;
    let kubectl = format!("kubectl --kubeconfig {}", path.display());
    say(&format!(
        "API server on http://{}, driver {driver}, default StorageClass csi-sandbox\n\n\
         Use it from another terminal:\n  {kubectl} apply -f examples/claim.yaml\n  {kubectl} get pvc,pv\n  \
         {kubectl} describe pvc\n  {kubectl} get events -w\n\nStop with Ctrl-C; everything in it is gone then.",
        world.address
    ));
    let ended = wait(&world).await;
    world.stop().await?;
    if let Some(why) = &ended {
        eprintln!("csi-sandbox: the sidecar ended: {why}");
    }
    Ok(ended.is_none())
}

/// Why the sidecar ended; none for an interrupt.
async fn wait(world: &World) -> Option<String> {
    let ended = async {
        loop {
            if let Some(end) = world.seat.end() {
                return end.map_or_else(|ended| ended.line, |()| "it was stopped".to_owned());
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        biased;
        () = interrupted() => None,
        why = ended => Some(why),
    }
}
