//! The page as a scraper sees it.

use super::Metrics;
use crate::csi::CallObserver;
use crate::kube_api::queue::QueueObserver;
use std::time::Duration;

fn page(fill: impl Fn(&Metrics)) -> String {
    let metrics = Metrics::register(true).expect("names and labels are constants");
    fill(&metrics);
    metrics.render()
}

#[test]
fn driver_calls_have_the_go_sidecars_name_labels_and_buckets() {
    let page = page(|metrics| metrics.call_ended("d", "/csi.v1.Controller/CreateVolume", "OK", None, 0.3));
    let series = "csi_sidecar_operations_seconds_bucket{driver_name=\"d\",grpc_status_code=\"OK\",\
                  method_name=\"/csi.v1.Controller/CreateVolume\",le=\"1\"} 1";
    assert!(page.contains(series), "{page}");
    assert!(page.contains(
        "# HELP csi_sidecar_operations_seconds [ALPHA] Container Storage Interface operation duration with gRPC error \
         code status total"
    ));
}

#[test]
fn calls_of_a_driver_that_replaced_a_plug_in_say_whether_they_serve_a_migrated_volume() {
    let page = page(|metrics| {
        metrics.call_ended("d", "/csi.v1.Identity/Probe", "OK", None, 0.1);
        metrics.call_ended("d", "/csi.v1.Controller/CreateVolume", "OK", Some(true), 0.1);
    });
    assert!(page.contains("method_name=\"/csi.v1.Controller/CreateVolume\",migrated=\"true\""), "{page}");
    assert_eq!(page.matches("# TYPE csi_sidecar_operations_seconds").count(), 1);
}

