//! Faults on demand: what a test or a scenario can make the server do wrong.
//!
//! A [`Rule`] says for which requests ([`Match`]), what happens ([`Effect`]) and how often. Rules are tried in the
//! order they were added; one that hits uses up one of its times. A request may be hit by one delay, one early and
//! one late effect. Watches that are already open are reached by [`Faults::cut_watches`] and by the lasting
//! effects ([`Effect::Freeze`], [`Effect::DropEvents`]), which last until the rule is removed.
//!
//! Promises: deterministic, except for the drawn share of dropped events, which comes from the handed-in source.

use crate::random::Random;
use crate::signal::{Listener, Signal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Which requests a rule is about; what is not set matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user_agent: Option<String>,
}

impl Match {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Only this verb: get, list, watch, create, update, patch, delete, deletecollection.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Only this kind, by plural.
    #[must_use]
    pub fn resource(mut self, plural: &str) -> Self {
        self.resource = Some(plural.to_owned());
        self
    }

    /// Only this subresource, such as `status`; an empty one stands for the main part.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only this object.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only callers whose user agent contains this text.
    #[must_use]
    pub fn user_agent(mut self, part: &str) -> Self {
        self.user_agent = Some(part.to_owned());
        self
    }

    fn hits(&self, call: &Call) -> bool {
        let same = |wanted: &Option<String>, told: &str| wanted.as_ref().is_none_or(|wanted| wanted == told);
        same(&self.verb, &call.verb)
            && same(&self.resource, &call.resource)
            && same(&self.subresource, &call.subresource)
            && same(&self.namespace, &call.namespace)
            && same(&self.name, &call.name)
            && self.user_agent.as_ref().is_none_or(|part| call.user_agent.contains(part))
    }
}

/// One request as rules and the log see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Verb.
    pub verb: String,
    /// Plural.
    pub resource: String,
    /// Subresource or empty.
    pub subresource: String,
    /// Namespace or empty.
    pub namespace: String,
    /// Name or empty; for a create the name inside the object.
    pub name: String,
    /// User agent or empty.
    pub user_agent: String,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The request waits before the store is touched.
    Delay(Duration),
    /// The request is carried out, and its answer waits.
    AnswerLate(Duration),
    /// The request is refused with this code; nothing is stored. 429 and 503 may say when to come back.
    Refuse {
        /// HTTP code, 400 to 599.
        code: u16,
        /// Seconds in `Retry-After`.
        retry_after_secs: Option<u32>,
    },
    /// The request is carried out, and the answer is this code instead.
    RefuseAfter {
        /// HTTP code, 400 to 599.
        code: u16,
    },
    /// The caller lacks the right (403, as RBAC says it).
    Deny,
    /// The connection breaks before the store is touched.
    Cut,
    /// The request is carried out, and the connection breaks before the answer.
    LoseAnswer,
    /// A list (or the initial part of a watch) shows the state of so many revisions ago.
    Stale {
        /// How many revisions back.
        revisions: u64,
    },
    /// Watches hold back all events until the rule is removed; lasting.
    Freeze,
    /// Watches lose this share of events, in percent; lasting.
    DropEvents {
        /// 0 to 100.
        percent: u8,
    },
}

/// Handle of an added rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(u64);

#[derive(Clone, Debug)]
struct Rule {
    id: RuleId,
    on: Match,
    effect: Effect,
    left: Option<u32>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    rules: Vec<Rule>,
    cuts: Vec<(u64, Match)>,
}

/// What one request meets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Wait before anything else.
    pub delay: Duration,
    /// What replaces the request.
    pub early: Option<Effect>,
    /// What replaces the answer.
    pub late: Option<Effect>,
    /// Wait before the answer.
    pub answer_late: Duration,
    /// Revisions to go back for a list.
    pub stale_by: u64,
}

/// The switchboard; clones share one state.
#[derive(Clone, Debug)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    changed: Signal<u64>,
    random: Random,
}

impl Faults {
    /// A switchboard without rules.
    pub fn new(random: Random) -> Self {
        Self { state: Arc::default(), changed: Signal::new(0), random }
    }

    /// Adds a rule that hits every matching request until it is removed.
    pub fn add(&self, on: Match, effect: Effect) -> RuleId {
        self.insert(on, effect, None)
    }

    /// Adds a rule that hits the next `times` matching requests.
    pub fn add_times(&self, on: Match, effect: Effect, times: u32) -> RuleId {
        self.insert(on, effect, Some(times))
    }

    /// Removes a rule; held-back events go out now. False if it was not there any more.
    pub fn remove(&self, id: RuleId) -> bool {
        let mut state = self.state();
        let before = state.rules.len();
        state.rules.retain(|rule| rule.id != id);
        let removed = state.rules.len() != before;
        drop(state);
        self.tell();
        removed
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.state().rules.clear();
        self.tell();
    }

    /// How often a counted rule can still hit; 0 when it is used up or unknown, `None` when it is not counted.
    pub fn left(&self, id: RuleId) -> Option<u32> {
        self.state().rules.iter().find(|rule| rule.id == id).map_or(Some(0), |rule| rule.left)
    }

    /// Breaks the connection of every open watch that matches.
    pub fn cut_watches(&self, on: Match) {
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        state.cuts.push((number, on));
        drop(state);
        self.tell();
    }

