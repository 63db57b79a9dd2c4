//! What things cost: calls, work and words.

use crate::support::*;
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, SELECTED_NODE, VOLUMES, text};
use csi_provisioner::sandbox::simulate::seat::Running;
use serde_json::json;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::time::sleep;
use tracing_subscriber::fmt::MakeWriter;

fn add_secret_class(world: &World) {
    let data = json!({"metadata": {"name": "key", "namespace": NAMESPACE}, "data": {"user": "YWRtaW4="}});
    world.add("secrets", data);
    let prefix = "csi.storage.k8s.io/provisioner-secret";
    let parameters = json!({format!("{prefix}-name"): "key", format!("{prefix}-namespace"): NAMESPACE});
    add_class(world, "keyed", &json!({"parameters": parameters}));
}

/// W24: what a burst of claims has in common is read once.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn burst_reads_a_secret_once() {
    let world = world(&[]);
    add_secret_class(&world);
    script(&world, "CreateVolume", 10, fails(INTERNAL));
    let _sidecar = world.start();
    (0..20).for_each(|number| drop(world.add_claim(&format!("data-{number}"), "keyed")));
    comes(&world, secs(20), "all volumes", World::all_bound).await;
    assert_eq!(world.requests_of("get", "secrets", None), 1);
}

/// W23: a burst of restores reads the snapshot and its content once, protects it once and frees it once.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn burst_of_restores_reads_and_writes_the_snapshot_as_if_it_was_one() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    bound(&world, "source").await;
    add_snapshot(&world);
    script(&world, "CreateVolume", 10, csi_provisioner::sandbox::driver::script::Fault::Slow(secs(2)));
    let kinds = [("get", "volumesnapshots"), ("get", "volumesnapshotcontents"), ("update", "volumesnapshots")];
    let count = || kinds.map(|(verb, plural)| world.requests_of(verb, plural, None));
    add_claim(&world, "copy-0", CLASS, &restore());
    sleep(secs(1)).await;
    let first = count();
    (1..10).for_each(|number| drop(add_claim(&world, &format!("copy-{number}"), CLASS, &restore())));
    comes(&world, secs(20), "all copies", World::all_bound).await;
    sleep(secs(2)).await;
    assert_eq!(first, [1, 1, 1]);
    assert_eq!(count(), [1, 1, 2]);
}

/// W25: a deletion that waits for a detach reads no secret.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletion_that_waits_for_a_detach_reads_no_secret() {
    let world = world_with(DriverOptions { publish: true, ..DriverOptions::default() }, &[]);
    add_secret_class(&world);
    let _sidecar = world.start();
    world.add_claim("data", "keyed");
    comes(&world, secs(10), "the volume", World::all_bound).await;
    let name = text(&world.volume_of("data").expect("bound"), "/metadata/name").to_owned();
    attach(&world, "attached", &name);
    sleep(secs(60)).await;
    let read = world.requests_of("get", "secrets", None);
    world.remove(CLAIMS, "data");
    sleep(secs(300)).await;
    assert_eq!(world.requests_of("get", "secrets", None), read);
    world.remove("volumeattachments", "attached");
    comes(&world, secs(1), "the deletion", |world| world.volumes_in_backend() == 0).await;
    assert_eq!(world.requests_of("get", "secrets", None), read + 1);
}

/// W26 and M03: one watch per kind, and none of kinds that the driver does not need.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn each_kind_that_is_needed_is_watched_once() {
    let world = world(&[]);
    let _sidecar = world.start();
    bound(&world, "data").await;
    let kinds = ["storageclasses", CLAIMS, VOLUMES, "nodes", "csinodes", "volumeattachments", "volumesnapshots"];
    assert_eq!(kinds.map(|kind| world.requests_of("watch", kind, None)), [1, 1, 1, 0, 0, 0, 0]);
}

/// W21: claims of others start no work, neither at once nor by a new list.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claims_of_others_start_no_work() {
    let world = world(&[]);
    add_class(&world, "foreign", &json!({"provisioner": "other.example"}));
    let sidecar = world.start();
    (0..50).for_each(|number| drop(world.add_claim(&format!("data-{number}"), "foreign")));
    sleep(secs(2 * 3600)).await;
    assert_eq!(added(&sidecar, "claims"), 0);
}

