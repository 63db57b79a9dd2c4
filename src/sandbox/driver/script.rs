//! Faults on demand, and a log of every call.
//!
//! A slow call holds its subject: another one about it is answered Aborted meanwhile, as the interface advises
//! (csi-rules.md 3). So a driver that is late never contradicts itself.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;
use tonic::{Code, Status};

/// One call as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Method name without its service, e.g. `CreateVolume`.
    pub method: &'static str,
    /// Name or id that the call is about.
    pub subject: String,
    /// The encoded request, to compare repetitions byte for byte.
    pub request: Vec<u8>,
}

impl Call {
    /// A call about `subject`.
    pub fn new(method: &'static str, subject: &str, request: &impl prost::Message) -> Self {
        Self { method, subject: subject.to_owned(), request: request.encode_to_vec() }
    }
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answer this code; the state does not change.
    FailBefore(i32, String),
    /// As [`Self::FailBefore`], but only for calls about something for which nothing was done yet: a final code is true.
    Refuse(i32, String),
    /// Change the state, then answer this code: the work is done but the caller does not know.
    FailAfter(i32, String),
    /// Change nothing and never answer.
    HangBefore,
    /// Change the state and never answer.
    HangAfter,
    /// Answer right, this much later; the state changes at the end.
    Slow(Duration),
}

/// A fault for the next calls that match.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Method name.
    pub method: &'static str,
    /// Only calls whose subject contains this; empty = all.
    pub subject: String,
    /// How many calls it hits.
    pub times: u32,
    /// What happens to them.
    pub fault: Fault,
}

/// One step in the life of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It arrived.
    Arrived(Call),
    /// It was answered with this code.
    Answered(Call, Code),
}

/// Faults and call log of one driver; clones share them.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    rules: VecDeque<Rule>,
    calls: Vec<Call>,
    /// Number of a call (from 0), and the code of its answer; no code = its arrival.
    steps: Vec<(usize, Option<Code>)>,
    stepped: watch::Sender<usize>,
    in_flight: u32,
    most_in_flight: u32,
    /// What slow calls hold: method and subject.
    held: BTreeSet<(&'static str, String)>,
    /// What calls have changed the state about: method and subject.
    done: BTreeSet<(&'static str, String)>,
}

impl Script {
    /// Adds a rule behind those that are there.
    pub fn add(&self, rule: Rule) {
        self.lock().rules.push_back(rule);
    }

    /// Drops all rules; calls that hang already go on hanging.
    pub fn clear(&self) {
        self.lock().rules.clear();
    }

    /// All calls so far, in the order of their arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// The calls of one method.
    pub fn calls_of(&self, method: &str) -> Vec<Call> {
        self.lock().calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// What has happened after the first `seen` steps, arrivals and answers in order.
    pub fn steps_after(&self, seen: usize) -> Vec<Step> {
        let inner = self.lock();
        let new = inner.steps.get(seen..).unwrap_or_default();
        let step = |(number, code): &(usize, Option<Code>)| {
            let call = inner.calls.get(*number)?.clone();
            Some(code.map_or_else(|| Step::Arrived(call.clone()), |code| Step::Answered(call.clone(), code)))
        };
        new.iter().filter_map(step).collect()
    }

    /// Counts the steps; wakes whoever waits for one.
    pub fn subscribe(&self) -> watch::Receiver<usize> {
        self.lock().stepped.subscribe()
    }

    /// The largest number of calls that were in flight at once.
    pub fn most_in_flight(&self) -> u32 {
        self.lock().most_in_flight
    }

    /// Logs the call and runs it through the first matching rule.
    pub(super) async fn around<T>(&self, call: Call, act: impl FnOnce() -> Result<T, Status>) -> Result<T, Status> {
        let key = (call.method, call.subject.clone());
        let (number, fault) = self.arrives(call);
        let holds = matches!(fault, Some(Fault::Slow(_))).then(|| key.clone());
        let _leaves = Leaves(self.clone(), holds);
        let done = || {
            let done = act();
            if done.is_ok() {
                self.lock().done.insert(key);
            }
            done
        };
        let answer = Self::act_out(fault, done).await;
        self.lock().step(number, Some(answer.as_ref().map_or_else(Status::code, |_| Code::Ok)));
        answer
    }

    async fn act_out<T>(fault: Option<Fault>, act: impl FnOnce() -> Result<T, Status>) -> Result<T, Status> {
        match fault {
            None => act(),
            Some(Fault::FailBefore(code, text) | Fault::Refuse(code, text)) => {
                Err(Status::new(Code::from_i32(code), text))
            }
            Some(Fault::FailAfter(code, text)) => act().and(Err(Status::new(Code::from_i32(code), text))),
            Some(Fault::HangBefore) => std::future::pending().await,
            Some(Fault::HangAfter) => {
                act()?;
                std::future::pending().await
            }
            Some(Fault::Slow(time)) => {
                sleep(time).await;
                act()
            }
        }
    }

    fn arrives(&self, call: Call) -> (usize, Option<Fault>) {
        let mut inner = self.lock();
        inner.in_flight += 1;
        inner.most_in_flight = inner.most_in_flight.max(inner.in_flight);
        let key = (call.method, call.subject.clone());
        let number = inner.calls.len();
        let fault = if inner.held.contains(&key) {
            Some(Fault::FailBefore(Code::Aborted.into(), format!("another call about {} is running", key.1)))
        } else {
            inner.hit(&call)
        };
        if matches!(fault, Some(Fault::Slow(_))) {
            inner.held.insert(key);
        }
        inner.calls.push(call);
        inner.step(number, None);
        (number, fault)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The fault of the first rule that matches; uses it up by one.
    fn hit(&mut self, call: &Call) -> Option<Fault> {
        let is_done = self.done.contains(&(call.method, call.subject.clone()));
        let matches = |rule: &&mut Rule| {
            let honest = !(is_done && matches!(rule.fault, Fault::Refuse(..)));
            rule.times > 0 && rule.method == call.method && call.subject.contains(&rule.subject) && honest
        };
        let rule = self.rules.iter_mut().find(matches)?;
        rule.times -= 1;
        Some(rule.fault.clone())
    }

    fn step(&mut self, number: usize, code: Option<Code>) {
        self.steps.push((number, code));
        self.stepped.send_replace(self.steps.len());
    }
}

/// Counts a call out when it ends, also when it is dropped.
struct Leaves(Script, Option<(&'static str, String)>);

impl Drop for Leaves {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.in_flight = inner.in_flight.saturating_sub(1);
        if let Some(held) = &self.1 {
            inner.held.remove(held);
        }
    }
}
