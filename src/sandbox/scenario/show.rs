//! `csi-sandbox scenario`: plays files one after the other and tells how they went.

use super::sandbox::SandboxStage;
use super::{parse, runner};
use crate::sandbox::console::say;
use anyhow::Context;

/// Plays the files; true if all hold.
pub async fn play_files(files: &[&String]) -> anyhow::Result<bool> {
    let mut all_hold = true;
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("{file}: cannot be read; give its path"))?;
        let scenario = parse(&text)
            .map_err(|error| anyhow::anyhow!("{file}: not a scenario: {error}; e2e/scenarios has examples"))?;
        say(&format!("{}: {}", scenario.name, scenario.proves));
        let mut stage = SandboxStage::start(&scenario).await?;
        let total = scenario.steps.len();
        let played = runner::play(&mut stage, &scenario, |number, step| {
            say(&format!("  {number}/{total} {step}"));
        })
        .await;
        let stopped = stage.stop().await;
        match played {
            Ok(()) => {
                stopped?;
                say("  holds");
            }
            Err(failure) => {
                all_hold = false;
                eprintln!("csi-sandbox: {failure}");
            }
        }
    }
    Ok(all_hold)
}
