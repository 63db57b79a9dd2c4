//! Metrics of the work queues, under the names that client-go gives them.

use crate::kube_api::queue::{InWork, Probe, QueueObserver};
use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// 10 ns and nine times the tenfold, multiplied up as client-go does it: its labels say `9.999999999999999e-06`.
fn buckets() -> Vec<f64> {
    std::iter::successors(Some(1e-8), |limit| Some(limit * 10.0)).take(10).collect()
}

/// The families, and the queues that use them.
pub(super) struct Queues {
    families: Families,
    queues: Mutex<BTreeMap<String, Arc<QueueMetrics>>>,
}

#[derive(Clone)]
struct Families {
    depth: IntGaugeVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    waited: HistogramVec,
    worked: HistogramVec,
}

/// One queue's metrics.
pub struct QueueMetrics {
    name: String,
    families: Families,
    probe: Mutex<Option<Probe>>,
}

impl Queues {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let name = ["name"];
        let options = |metric: &str, help: &str| Opts::new(metric, format!("[BETA] {help}"));
        let timed = |metric: &str, help: &str| HistogramOpts::new(metric, format!("[BETA] {help}")).buckets(buckets());
        let families = Families {
            depth: IntGaugeVec::new(options("workqueue_depth", "Keys that wait for a worker."), &name)?,
            unfinished: GaugeVec::new(
                options("workqueue_unfinished_work_seconds", "Seconds of all work that has begun and not ended."),
                &name,
            )?,
            longest: GaugeVec::new(
                options("workqueue_longest_running_processor_seconds", "Seconds of the oldest work in progress."),
                &name,
            )?,
            adds: IntCounterVec::new(options("workqueue_adds_total", "Keys added."), &name)?,
            retries: IntCounterVec::new(options("workqueue_retries_total", "Keys that came back later."), &name)?,
            waited: HistogramVec::new(
                timed("workqueue_queue_duration_seconds", "Seconds that keys waited for a worker."),
                &name,
            )?,
            worked: HistogramVec::new(
                timed("workqueue_work_duration_seconds", "Seconds that the work on a key took."),
                &name,
            )?,
        };
        registry.register(Box::new(families.depth.clone()))?;
        registry.register(Box::new(families.unfinished.clone()))?;
        registry.register(Box::new(families.longest.clone()))?;
        registry.register(Box::new(families.adds.clone()))?;
        registry.register(Box::new(families.retries.clone()))?;
        registry.register(Box::new(families.waited.clone()))?;
        registry.register(Box::new(families.worked.clone()))?;
        Ok(Self { families, queues: Mutex::default() })
    }

    pub(super) fn of(&self, name: &str) -> Arc<QueueMetrics> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.entry(name.to_owned()).or_insert_with(|| {
            let families = self.families.clone();
            // All series of a queue are there from the start, so that a rate over them is right from the start.
            families.depth.with_label_values(&[name]);
            families.adds.with_label_values(&[name]);
            families.retries.with_label_values(&[name]);
            families.waited.with_label_values(&[name]);
            families.worked.with_label_values(&[name]);
            Arc::new(QueueMetrics { name: name.to_owned(), families, probe: Mutex::default() })
        });
        Arc::clone(queue)
    }

    /// Brings the gauges that only a look can tell up to date.
    pub(super) fn refresh(&self) {
        for queue in self.queues.lock().unwrap_or_else(PoisonError::into_inner).values() {
            queue.refresh();
        }
    }
}

impl QueueMetrics {
    fn refresh(&self) {
        let probe = self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        let InWork { unfinished, longest } = probe.as_ref().map_or_else(InWork::default, |probe| probe());
        self.families.unfinished.with_label_values(&[&self.name]).set(unfinished.as_secs_f64());
        self.families.longest.with_label_values(&[&self.name]).set(longest.as_secs_f64());
    }

    fn set_depth(&self, depth: usize) {
        self.families.depth.with_label_values(&[&self.name]).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}

impl QueueObserver for QueueMetrics {
    fn added(&self, depth: usize) {
        self.families.adds.with_label_values(&[&self.name]).inc();
        self.set_depth(depth);
    }

    fn taken(&self, waited: Duration, depth: usize) {
        self.families.waited.with_label_values(&[&self.name]).observe(waited.as_secs_f64());
        self.set_depth(depth);
    }

    fn finished(&self, worked: Duration, depth: usize) {
        self.families.worked.with_label_values(&[&self.name]).observe(worked.as_secs_f64());
        self.set_depth(depth);
    }

    fn dropped(&self, depth: usize) {
        self.set_depth(depth);
    }

    fn retried(&self) {
        self.families.retries.with_label_values(&[&self.name]).inc();
    }

    fn attach(&self, probe: Probe) {
        *self.probe.lock().unwrap_or_else(PoisonError::into_inner) = Some(probe);
    }
}
