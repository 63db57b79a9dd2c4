//! Every metric of the sidecar: names, labels and buckets as dashboards know them (provisioning.md 12.2).
//!
//! One struct is built at the start and handed down; there are no globals. What the Go sidecar does not have begins with
//! `csi_provisioner_`.

mod process;
mod queues;
mod text;

use crate::csi::CallObserver;
use crate::kube_api::events::EventObserver;
use crate::kube_api::limiter::ThrottleObserver;
use prometheus::{Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use queues::QueueMetrics;

/// Bucket limits of driver calls, in seconds.
const CALL_BUCKETS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];
/// Bucket limits of provisioning and deletion, in seconds.
const WORK_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Tells how many entries each memory of the process holds.
pub type Sizes = Box<dyn Fn() -> Vec<(&'static str, usize)> + Send + Sync>;

/// All metrics.
pub struct Metrics {
    registry: Registry,
    /// Driver calls have a registry of their own, because it is made anew when their labels change.
    calls: Mutex<Calls>,
    provision_ok: IntCounterVec,
    provision_failed: IntCounterVec,
    provision_seconds: HistogramVec,
    delete_ok: IntCounterVec,
    delete_failed: IntCounterVec,
    delete_seconds: HistogramVec,
    queues: queues::Queues,
    leading: Option<GaugeVec>,
    scrapes: IntCounterVec,
    scraping: IntGauge,
    throttled: HistogramVec,
    events_dropped: IntCounter,
    open_creations: GaugeVec,
    entries: GaugeVec,
    sizes: Mutex<Option<Sizes>>,
    process: process::Process,
}

/// Driver calls: the label `migrated` exists only for a driver that replaced an in-tree plug-in, which is known only
/// after the first calls.
struct Calls {
    registry: Registry,
    seconds: HistogramVec,
    migrating: bool,
}

impl Calls {
    fn register(migrating: bool) -> Result<Self, prometheus::Error> {
        let mut labels = vec!["driver_name", "grpc_status_code", "method_name"];
        if migrating {
            labels.push("migrated");
        }
        let help = "[ALPHA] Container Storage Interface operation duration with gRPC error code status total";
        let options = HistogramOpts::new("csi_sidecar_operations_seconds", help).buckets(CALL_BUCKETS.to_vec());
        let seconds = HistogramVec::new(options, &labels)?;
        let registry = Registry::new();
        registry.register(Box::new(seconds.clone()))?;
        Ok(Self { registry, seconds, migrating })
    }
}

impl Metrics {
    /// Registers everything. `election` adds the metric of leader election.
    ///
    /// # Errors
    /// None in practice: names and labels are constants, and a test registers them all.
    #[allow(clippy::too_many_lines, reason = "one entry per metric: the list is the content")]
    pub fn register(election: bool) -> Result<Arc<Self>, prometheus::Error> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let metric = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(metric.clone()))?;
            Ok::<_, prometheus::Error>(metric)
        };
        let histogram = |name: &str, help: &str, labels: &[&str], buckets: &[f64]| {
            let metric = HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels)?;
            registry.register(Box::new(metric.clone()))?;
            Ok::<_, prometheus::Error>(metric)
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let metric = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(metric.clone()))?;
            Ok::<_, prometheus::Error>(metric)
        };
        let leading = if election {
            let help = "[ALPHA] Whether this process leads, 1, or stands by, 0.";
            Some(gauges("leader_election_master_status", help, &["name"])?)
        } else {
            None
        };
        let scraping = IntGauge::new("promhttp_metric_handler_requests_in_flight", "Scrapes being served now.")?;
        registry.register(Box::new(scraping.clone()))?;
        let help = "Events that nobody will see, because too many were waiting.";
        let events_dropped = IntCounter::new("csi_provisioner_events_dropped_total", help)?;
        registry.register(Box::new(events_dropped.clone()))?;
        let version = Gauge::with_opts(
            Opts::new("csi_provisioner_build_info", "Version of this program.")
                .const_label("version", env!("CARGO_PKG_VERSION")),
        )?;
        version.set(1.0);
        registry.register(Box::new(version))?;
        let claim = ["class", "source"];
        let metrics = Self {
            calls: Mutex::new(Calls::register(false)?),
            provision_ok: counter(
                "controller_persistentvolumeclaim_provision_total",
                "Volumes provisioned, by class and kind of data source.",
                &claim,
            )?,
            provision_failed: counter(
                "controller_persistentvolumeclaim_provision_failed_total",
                "Attempts to provision a volume that failed, by class and kind of data source.",
                &claim,
            )?,
            provision_seconds: histogram(
                "controller_persistentvolumeclaim_provision_duration_seconds",
                "Seconds of successful attempts to provision a volume, by class and kind of data source.",
                &claim,
                &WORK_BUCKETS,
            )?,
            delete_ok: counter(
                "controller_persistentvolume_delete_total",
                "Volumes whose storage was deleted, by class.",
                &["class"],
            )?,
            delete_failed: counter(
                "controller_persistentvolume_delete_failed_total",
                "Attempts to delete the storage of a volume that failed, by class.",
                &["class"],
            )?,
            delete_seconds: histogram(
                "controller_persistentvolume_delete_duration_seconds",
                "Seconds of successful deletions of a volume's storage, by class.",
                &["class"],
                &WORK_BUCKETS,
            )?,
            scrapes: counter("promhttp_metric_handler_requests_total", "Scrapes served, by status code.", &["code"])?,
            throttled: histogram(
                "csi_provisioner_throttled_seconds",
                "Seconds that API calls waited for the client's own limit, by bucket.",
                &["bucket"],
                &CALL_BUCKETS,
            )?,
            open_creations: gauges(
                "csi_provisioner_open_creations",
                "Volumes that exist or may exist without a volume object: unresolved, unsaved, or to be discarded.",
                &["state"],
            )?,
            entries: gauges(
                "csi_provisioner_memory_entries",
                "Entries that the process remembers, by memory; they follow the open work.",
                &["memory"],
            )?,
            sizes: Mutex::default(),
            queues: queues::Queues::register(&registry)?,
            process: process::Process::register(&registry)?,
            leading,
            scraping,
            events_dropped,
            registry,
        };
        for code in ["200", "500", "503"] {
            metrics.scrapes.with_label_values(&[code]);
        }
        Ok(Arc::new(metrics))
    }

    /// A claim got its volume.
    pub fn provision_ok(&self, class: &str, source: &str, seconds: f64) {
        self.provision_ok.with_label_values(&[class, source]).inc();
        self.provision_seconds.with_label_values(&[class, source]).observe(seconds);
    }

    /// An attempt failed.
    pub fn provision_failed(&self, class: &str, source: &str) {
        self.provision_failed.with_label_values(&[class, source]).inc();
    }

    /// The storage of a volume is gone.
    pub fn delete_ok(&self, class: &str, seconds: f64) {
        self.delete_ok.with_label_values(&[class]).inc();
        self.delete_seconds.with_label_values(&[class]).observe(seconds);
    }

    /// A deletion failed.
    pub fn delete_failed(&self, class: &str) {
        self.delete_failed.with_label_values(&[class]).inc();
    }

    /// The metrics of a work queue.
    pub fn queue(&self, name: &str) -> Arc<QueueMetrics> {
        self.queues.of(name)
    }

    /// Whether this process leads.
    pub fn set_leading(&self, leads: bool) {
        if let Some(leading) = &self.leading {
            leading.with_label_values(&[""]).set(f64::from(u8::from(leads)));
        }
    }

    /// How many creations are open: unresolved, created but unsaved, to be discarded.
    pub fn set_open_creations(&self, counts: [usize; 3]) {
        for (state, count) in ["unresolved", "unsaved", "discarding"].into_iter().zip(counts) {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.open_creations.with_label_values(&[state]).set(f64::from(count));
        }
    }

    /// From now on each scrape asks this how much is remembered.
    pub fn measure(&self, sizes: Sizes) {
        *self.sizes.lock().unwrap_or_else(PoisonError::into_inner) = Some(sizes);
    }

    fn refresh_entries(&self) {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        for (memory, count) in sizes.as_ref().map(|sizes| sizes()).unwrap_or_default() {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.entries.with_label_values(&[memory]).set(f64::from(count));
        }
    }

    /// The page for a scrape, in Prometheus' text format as Go writes it.
    pub fn render(&self) -> String {
        self.scraping.inc();
        self.queues.refresh();
        self.process.refresh();
        self.refresh_entries();
        let mut families = self.calls().registry.gather();
        families.extend(self.registry.gather());
        families.sort_by(|one, other| one.name().cmp(other.name()));
        self.scraping.dec();
        self.scrapes.with_label_values(&["200"]).inc();
        text::page(&families)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallObserver for Metrics {
    fn call_ended(&self, driver: &str, method: &'static str, code: &str, migrated: Option<bool>, seconds: f64) {
        let mut calls = self.calls();
        // The series of before are gone then, as in the Go sidecar.
        if migrated.is_some()
            && !calls.migrating
            && let Ok(migrating) = Calls::register(true)
        {
            *calls = migrating;
        }
        let shown = if migrated == Some(true) { "true" } else { "false" };
        let labels: &[&str] = if calls.migrating { &[driver, code, method, shown] } else { &[driver, code, method] };
        calls.seconds.with_label_values(labels).observe(seconds);
    }
}

impl ThrottleObserver for Metrics {
    fn throttled(&self, bucket: &'static str, waited: Duration) {
        self.throttled.with_label_values(&[bucket]).observe(waited.as_secs_f64());
    }
}

impl EventObserver for Metrics {
    fn events_dropped(&self, count: u64) {
        self.events_dropped.inc_by(count);
    }
}

#[cfg(test)]
mod tests;
