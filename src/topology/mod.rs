//! Room topology.
