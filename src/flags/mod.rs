//! Room flags.
