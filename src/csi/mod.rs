//! Room csi.
