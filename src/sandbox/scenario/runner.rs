//! Walks a scenario's steps on a stage.

use super::condition::{Condition, Seen};
use super::stage::Stage;
use super::{Scenario, Step};
use std::fmt::Write;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time between two looks while something is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// A step that did not go as the scenario says.
#[derive(Debug, thiserror::Error)]
#[error("scenario {scenario}, step {number} ({step}): {what}")]
pub struct Failure {
    /// Name of the scenario.
    pub scenario: String,
    /// Number of the step, from 1; 0 = the objects at the start.
    pub number: usize,
    /// The step.
    pub step: String,
    /// What went wrong.
    pub what: String,
}

/// Plays the scenario; `tell` hears of each step before it is done.
pub async fn play(
    stage: &mut impl Stage,
    scenario: &Scenario,
    mut tell: impl FnMut(usize, &Step),
) -> Result<(), Failure> {
    let failure =
        |number: usize, step: String, what: String| Failure { scenario: scenario.name.clone(), number, step, what };
    for fault in &scenario.faults {
        stage.driver().script().add(fault.rule());
    }
    for object in &scenario.objects {
        let applied = stage.apply(object).await;
        applied.map_err(|error| failure(0, "objects".to_owned(), format!("{error:#}")))?;
    }
    for (number, step) in (1..).zip(&scenario.steps) {
        tell(number, step);
        let done = perform(stage, step, scenario.patience).await;
        if let Err(what) = done {
            return Err(failure(number, step.to_string(), what));
        }
    }
    Ok(())
}

async fn perform(stage: &mut impl Stage, step: &Step, patience: Duration) -> Result<(), String> {
    let acted = match step {
        Step::WaitFor(condition) => return wait(stage, condition, patience).await,
        Step::Expect(condition) => return look(stage, condition).await,
        Step::Stays(staying) => return stay(stage, &staying.that, staying.time).await,
        Step::Apply(objects) => {
            let mut applied = Ok(());
            for object in objects {
                applied = applied.and(stage.apply(object).await);
            }
            applied
        }
        Step::Delete(object) => stage.delete(object).await,
        Step::Fault(fault) => {
            stage.driver().script().add(fault.rule());
            Ok(())
        }
        Step::ClearFaults => {
            stage.driver().script().clear();
            Ok(())
        }
        Step::KillSidecar => stage.kill_sidecar().await,
        Step::StartSidecar => stage.start_sidecar().await,
        Step::RestartApiserver(away) => stage.restart_api(*away).await,
        Step::CutWatches => stage.cut_watches().await,
        Step::Sleep(time) => {
            sleep(*time).await;
            Ok(())
        }
    };
    acted.map_err(|error| format!("{error:#}"))
}

async fn wait(stage: &mut impl Stage, condition: &Condition, patience: Duration) -> Result<(), String> {
    let deadline = Instant::now() + patience;
    loop {
        let is = match look(stage, condition).await {
            Ok(()) => return Ok(()),
            Err(is) => is,
        };
        if Instant::now() >= deadline {
            return Err(format!("after {} s it is {is}{}", patience.as_secs_f64(), told(stage).await));
        }
        sleep(LOOK).await;
    }
}

async fn stay(stage: &mut impl Stage, condition: &Condition, time: Duration) -> Result<(), String> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        look(stage, condition).await?;
        sleep(LOOK).await;
    }
    look(stage, condition).await
}

async fn look(stage: &mut impl Stage, condition: &Condition) -> Result<(), String> {
    let unreadable = |error: anyhow::Error| format!("unreadable: {error:#}");
    let named = match condition.names() {
        Some(name) => stage.get(name).await.map_err(unreadable)?,
        None => None,
    };
    let claims = stage.list("persistentvolumeclaims").await.map_err(unreadable)?;
    let volumes = stage.list("persistentvolumes").await.map_err(unreadable)?;
    let events = stage.list("events").await.map_err(unreadable)?;
    condition.holds(&Seen { claims, volumes, events, named, driver: stage.driver() })
}

/// The events and driver calls so far, for whoever has to find out why.
async fn told(stage: &mut impl Stage) -> String {
    let mut text = String::new();
    for event in stage.list("events").await.unwrap_or_default() {
        let field = |pointer: &str| event.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
        let (about, reason, message) = (field("/involvedObject/name"), field("/reason"), field("/message"));
        // Writing into a text cannot fail.
        let _written = write!(text, "\n  event about {about}: {reason}: {message}");
    }
    for call in stage.driver().script().calls() {
        if !call.subject.is_empty() {
            let _written = write!(text, "\n  driver call {} {}", call.method, call.subject);
        }
    }
    text
}
