//! Room volume.
