//! Room protection.
