//! stub
#![allow(missing_docs)]
pub struct Metrics;
impl Metrics {
    pub fn provision_ok(&self, _: &str, _: &str, _: f64) {}
    pub fn provision_failed(&self, _: &str, _: &str) {}
    pub fn delete_ok(&self, _: &str, _: f64) {}
    pub fn delete_failed(&self, _: &str) {}
}