#[test]
fn provisioning_is_counted_by_class_and_source() {
    let page = page(|metrics| {
        metrics.provision_ok("fast", "VolumeSnapshot", 0.2);
        metrics.provision_failed("fast", "");
        metrics.delete_ok("fast", 0.2);
        metrics.delete_failed("slow");
    });
    for line in [
        "controller_persistentvolumeclaim_provision_total{class=\"fast\",source=\"VolumeSnapshot\"} 1",
        "controller_persistentvolumeclaim_provision_failed_total{class=\"fast\",source=\"\"} 1",
        "controller_persistentvolumeclaim_provision_duration_seconds_bucket{class=\"fast\",source=\"VolumeSnapshot\",le=\"0.25\"} 1",
        "controller_persistentvolume_delete_total{class=\"fast\"} 1",
        "controller_persistentvolume_delete_failed_total{class=\"slow\"} 1",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
}

#[test]
fn queues_are_told_apart_by_name() {
    let page = page(|metrics| {
        let queue = metrics.queue("claims");
        queue.added(1);
        queue.taken(Duration::from_millis(5), 0);
        queue.finished(Duration::from_secs(2), 0);
        metrics.queue("volumes").added(3);
    });
    for line in [
        "workqueue_adds_total{name=\"claims\"} 1",
        "workqueue_depth{name=\"volumes\"} 3",
        "workqueue_work_duration_seconds_bucket{name=\"claims\",le=\"10\"} 1",
        "workqueue_queue_duration_seconds_bucket{name=\"claims\",le=\"0.01\"} 1",
        "workqueue_unfinished_work_seconds{name=\"claims\"} 0",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
}

#[test]
fn leadership_scrapes_and_process_are_told() {
    let page = page(|metrics| metrics.set_leading(true));
    for line in [
        "leader_election_master_status{name=\"\"} 1",
        "promhttp_metric_handler_requests_in_flight 1",
        "promhttp_metric_handler_requests_total{code=\"200\"} 0",
        "# TYPE process_resident_memory_bytes gauge",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
}

/// Name, type and labels of everything the Go sidecar serves that is not its runtime's, as seen on its metrics path.
/// The capacity gauges belong to capacity tracking.
const SERVED: [(&str, &str, &str); 24] = [
    ("controller_persistentvolume_delete_duration_seconds", "histogram", "class"),
    ("controller_persistentvolume_delete_failed_total", "counter", "class"),
    ("controller_persistentvolume_delete_total", "counter", "class"),
    ("controller_persistentvolumeclaim_provision_duration_seconds", "histogram", "class,source"),
    ("controller_persistentvolumeclaim_provision_failed_total", "counter", "class,source"),
    ("controller_persistentvolumeclaim_provision_total", "counter", "class,source"),
    ("csi_sidecar_operations_seconds", "histogram", "driver_name,grpc_status_code,method_name"),
    ("leader_election_master_status", "gauge", "name"),
    ("promhttp_metric_handler_requests_in_flight", "gauge", ""),
    ("promhttp_metric_handler_requests_total", "counter", "code"),
    ("workqueue_adds_total", "counter", "name"),
    ("workqueue_depth", "gauge", "name"),
    ("workqueue_longest_running_processor_seconds", "gauge", "name"),
    ("workqueue_queue_duration_seconds", "histogram", "name"),
    ("workqueue_retries_total", "counter", "name"),
    ("workqueue_unfinished_work_seconds", "gauge", "name"),
    ("workqueue_work_duration_seconds", "histogram", "name"),
    ("process_cpu_seconds_total", "counter", ""),
    ("process_max_fds", "gauge", ""),
    ("process_open_fds", "gauge", ""),
    ("process_resident_memory_bytes", "gauge", ""),
    ("process_start_time_seconds", "gauge", ""),
    ("process_virtual_memory_bytes", "gauge", ""),
    ("process_virtual_memory_max_bytes", "gauge", ""),
];

/// The label names of the first series of a family, without `le`.
fn labels(page: &str, name: &str, kind: &str) -> Option<String> {
    let series = if kind == "histogram" { format!("{name}_count") } else { name.to_owned() };
    let line = page
        .lines()
        .find(|line| line.starts_with(&format!("{series}{{")) || line.starts_with(&format!("{series} ")))?;
    let inside = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')).map_or("", |(inside, _)| inside);
    Some(inside.split(',').map(|pair| pair.split('=').next().unwrap_or("")).collect::<Vec<_>>().join(","))
}

#[test]
fn page_has_the_names_types_and_labels_of_the_go_sidecar() {
    let page = page(|metrics| {
        metrics.call_ended("d", "/csi.v1.Identity/Probe", "OK", None, 0.1);
        metrics.provision_ok("c", "", 0.1);
        metrics.provision_failed("c", "");
        metrics.delete_ok("c", 0.1);
        metrics.delete_failed("c");
        metrics.set_leading(false);
        metrics.queue("claims").added(1);
    });
    for (name, kind, wanted) in SERVED {
        assert!(page.contains(&format!("# TYPE {name} {kind}\n")), "{name} is no {kind} in {page}");
        assert_eq!(labels(&page, name, kind).as_deref(), Some(wanted), "labels of {name}");
    }
}

#[test]
fn bucket_limits_of_queues_are_written_as_in_go() {
    let page = page(|metrics| metrics.queue("claims").added(1));
    let limits: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("workqueue_queue_duration_seconds_bucket{name=\"claims\",le=\""))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(
        limits,
        [
            "1e-08",
            "1e-07",
            "1e-06",
            "9.999999999999999e-06",
            "9.999999999999999e-05",
            "0.001",
            "0.01",
            "0.1",
            "1",
            "10",
            "+Inf"
        ]
    );
}

#[test]
fn no_family_appears_twice_and_all_are_in_order() {
    // external-provisioner#619: a page with a family twice is refused as a whole.
    let page = page(|metrics| metrics.call_ended("d", "/csi.v1.Identity/Probe", "OK", Some(false), 0.1));
    let names: Vec<&str> = page.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert!(names.is_sorted_by(|one, other| one < other), "{names:?}");
}

#[test]
fn histogram_is_written_in_full() {
    let page = page(|metrics| metrics.delete_ok("say \"hi\"", 0.3));
    let first = page.find("# HELP controller_persistentvolume_delete_duration_seconds").expect("the family");
    let block: String = page[first..].split_inclusive('\n').take(16).collect();
    insta::assert_snapshot!(block, @r##"
    # HELP controller_persistentvolume_delete_duration_seconds Seconds of successful deletions of a volume's storage, by class.
    # TYPE controller_persistentvolume_delete_duration_seconds histogram
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="0.005"} 0
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="0.01"} 0
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="0.025"} 0
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="0.05"} 0
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="0.1"} 0
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="0.25"} 0
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="0.5"} 1
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="1"} 1
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="2.5"} 1
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="5"} 1
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="10"} 1
    controller_persistentvolume_delete_duration_seconds_bucket{class="say \"hi\"",le="+Inf"} 1
    controller_persistentvolume_delete_duration_seconds_sum{class="say \"hi\""} 0.3
    controller_persistentvolume_delete_duration_seconds_count{class="say \"hi\""} 1
    "##);
}
