//! Troubles drawn from the world's random source: on the side of the API server, of the driver and of the wires.
//!
//! All of them are honest: a driver that answers with a final code has made nothing, a server that answers 409 has
//! stored nothing. Each ends by itself, so a world without further troubles comes to rest.

use super::World;
use super::cable::Side;
use super::socket::Break;
use crate::sandbox::apiserver::faults::{Effect, Match, RuleId};
use crate::sandbox::driver::script::{Fault, Rule};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Kinds that the sidecar asks for.
const KINDS: [&str; 5] =
    ["persistentvolumes", "persistentvolumeclaims", "storageclasses", "configmaps", "volumeattachments"];
/// Codes after which a volume may still appear.
const OPEN_CODES: [i32; 4] = [1, 4, 10, 14];
const NOT_FOUND: i32 = 5;
const INTERNAL: i32 = 13;
/// Longest time that a drawn trouble takes.
const LONGEST: Duration = Duration::from_secs(30);

impl World {
    /// Lets troubles loose for this long, one each `pause` on average. Afterwards nothing new goes wrong.
    pub async fn troubles(&self, lasting: Duration, pause: Duration) {
        let end = Instant::now() + lasting;
        let mut frozen: Vec<(Instant, RuleId)> = Vec::new();
        while Instant::now() < end {
            frozen.retain(|(until, rule)| {
                let over = Instant::now() >= *until;
                if over {
                    self.server.faults().remove(*rule);
                }
                !over
            });
            if self.random.below(2) == 0 {
                frozen.extend(self.trouble_with_api());
            } else {
                self.trouble_with_driver();
            }
            sleep(self.random.duration_below(pause * 2)).await;
        }
        self.calm();
    }

    /// Takes every trouble away that has not happened yet.
    pub fn calm(&self) {
        self.server.faults().clear();
        self.driver.script().clear();
        self.socket.clear();
    }

    fn pick<T: Copy>(&self, among: &[T], otherwise: T) -> T {
        let at = usize::try_from(self.random.below(among.len() as u64)).unwrap_or(0);
        among.get(at).copied().unwrap_or(otherwise)
    }

    fn some_time(&self) -> Duration {
        self.random.duration_below(LONGEST)
    }

    /// A frozen watch is handed back with the time of its thaw.
    fn trouble_with_api(&self) -> Option<(Instant, RuleId)> {
        let faults = self.server.faults();
        let kind = self.pick(&KINDS, "persistentvolumes");
        let verb = self.pick(&["create", "update", "patch", "delete", "get"], "create");
        let one = Match::any().resource(kind).verb(verb);
        let looking = Match::any().resource(kind).verb("watch");
        let times = 1 + u32::try_from(self.random.below(3)).unwrap_or(0);
        let refusal = |code, retry_after_secs| Effect::Refuse { code, retry_after_secs };
        let (on, effect) = match self.random.below(13) {
            0 => (one, Effect::Delay(self.some_time())),
            1 => (one, Effect::AnswerLate(self.some_time())),
            2 => (one, refusal(409, None)),
            3 => (one, refusal(429, Some(1 + u32::try_from(self.random.below(20)).unwrap_or(0)))),
            4 => (one, refusal(500, None)),
            5 => (one, refusal(503, Some(2))),
            6 => (one, Effect::Cut),
            7 => (one, Effect::LoseAnswer),
            8 => (one, Effect::RefuseAfter { code: 500 }),
            9 => (looking, refusal(410, None)),
            10 => {
                faults.cut_watches(looking.clone());
                (looking, Effect::Stale { revisions: 1 + self.random.below(20) })
            }
            11 => {
                faults.cut_watches(looking);
                self.server.compact();
                return None;
            }
            _ => return Some((Instant::now() + self.some_time(), faults.add(looking, Effect::Freeze))),
        };
        self.trace.note("chaos", format_args!("{times} x {effect:?} on {kind}, {verb}"));
        faults.add_times(on, effect, times);
        None
    }

    fn trouble_with_driver(&self) {
        let method = self.pick(&["CreateVolume", "DeleteVolume"], "CreateVolume");
        let subject = String::new();
        let fault = match self.random.below(8) {
            0 | 1 => {
                let drawn = 1 + i32::try_from(self.random.below(16)).unwrap_or(0);
                // Not found would be a lie about a volume that exists.
                let code = if drawn == NOT_FOUND { INTERNAL } else { drawn };
                Fault::Refuse(code, "drawn".to_owned())
            }
            2 => Fault::FailAfter(self.pick(&OPEN_CODES, 14), "drawn".to_owned()),
            3 => Fault::HangBefore,
            4 => Fault::HangAfter,
            5 => Fault::Slow(self.some_time()),
            6 => {
                let side = self.pick(&[Side::Before, Side::After], Side::Before);
                self.trace.note("chaos", format_args!("{method} breaks {side:?}"));
                return self.socket.break_next(Break { method, subject, times: 1, side });
            }
            _ => {
                let away = self.some_time();
                self.trace.note("chaos", format_args!("the driver is away for {away:?}"));
                return self.socket.restart(away);
            }
        };
        self.trace.note("chaos", format_args!("{method}: {fault:?}"));
        self.driver.script().add(Rule { method, subject, times: 1, fault });
    }
}
