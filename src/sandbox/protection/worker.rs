//! Gives and takes the protection finalizers, in the process of the API server.
//!
//! It looks at what changed, and at everything after a change of a pod or a refused write: a pod says nothing about
//! which claims it used before.

use super::{finalizers_of_claim, finalizers_of_volume};
use crate::sandbox::binder::objects::set_finalizers;
use crate::sandbox::direct::{Direct, Feed, Ground, News};
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
    let mut refused = false;
    loop {
        // What happens during the turn is news for the next one.
        let news = feed.news();
        refused = !if refused || news.iter().any(about_pods) { all(&direct) } else { turn(&direct, &news) };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = feed.wait() => {}
            () = sleep(RETRY), if refused => {}
        }
    }
}

fn about_pods(news: &News) -> bool {
    matches!(news, News::Changed(PODS, _) | News::Gone(PODS, _))
}

/// Looks at everything; false if a write was refused.
fn all(direct: &Direct) -> bool {
    let pods = direct.list(PODS);
    let mut all_written = true;
    for claim in direct.list(CLAIMS) {
        all_written &= write_claim(direct, claim, &pods);
    }
    for volume in direct.list(VOLUMES) {
        all_written &= write_volume(direct, volume);
    }
    all_written
}

/// Looks at what changed; false if a write was refused.
fn turn(direct: &Direct, news: &[News]) -> bool {
    let pods = direct.list(PODS);
    let mut all_written = true;
    for one in news {
        all_written &= match one {
            News::Changed(CLAIMS, claim) => write_claim(direct, claim.as_ref().clone(), &pods),
            News::Changed(VOLUMES, volume) => write_volume(direct, volume.as_ref().clone()),
            News::Changed(..) | News::Gone(..) | News::Relisted(_) => true,
        };
    }
    all_written
}

fn write_claim(direct: &Direct, claim: Value, pods: &[Value]) -> bool {
    let wanted = finalizers_of_claim(&claim, pods);
    write(direct, CLAIMS, claim, wanted)
}

fn write_volume(direct: &Direct, volume: Value) -> bool {
    let wanted = finalizers_of_volume(&volume);
    write(direct, VOLUMES, volume, wanted)
}

fn write(direct: &Direct, plural: &str, mut object: Value, wanted: Option<Vec<String>>) -> bool {
    let Some(wanted) = wanted else { return true };
    set_finalizers(&mut object, &wanted);
    direct.write(plural, object).is_ok()
}
