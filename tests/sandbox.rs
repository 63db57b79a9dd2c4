//! The `csi-sandbox` program as people use it: real binary, real files, exit codes, what it prints.

use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn sandbox(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_csi-sandbox"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// Runs with a file of this content as standard input.
fn with_input(input: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_csi-sandbox"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads its input");
    child.wait_with_output().expect("it ends")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn claim(class: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec:\n  {class}\n  \
         accessModes: [ReadWriteOnce]\n  resources: {{requests: {{storage: 1Gi}}}}\n"
    )
}

#[test]
fn example_claims_are_bound_and_their_volumes_go_again() {
    let output = sandbox(&["run", "examples/claim.yaml", "--delete"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    for told in [
        "CreateVolume -> Ok",
        "Pending -> Bound to pvc-",
        "DeleteVolume -> Ok",
        "2 of 2 claims Bound",
        "all volumes gone",
    ] {
        assert!(text.contains(told), "{told:?} is missing in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colour outside a terminal");
}

#[test]
fn late_binding_example_is_bound_when_its_pod_is_scheduled() {
    let output = sandbox(&["run", "examples/late-binding.yaml", "--segment", "topology.sandbox/zone=a", "--delete"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.contains("node sandbox-node chosen"), "{text}");
}

#[test]
fn late_claim_without_a_pod_waits_in_vain_unless_the_node_is_chosen_for_it() {
    let class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: near}\n\
                 provisioner: sandbox.csi.dev\nvolumeBindingMode: WaitForFirstConsumer\n---\n";
    let file = format!("{class}{}", claim("storageClassName: near"));
    let output = with_input(&file, &["run", "-", "--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(1));
    let why = stderr(&output);
    assert!(why.contains("default/data is Pending: WaitForFirstConsumer"), "{why}");
    let output = with_input(&file, &["run", "-", "--select-node"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn claim_without_a_class_gets_the_one_that_is_added() {
    let output = with_input(&claim("volumeMode: Block"), &["run", "-"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.contains("StorageClass csi-sandbox added"), "{text}");
}

#[test]
fn unknown_class_is_refused_with_file_document_and_field() {
    let output = with_input(&format!("---\n{}", claim("storageClassName: nowhere")), &["run", "-"]);
    assert_eq!(output.status.code(), Some(1));
    let why = stderr(&output);
    assert!(
        why.contains("-, document 1: spec.storageClassName: StorageClass \"nowhere\" of claim \"data\" does not exist"),
        "{why}"
    );
}

#[test]
fn class_of_another_driver_is_refused_with_the_way_out() {
    let class =
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: other.dev\n---\n";
    let output = with_input(&format!("{class}{}", claim("storageClassName: fast")), &["run", "-"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--driver-name other.dev"), "{}", stderr(&output));
}

#[test]
fn broken_yaml_is_refused_with_its_line() {
    let output = with_input("kind: [\n", &["run", "-"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("-, document 1, line "), "{}", stderr(&output));
}

#[test]
fn refused_object_names_the_field() {
    let output = with_input(&claim("storageClassName: csi-sandbox").replace("1Gi", "-1Gi"), &["run", "-"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("spec.resources"), "{}", stderr(&output));
}

#[test]
fn missing_file_is_told_with_the_next_step() {
    let output = sandbox(&["run", "no-such-file.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no-such-file.yaml: "), "{}", stderr(&output));
}

#[test]
fn json_output_is_one_document_and_nothing_else() {
    let output = sandbox(&["run", "examples/claim.yaml", "--delete", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["ok"], true);
    assert_eq!(document["claims"][0]["phase"], "Bound");
    assert_eq!(document["volumesLeft"].as_array().map(Vec::len), Some(0));
    assert!(document["timeline"].as_array().is_some_and(|lines| lines.len() > 10));
}

#[test]
fn json_output_of_a_failure_says_why() {
    let output = with_input("kind: [\n", &["run", "-", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["ok"], false);
    assert!(document["reason"].as_str().is_some_and(|reason| reason.contains("document 1")));
}

#[test]
fn volume_that_is_retained_fails_a_run_with_delete() {
    let class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: keep}\n\
                 provisioner: sandbox.csi.dev\nreclaimPolicy: Retain\n---\n";
    let output = with_input(&format!("{class}{}", claim("storageClassName: keep")), &["run", "-", "--delete"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("its reclaim policy is Retain"), "{}", stderr(&output));
}

#[test]
fn wrong_arguments_end_with_code_2() {
    assert_eq!(sandbox(&["run"]).status.code(), Some(2));
    assert_eq!(sandbox(&["dance"]).status.code(), Some(2));
}

#[test]
fn driver_that_is_not_there_is_told_with_its_address() {
    let output = sandbox(&["run", "examples/claim.yaml", "--driver", "unix:///nowhere/csi.sock"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no CSI driver answers at /nowhere/csi.sock"), "{}", stderr(&output));
}

#[test]
fn driver_of_another_process_serves_a_run() {
    let socket = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("other-driver.sock");
    let mut driver = Command::new(env!("CARGO_BIN_EXE_csi-sandbox"))
        .args(["driver", "--socket"])
        .arg(&socket)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the driver starts");
    let told = driver.stderr.take().expect("piped");
    // It says so once it serves.
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(told), &mut line).expect("readable");
    let output =
        sandbox(&["run", "examples/claim.yaml", "--delete", "--driver", &format!("unix://{}", socket.display())]);
    driver.kill().expect("it runs until then");
    driver.wait().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn scenario_file_is_played_step_by_step() {
    let output = sandbox(&["scenario", "e2e/scenarios/block.yaml"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.contains("1/6 wait for claim default/data Bound") && text.contains("  holds"), "{text}");
}

#[test]
fn scenario_that_does_not_hold_tells_step_and_state() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wrong.yaml");
    let scenario = "name: wrong\nproves: nothing.\nsteps:\n- expect: {volumes-in-api: 1}\n";
    std::fs::write(&file, scenario).expect("writable");
    let output = sandbox(&["scenario", file.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(1));
    let why = stderr(&output);
    assert!(why.contains("scenario wrong, step 1 (expect 1 volumes in the API): 0"), "{why}");
}
