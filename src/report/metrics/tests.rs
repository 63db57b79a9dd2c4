use super::Metrics;
use crate::csi::CallObserver;
use crate::kube_api::queue::QueueObserver;
use std::time::Duration;

fn page(fill: impl Fn(&Metrics)) -> String {
    let metrics = Metrics::register(true).expect("names and labels are constants");
    fill(&metrics);
    metrics.render().expect("a page")
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
