//! A random mix: several claims, troubles on both sides, and sidecars that end one after the other.

use crate::schedule::{Intent, at_end, flags, in_paused_time, rest, secs};
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::simulate::cable::Incident;
use csi_provisioner::sandbox::simulate::check::Finding;
use csi_provisioner::sandbox::simulate::objects::CLAIMS;
use csi_provisioner::sandbox::simulate::{Options, World};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::sleep;

/// How sidecars may end in a mix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endings {
    Kills,
    Stops,
    None,
}

/// How many seeds, and the first of them: to play one again.
fn seeds() -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    (number("LEAK_SEEDS").unwrap_or(20), number("LEAK_FROM").unwrap_or(0))
}

fn play(seed: u64, intent: Intent, endings: Endings) -> (Vec<Finding>, String) {
    in_paused_time(async {
        let world = World::new(Options { seed, driver: DriverOptions::default(), flags: flags(intent), alone: false });
        world.add_class("fast");
        let users = async {
            for number in 0..4 {
                world.add_claim(&format!("data-{number}"), "fast");
                sleep(world.random.duration_below(secs(15))).await;
                if world.random.below(2) == 0 {
                    world.remove(CLAIMS, &format!("data-{}", world.random.below(number + 1)));
                }
            }
        };
        let sidecars = async {
            for _ in 0..3 {
                let point = 1 + world.random.below(80);
                let incidents = match endings {
                    Endings::Kills if world.random.below(4) > 0 => vec![Incident::KillAt(point)],
                    Endings::Kills | Endings::Stops => vec![Incident::StopAt(point)],
                    Endings::None => Vec::new(),
                };
                let sidecar = world.start_with(incidents);
                world.until(secs(30), |_| sidecar.outcome().is_some()).await;
                if sidecar.outcome().is_none() {
                    match endings {
                        Endings::Kills => drop(sidecar),
                        Endings::Stops => {
                            sidecar.terminate();
                            sidecar.ended().await;
                        }
                        Endings::None => return sidecar,
                    }
                }
                sleep(world.random.duration_below(secs(5))).await;
            }
            world.start()
        };
        let ((), _last, ()) = tokio::join!(users, sidecars, world.troubles(secs(90), secs(2)));
        let mut findings = rest(&world).await;
        (0..4).for_each(|number| world.remove(CLAIMS, &format!("data-{number}")));
        findings.extend(rest(&world).await);
        if findings.is_empty() && !at_end(&world) {
            findings.push(Finding::Stuck("something is left after all claims are gone".to_owned()));
        }
        if !findings.is_empty() && findings.iter().all(is_record) {
            // The API server carried out the request of a process that was dead already, after its successor had removed
            // the record. Its successor looks for such records later.
            sleep(secs(180)).await;
            findings = rest(&world).await;
        }
        (findings, world.trace.text())
    })
}

fn is_record(finding: &Finding) -> bool {
    matches!(finding, Finding::Stuck(what) if what.starts_with("record "))
}

/// Plays all seeds, shared out among the processors: each world is a runtime of its own in one thread.
fn hunt(intent: Intent, endings: Endings, kind: &str) {
    let (seeds, first) = seeds();
    let next = AtomicU64::new(first);
    let play_next = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return;
            }
            let (findings, trace) = play(seed, intent, endings);
            let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
            assert!(findings.is_empty(), "seed {seed}: {told:?}\n{trace}");
        }
    };
    let hunters = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|threads| (0..hunters).for_each(|_| drop(threads.spawn(play_next))));
    println!("leak hunt: {seeds} schedules of {kind} with durable intent {intent:?}, 0 leaks");
}

#[test]
fn mix_with_kills_loses_nothing_that_is_always_recorded() {
    hunt(Intent::Always, Endings::Kills, "a mix with SIGKILL");
}

#[test]
fn mix_with_stops_loses_nothing_that_is_recorded_when_uncertain() {
    hunt(Intent::Uncertain, Endings::Stops, "a mix with SIGTERM");
}

#[test]
fn mix_of_troubles_loses_nothing_without_records() {
    hunt(Intent::Off, Endings::None, "a mix without an end of the sidecar");
}
