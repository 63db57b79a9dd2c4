//! Room `kube_api`.

pub mod events;
pub mod exchange;
#[cfg(test)]
mod fake_api;
pub mod lease;