/// How often something was added to the queue.
fn added(sidecar: &Running, queue: &str) -> usize {
    let head = format!("workqueue_adds_total{{name=\"{queue}\"}} ");
    let metrics = sidecar.metrics();
    let count = metrics.lines().find_map(|line| line.strip_prefix(&head)).and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("{queue} is not counted in\n{metrics}"))
}

/// W21: a new list that tells nothing new starts no work on our own claims either.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn known_claim_is_not_looked_at_again_because_of_a_new_list() {
    let world = world(&[]);
    add_class(&world, "late", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    let sidecar = world.start();
    // The scheduler took its choice back, so that the claim is ours and waits.
    script(&world, "CreateVolume", 1, fails(RESOURCE_EXHAUSTED));
    let choose = |node: &str| {
        world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!(node))
    };
    world.add_claim("data", "late");
    sleep(secs(1)).await;
    choose("n1");
    sleep(std::time::Duration::from_millis(500)).await;
    choose("");
    sleep(secs(60)).await;
    assert_eq!((world.calls.of("CreateVolume").len(), world.is_bound("data")), (1, false));
    let before = added(&sidecar, "claims");
    sleep(secs(2 * 3600)).await;
    assert_eq!(added(&sidecar, "claims"), before);
}

/// W43: claims and volumes are counted apart.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn each_queue_is_counted_under_its_own_name() {
    let world = world(&[]);
    let sidecar = world.start();
    bound(&world, "data").await;
    let (claims, volumes) = (added(&sidecar, "claims"), added(&sidecar, "volumes"));
    world.remove(CLAIMS, "data");
    comes(&world, secs(10), "the end", empty).await;
    assert!(claims > 0 && added(&sidecar, "volumes") > volumes, "{claims} {volumes}");
    assert_eq!(added(&sidecar, "claims"), claims);
}

/// W43: what is left to others is no failure.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_left_to_a_populator_counts_as_no_failure() {
    let world = world(&[]);
    let sidecar = world.start();
    let source = json!({"dataSourceRef": {"apiGroup": "example.org", "kind": "Foo", "name": "x"}});
    add_claim(&world, "data", CLASS, &source);
    sleep(secs(60)).await;
    let metrics = sidecar.metrics();
    assert!(!metrics.contains("controller_persistentvolumeclaim_provision_failed_total{"), "{metrics}");
}

/// Counts lines of the log that the sidecar wrote.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicUsize>, Arc<Mutex<Vec<String>>>);

impl io::Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(text).into_owned();
        if !line.contains("sandbox") {
            self.0.fetch_add(1, Ordering::Relaxed);
            self.1.lock().expect("whole").push(line);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// U04: a bounded number of lines per volume, and none for what does not concern it.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn log_has_few_lines_per_volume_and_none_for_the_heartbeats_of_nodes() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .without_time()
        .with_writer(lines.clone())
        .finish();
    let _log = tracing::subscriber::set_default(subscriber);
    let world = world_with(with_places(), &["--immediate-topology=false"]);
    (0..100).for_each(|number| add_node(&world, &format!("n{number}"), "a"));
    let _sidecar = world.start();
    sleep(secs(5)).await;
    let start = lines.0.load(Ordering::Relaxed);
    for beat in 0..10 {
        (0..100).for_each(|number| {
            drop(world.edit("nodes", "", &format!("n{number}"), |node| {
                node["metadata"]["annotations"] = json!({"beat": beat.to_string()});
            }));
        });
        sleep(secs(10)).await;
    }
    assert_eq!(lines.0.load(Ordering::Relaxed), start, "{:?}", lines.1.lock().expect("whole").last());
    (0..200).for_each(|number| drop(world.add_claim(&format!("data-{number}"), CLASS)));
    comes(&world, secs(60), "all volumes", World::all_bound).await;
    (0..200).for_each(|number| world.remove(CLAIMS, &format!("data-{number}")));
    comes(&world, secs(60), "the end", empty).await;
    let written = lines.0.load(Ordering::Relaxed) - start;
    assert!((200..=800).contains(&written), "{written} lines for 200 volumes");
}
