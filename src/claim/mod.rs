//! Room claim.
