//! Room migration.
