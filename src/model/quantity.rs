//! Kubernetes quantities: parsing, rounding and the canonical text.
