//! Gives and takes the protection finalizers, in the process of the API server.
//!
//! It looks at every claim and volume after each change: a sandbox has few, and what is looked at cannot be missed.

use super::{finalizers_of_claim, finalizers_of_volume};
use crate::sandbox::binder::objects::set_finalizers;
use crate::sandbox::direct::{Direct, Feed, Ground};
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";
const PODS: &str = "pods";
/// Waiting time after a write that was refused, most often because another one came first.
const RETRY: Duration = Duration::from_millis(20);

/// Protects until `stop`.
pub async fn run(ground: Ground, stop: CancellationToken) {
    let mut feed = Feed::new(&ground.server, &[CLAIMS, VOLUMES, PODS]);
    let direct = Direct::new(&ground, "storage-protection");
    loop {
        // What happens during the turn is news for the next one.
        let _seen = feed.news();
        let refused = !turn(&direct);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = feed.wait() => {}
            () = sleep(RETRY), if refused => {}
        }
    }
}

/// Looks at everything once; false if a write was refused.
fn turn(direct: &Direct) -> bool {
    let pods = direct.list(PODS);
    let mut all_written = true;
    for claim in direct.list(CLAIMS) {
        let wanted = finalizers_of_claim(&claim, &pods);
        all_written &= write(direct, CLAIMS, claim, wanted);
    }
    for volume in direct.list(VOLUMES) {
        let wanted = finalizers_of_volume(&volume);
        all_written &= write(direct, VOLUMES, volume, wanted);
    }
    all_written
}

fn write(direct: &Direct, plural: &str, mut object: Value, wanted: Option<Vec<String>>) -> bool {
    let Some(wanted) = wanted else { return true };
    set_finalizers(&mut object, &wanted);
    direct.write(plural, object).is_ok()
}
