//! Every point and every request, one after the other.

use crate::holes::{HOLES, hole_of};
use crate::schedule::{Intent, MOODS, Mood, Schedule};
use csi_provisioner::sandbox::simulate::cable::{Incident, Side};
use csi_provisioner::sandbox::simulate::check::Finding;
use std::collections::BTreeSet;

/// Plays schedules and keeps count.
#[derive(Default)]
struct Hunt {
    schedules: u32,
    /// Schedules that leaked through a listed hole.
    leaks: u32,
    holes: BTreeSet<usize>,
}

impl Hunt {
    fn play(&mut self, schedule: &Schedule) -> (u64, u64) {
        let verdict = schedule.play();
        self.schedules += 1;
        if verdict.findings.is_empty() {
            return verdict.counted;
        }
        let only_leaks = verdict.findings.iter().all(|finding| matches!(finding, Finding::Leaked { .. }));
        match hole_of(schedule.intent, verdict.facts).filter(|_| only_leaks) {
            Some(hole) => {
                self.leaks += 1;
                self.holes.insert(hole);
            }
            None => panic!(
                "{schedule:?}\n{:?}\n{:?}\n{}",
                verdict.facts,
                verdict.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
                verdict.trace
            ),
        }
        verdict.counted
    }

    fn ends_with(&self, intent: Intent, kind: &str) {
        let Self { schedules, leaks, .. } = self;
        println!("leak hunt: {schedules} schedules of {kind} with durable intent {intent:?}, {leaks} leaks");
        for hole in &self.holes {
            println!("  all through the listed hole: {}", HOLES[*hole].reason);
        }
    }
}

fn plain(intent: Intent, mood: Mood) -> Schedule {
    Schedule { intent, mood, incident: None, claim_deleted: false }
}

/// Ends the sidecar at each point.
fn end_everywhere(intent: Intent, incident: fn(u64) -> Incident, kind: &str) -> Hunt {
    let mut hunt = Hunt::default();
    for mood in MOODS {
        let (points, _) = hunt.play(&plain(intent, mood));
        for point in 1..=points {
            for claim_deleted in [false, true] {
                hunt.play(&Schedule { intent, mood, incident: Some(incident(point)), claim_deleted });
            }
        }
    }
    hunt.ends_with(intent, kind);
    hunt
}

/// Cuts each request before and after it is carried out.
fn cut_everywhere(intent: Intent) {
    let mut hunt = Hunt::default();
    for mood in MOODS {
        let (_, requests) = hunt.play(&plain(intent, mood));
        for request in 1..=requests {
            for side in [Side::Before, Side::After] {
                let incident = Some(Incident::Cut(request, side));
                hunt.play(&Schedule { intent, mood, incident, claim_deleted: false });
            }
        }
    }
    assert_eq!(hunt.holes, BTreeSet::new(), "a broken connection opens no hole");
    hunt.ends_with(intent, "a cut request");
}

#[test]
fn always_recorded_creation_survives_sigkill_everywhere() {
    let hunt = end_everywhere(Intent::Always, Incident::KillAt, "SIGKILL");
    assert_eq!(hunt.holes, BTreeSet::new());
}

#[test]
fn always_recorded_creation_survives_sigterm_everywhere() {
    let hunt = end_everywhere(Intent::Always, Incident::StopAt, "SIGTERM");
    assert_eq!(hunt.holes, BTreeSet::new());
}

#[test]
fn uncertain_creation_survives_sigterm_everywhere() {
    let hunt = end_everywhere(Intent::Uncertain, Incident::StopAt, "SIGTERM");
    assert_eq!(hunt.holes, BTreeSet::new());
}

#[test]
fn uncertain_creation_is_lost_by_sigkill_only_through_the_listed_hole() {
    let hunt = end_everywhere(Intent::Uncertain, Incident::KillAt, "SIGKILL");
    assert_eq!(hunt.holes, BTreeSet::from([2]), "the list of holes is out of date");
}

#[test]
fn unrecorded_creation_is_lost_by_sigkill_only_through_the_listed_hole() {
    let hunt = end_everywhere(Intent::Off, Incident::KillAt, "SIGKILL");
    assert_eq!(hunt.holes, BTreeSet::from([0]), "the list of holes is out of date");
}

#[test]
fn unrecorded_creation_is_lost_by_sigterm_only_through_the_listed_hole() {
    let hunt = end_everywhere(Intent::Off, Incident::StopAt, "SIGTERM");
    assert_eq!(hunt.holes, BTreeSet::from([1]), "the list of holes is out of date");
}

#[test]
fn cut_requests_lose_nothing_without_records() {
    cut_everywhere(Intent::Off);
}

#[test]
fn cut_requests_lose_nothing_with_records_when_uncertain() {
    cut_everywhere(Intent::Uncertain);
}

#[test]
fn cut_requests_lose_nothing_with_records_always() {
    cut_everywhere(Intent::Always);
}
