//! Follows a kind of object.
