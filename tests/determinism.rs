//! A run repeats from its seed: 200 claims among troubles give the same trace, byte for byte, whatever else the machine
//! does.
#![allow(clippy::disallowed_methods, reason = "the busy threads live beside the simulation, not in it")]

use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::simulate::objects::CLAIMS;
use csi_provisioner::sandbox::simulate::{Options, World};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;

const CLAIM_COUNT: u64 = 200;

/// The life of 200 claims, of which some are deleted again, and of three sidecars one after the other.
fn trace_of(seed: u64) -> String {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("builds");
    runtime.block_on(async {
        let flags = ["--kube-api-qps=100", "--kube-api-burst=200", "--durable-intent=always"];
        let flags = flags.map(str::to_owned).to_vec();
        let world = World::new(Options { seed, driver: DriverOptions::default(), flags, alone: false });
        world.add_class("fast");
        let users = async {
            for number in 0..CLAIM_COUNT {
                world.add_claim(&format!("data-{number}"), "fast");
                if world.random.below(3) == 0 {
                    world.remove(CLAIMS, &format!("data-{}", world.random.below(number + 1)));
                }
                sleep(world.random.duration_below(Duration::from_secs(4))).await;
            }
        };
        let sidecars = async {
            let first = world.start();
            sleep(Duration::from_secs(130)).await;
            first.kill().await;
            let second = world.start();
            sleep(Duration::from_secs(130)).await;
            second.terminate();
            second.ended().await;
            world.start()
        };
        let troubles = world.troubles(Duration::from_secs(400), Duration::from_secs(1));
        let ((), _last, ()) = tokio::join!(users, sidecars, troubles);
        sleep(Duration::from_secs(10 * 60)).await;
        world.trace.text()
    })
}

/// Keeps more threads busy than the machine has processors.
struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<u64>>,
}

impl Load {
    fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let busy = |over: Arc<AtomicBool>| {
            move || {
                let mut turns = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    turns = std::hint::black_box(turns.wrapping_mul(31).wrapping_add(7));
                }
                turns
            }
        };
        let threads = (0..4).map(|_| std::thread::spawn(busy(Arc::clone(&over)))).collect();
        Self { over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _turns = thread.join();
        }
    }
}

/// Where two texts part, with the lines around it.
fn first_difference(one: &str, other: &str) -> Option<String> {
    let mut lines = one.lines().zip(other.lines()).enumerate();
    match lines.find(|(_, (one, other))| one != other) {
        Some((number, (one, other))) => Some(format!("line {number}:\n  {one}\n  {other}")),
        None => (one != other).then(|| format!("lengths: {} and {}", one.len(), other.len())),
    }
}

#[test]
fn same_seed_gives_the_same_trace_also_beside_load() {
    let calm = trace_of(7);
    assert!(calm.lines().count() > 2_000, "the run is too short to prove anything");
    let load = Load::begin();
    let loaded = trace_of(7);
    drop(load);
    assert_eq!(first_difference(&calm, &loaded), None);
}

#[test]
fn another_seed_gives_another_trace() {
    assert!(first_difference(&trace_of(7), &trace_of(8)).is_some());
}
