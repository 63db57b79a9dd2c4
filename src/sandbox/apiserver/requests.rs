//! The log of requests, so that a test can count what a program asked for.

use super::faults::Call;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests kept; beyond that the oldest are forgotten, which a test that counts would notice by the first number.
const KEPT: usize = 200_000;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Order number, from 1.
    pub number: u64,
    /// What was asked, by whom.
    pub call: Call,
    /// The answer's HTTP code; `None` while there is none, and for good if the connection was cut.
    pub code: Option<u16>,
}

#[derive(Debug, Default)]
struct State {
    first: u64,
    requests: std::collections::VecDeque<Request>,
}

/// The log; clones share it.
#[derive(Clone, Debug, Default)]
pub struct RequestLog(Arc<Mutex<State>>);

impl RequestLog {
    /// Notes a request and returns its number.
    pub fn begin(&self, call: Call) -> u64 {
        let mut state = self.state();
        if state.requests.len() >= KEPT {
            state.requests.pop_front();
            state.first += 1;
        }
        let number = state.first + state.requests.len() as u64 + 1;
        state.requests.push_back(Request { number, call, code: None });
        number
    }

    /// Notes the answer of a request.
    pub fn answered(&self, number: u64, code: u16) {
        let mut state = self.state();
        let at = number.checked_sub(state.first + 1).and_then(|at| usize::try_from(at).ok());
        if let Some(request) = at.and_then(|at| state.requests.get_mut(at)) {
            request.code = Some(code);
        }
    }

    /// All requests in order.
    pub fn all(&self) -> Vec<Request> {
        self.state().requests.iter().cloned().collect()
    }

    /// Forgets all requests; numbers go on.
    pub fn clear(&self) {
        let mut state = self.state();
        state.first += state.requests.len() as u64;
        state.requests.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_the_log_was_cleared() {
        let log = RequestLog::default();
        log.begin(Call::default());
        log.clear();
        let number = log.begin(Call::default());
        log.answered(number, 201);
        assert_eq!(log.all(), [Request { number: 2, call: Call::default(), code: Some(201) }]);
    }
}