    /// What this request meets; uses up counted rules.
    pub fn plan(&self, call: &Call) -> Plan {
        let mut plan = Plan::default();
        let mut state = self.state();
        for rule in state.rules.iter_mut().filter(|rule| rule.left != Some(0) && rule.on.hits(call)) {
            if take(&mut plan, &rule.effect) {
                rule.left = rule.left.map(|left| left - 1);
            }
        }
        state.rules.retain(|rule| rule.left != Some(0));
        plan
    }

    /// The number of the newest cut; a watch opened now is not reached by older ones.
    pub fn cut_mark(&self) -> u64 {
        self.state().next
    }

    /// Whether a watch opened at `mark` has been cut since.
    pub fn is_cut(&self, call: &Call, mark: u64) -> bool {
        self.state().cuts.iter().any(|(number, on)| *number > mark && on.hits(call))
    }

    /// Whether a watch has to hold its events back.
    pub fn is_frozen(&self, call: &Call) -> bool {
        self.state().rules.iter().any(|rule| rule.effect == Effect::Freeze && rule.on.hits(call))
    }

    /// Draws whether a watch loses its next event.
    pub fn loses_event(&self, call: &Call) -> bool {
        let percent = self.state().rules.iter().find_map(|rule| match rule.effect {
            Effect::DropEvents { percent } if rule.on.hits(call) => Some(percent),
            _ => None,
        });
        percent.is_some_and(|percent| self.random.below(100) < u64::from(percent))
    }

    /// Wakes whenever rules change.
    pub fn subscribe(&self) -> Listener<u64> {
        self.changed.subscribe()
    }

    fn insert(&self, on: Match, effect: Effect, left: Option<u32>) -> RuleId {
        let mut state = self.state();
        state.next += 1;
        let id = RuleId(state.next);
        state.rules.push(Rule { id, on, effect, left });
        drop(state);
        self.tell();
        id
    }

    fn tell(&self) {
        self.changed.change(|count| *count += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts an effect into the plan unless its place is taken; says whether it was used.
fn take(plan: &mut Plan, effect: &Effect) -> bool {
    match effect {
        Effect::Delay(time) if plan.delay.is_zero() => plan.delay = *time,
        Effect::AnswerLate(time) if plan.answer_late.is_zero() => plan.answer_late = *time,
        Effect::Refuse { .. } | Effect::Deny | Effect::Cut if plan.early.is_none() => plan.early = Some(effect.clone()),
        Effect::RefuseAfter { .. } | Effect::LoseAnswer if plan.late.is_none() => plan.late = Some(effect.clone()),
        Effect::Stale { revisions } if plan.stale_by == 0 => plan.stale_by = *revisions,
        Effect::Delay(_)
        | Effect::AnswerLate(_)
        | Effect::Refuse { .. }
        | Effect::RefuseAfter { .. }
        | Effect::Deny
        | Effect::Cut
        | Effect::LoseAnswer
        | Effect::Stale { .. }
        | Effect::Freeze
        | Effect::DropEvents { .. } => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(verb: &str) -> Call {
        Call {
            verb: verb.into(),
            resource: "persistentvolumes".into(),
            user_agent: "x/csi-provisioner".into(),
            ..Call::default()
        }
    }

    fn faults() -> Faults {
        Faults::new(Random::seeded(1))
    }

    #[test]
    fn counted_rule_hits_so_often_and_no_more() {
        let faults = faults();
        let id = faults.add_times(Match::any().verb("create"), Effect::Cut, 2);
        let hits = (0..4).filter(|_| faults.plan(&call("create")).early == Some(Effect::Cut)).count();
        assert_eq!((hits, faults.left(id)), (2, Some(0)));
    }

    #[test]
    fn rule_about_another_request_does_not_hit() {
        let faults = faults();
        faults.add(Match::any().verb("create").user_agent("other"), Effect::Deny);
        faults.add(Match::any().resource("secrets"), Effect::Deny);
        assert_eq!(faults.plan(&call("create")), Plan::default());
    }

    #[test]
    fn effects_of_different_places_add_up_and_a_taken_place_saves_the_rule() {
        let faults = faults();
        faults.add(Match::any(), Effect::Delay(Duration::from_secs(1)));
        faults.add(Match::any(), Effect::Refuse { code: 500, retry_after_secs: None });
        let second = faults.add_times(Match::any(), Effect::Cut, 1);
        faults.add(Match::any(), Effect::LoseAnswer);
        let plan = faults.plan(&call("get"));
        assert_eq!(plan.delay, Duration::from_secs(1));
        assert_eq!(plan.early, Some(Effect::Refuse { code: 500, retry_after_secs: None }));
        assert_eq!(plan.late, Some(Effect::LoseAnswer));
        assert_eq!(faults.left(second), Some(1));
    }

    #[test]
    fn cut_reaches_open_watches_only() {
        let faults = faults();
        let before = faults.cut_mark();
        faults.cut_watches(Match::any());
        assert!(faults.is_cut(&call("watch"), before));
        assert!(!faults.is_cut(&call("watch"), faults.cut_mark()));
    }

    #[test]
    fn share_of_lost_events_is_the_asked_one() {
        let faults = faults();
        faults.add(Match::any(), Effect::DropEvents { percent: 30 });
        let lost = (0..1000).filter(|_| faults.loses_event(&call("watch"))).count();
        assert!((250..350).contains(&lost), "{lost}");
    }
}
