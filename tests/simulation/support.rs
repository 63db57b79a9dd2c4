//! A world with one class, and the waits that all tests use.

use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::simulate::check::Finding;
use csi_provisioner::sandbox::simulate::{Options, World};
use std::time::Duration;
use tokio::time::sleep;

/// Long enough for every back-off and every sweep.
pub const LONG: Duration = Duration::from_secs(20 * 60);
/// The name of the class of every world.
pub const CLASS: &str = "fast";

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A world whose sidecars get these flags besides a generous limit of API calls.
pub fn world_with(driver: DriverOptions, flags: &[&str]) -> World {
    let generous = ["--kube-api-qps=1000", "--kube-api-burst=1000"];
    let flags = generous.iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
    let world = World::new(Options { seed: 1, driver, flags });
    world.add_class(CLASS);
    world
}

pub fn world(flags: &[&str]) -> World {
    world_with(DriverOptions::default(), flags)
}

/// Lets the world come to rest, and asserts that nothing is wrong with it then.
pub async fn comes_to_rest(world: &World) {
    sleep(LONG).await;
    assert_eq!(world.findings(), Vec::<Finding>::new(), "\n{}", world.trace.text());
}
