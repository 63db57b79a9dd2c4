//! What waits is woken by what it waits for; and what runs for a day does not grow.

use crate::support::*;
use csi_provisioner::sandbox::driver::script::Fault;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, SELECTED_NODE};
use serde_json::json;
use tokio::time::sleep;

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_is_served_within_a_second_after_its_class_is_back() {
    let world = world(&[]);
    let _sidecar = world.start();
    script(&world, "CreateVolume", 1, fails(INTERNAL));
    world.add_claim("data", CLASS);
    sleep(std::time::Duration::from_millis(200)).await;
    world.remove("storageclasses", CLASS);
    sleep(secs(600)).await;
    assert!(!world.is_bound("data"));
    world.add_class(CLASS);
    comes(&world, secs(1), "the bound claim", |world| world.is_bound("data")).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn clone_is_served_within_a_second_after_its_source_is_bound() {
    let world = world_with(capable(), &[]);
    add_class(&world, "late", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    let _sidecar = world.start();
    world.add_claim("source", "late");
    sleep(secs(1)).await;
    add_claim(&world, "copy", CLASS, &clone_of("source"));
    sleep(secs(600)).await;
    assert!(!world.is_bound("copy"));
    world.edit(CLAIMS, NAMESPACE, "source", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n1"));
    comes(&world, secs(1), "the bound copy", |world| world.is_bound("copy")).await;
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_is_served_within_a_second_after_the_driver_registered_on_its_node() {
    let world = world_with(with_places(), &[]);
    add_class(&world, "late", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    world.add("nodes", json!({"metadata": {"name": "n1", "labels": {"zone": "a"}}}));
    world.add("csinodes", json!({"metadata": {"name": "n1"}, "spec": {"drivers": []}}));
    let _sidecar = world.start();
    world.add_claim("data", "late");
    sleep(secs(1)).await;
    world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n1"));
    sleep(secs(300)).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 0, "no guess before the driver is registered");
    world.edit("csinodes", "", "n1", |node| {
        node["spec"]["drivers"] = json!([{"name": "sandbox.csi.dev", "nodeID": "n1", "topologyKeys": ["zone"]}]);
    });
    comes(&world, secs(1), "the bound claim", |world| world.is_bound("data")).await;
}

/// A day of claims that fail, hang, are deleted and bound: what is open does not grow.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn day_of_failures_leaves_nothing_behind() {
    let world = world(&["--durable-intent=always", "--durable-intent-namespace=kube-system"]);
    let sidecar = world.start();
    let (mut first_entries, mut first_series) = (Vec::new(), 0);
    for hour in 0..24 {
        script(&world, "CreateVolume", 4, fails(INTERNAL));
        script(&world, "CreateVolume", 2, fails(INVALID_ARGUMENT));
        script(&world, "CreateVolume", 1, Fault::HangBefore);
        script(&world, "DeleteVolume", 2, fails(UNAVAILABLE));
        for number in 0..5 {
            world.add_claim(&format!("data-{hour}-{number}"), CLASS);
            sleep(secs(60)).await;
        }
        // One whose class goes before it has its volume.
        world.add_class("brief");
        script(&world, "CreateVolume", 1, fails(INTERNAL));
        let classless = format!("classless-{hour}");
        world.add_claim(&classless, "brief");
        sleep(std::time::Duration::from_millis(200)).await;
        world.remove("storageclasses", "brief");
        sleep(secs(60)).await;
        world.remove(CLAIMS, &classless);
        (0..5).for_each(|number| world.remove(CLAIMS, &format!("data-{hour}-{number}")));
        sleep(secs(55 * 60)).await;
        assert!(empty(&world), "hour {hour}: {:?}", world.findings());
        let sizes = sidecar.metrics();
        let open: Vec<&str> = sizes.lines().filter(|line| is_size(line) && !line.ends_with(" 0")).collect();
        assert_eq!(open, Vec::<&str>::new(), "hour {hour}");
        let entries: Vec<(&str, usize)> = sizes.lines().filter_map(entries_of_memory).collect();
        let (events, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(memory, _)| *memory == "events");
        assert!(matches!(events[..], [(_, count)] if count <= MOST_EVENTS), "hour {hour}: {events:?}");
        let others: Vec<(String, usize)> =
            others.into_iter().map(|(memory, count)| (memory.to_owned(), count)).collect();
        let series = sizes.lines().filter(|line| !line.starts_with('#')).count();
        if hour == 0 {
            (first_entries, first_series) = (others, series);
            assert_eq!(first_entries.len(), 9);
            assert!(first_entries.iter().all(|(_, count)| *count <= MOST_AT_REST), "{first_entries:?}");
        } else {
            assert_eq!((others, series), (first_entries.clone(), first_series), "hour {hour}");
        }
    }
}

/// Storage that is gone is remembered for a while, and nothing else of the five claims of an hour.
const MOST_AT_REST: usize = 5;
/// 1000 waiting events and three memories of 4096.
const MOST_EVENTS: usize = 1000 + 3 * 4096;

/// Memory and number of its entries, if this is a line about that.
fn entries_of_memory(line: &str) -> Option<(&str, usize)> {
    let (memory, count) = line.strip_prefix("csi_provisioner_memory_entries{memory=\"")?.split_once("\"} ")?;
    Some((memory, count.parse().ok()?))
}

/// Lines of metrics that tell how much is held.
fn is_size(line: &str) -> bool {
    line.starts_with("csi_provisioner_open_creations{") || line.starts_with("workqueue_depth{")
}
