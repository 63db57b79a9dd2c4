//! The leak hunt: the sidecar is ended at every point at which it waits, and every request is cut before and after it
//! is carried out; the claim is deleted before the restart or not; the driver is prompt, late, failing or forgetful.
//!
//! `--durable-intent=always`: no schedule leaks, doubles or loses a volume. `uncertain`: none without SIGKILL does.
//! `off`: as the Go sidecar or better, and each remaining hole is listed in [`holes`].
//!
//! Small schedules are tried one by one; a random mix of several claims, sidecars and troubles follows, 20 seeds of it
//! or as many as the environment variable `LEAK_SEEDS` says: `e2e/run units` plays 2000, optimised (profile `hunt`).

mod every_point;
mod holes;
mod mix;
mod schedule;
