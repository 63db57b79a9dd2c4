//! stub
#![allow(missing_docs)]
use std::sync::Arc;
pub struct Metrics;
impl Metrics {
    pub fn provision_ok(&self, _: &str, _: &str, _: f64) {}
    pub fn provision_failed(&self, _: &str, _: &str) {}
    pub fn delete_ok(&self, _: &str, _: f64) {}
    pub fn delete_failed(&self, _: &str) {}
    pub fn queue(&self, _: &str) -> Arc<dyn crate::kube_api::queue::QueueObserver> {
        Arc::new(())
    }
}
impl crate::csi::CallObserver for Metrics {
    fn call_ended(&self, _: &str, _: &'static str, _: &str, _: Option<bool>, _: f64) {}
}
impl crate::kube_api::events::EventObserver for Metrics {
    fn events_dropped(&self, _: u64) {}
}
