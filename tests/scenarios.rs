//! Every scenario file holds on the sandbox, with the sidecar that ships.

use csi_provisioner::sandbox::scenario::sandbox::SandboxStage;
use csi_provisioner::sandbox::scenario::{parse, runner};
use std::fs;
use std::path::PathBuf;

fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("e2e/scenarios");
    let entries = fs::read_dir(folder).expect("the folder of scenarios");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

#[test]
fn every_scenario_has_a_name_of_its_own_and_says_what_it_proves() {
    let files = files();
    assert!(!files.is_empty(), "no scenario in e2e/scenarios");
    for file in files {
        let scenario = parse(&fs::read_to_string(&file).expect("readable")).expect("valid");
        assert_eq!(Some(scenario.name.as_ref()), file.file_stem().and_then(|stem| stem.to_str()));
        assert!(scenario.proves.ends_with('.'), "{}: proves is a sentence", scenario.name);
        assert!(!scenario.steps.is_empty(), "{}: without steps it proves nothing", scenario.name);
    }
}

/// All at once: they mostly wait, and each has a world of its own.
#[test]
fn every_scenario_holds_on_the_sandbox() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    let failures: Vec<String> = runtime.block_on(async {
        let plays: Vec<_> = files().into_iter().map(|file| tokio::spawn(play(file))).collect();
        let mut failures = Vec::new();
        for play in plays {
            if let Err(failure) = play.await.expect("no panic") {
                failures.push(failure);
            }
        }
        failures
    });
    assert!(failures.is_empty(), "{} scenarios fail:\n{}", failures.len(), failures.join("\n\n"));
}

async fn play(file: PathBuf) -> Result<(), String> {
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let scenario = parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut stage = SandboxStage::start(&scenario).await.map_err(|error| format!("{}: {error:#}", scenario.name))?;
    let played = runner::play(&mut stage, &scenario, |_, _| {}).await;
    let stopped = stage.stop().await;
    played.map_err(|failure| failure.to_string())?;
    stopped.map_err(|error| format!("{}: at the stop: {error:#}", scenario.name))
}
