//! One folder per run, and nothing left running: the guardian process ends what a test process leaves behind, even if
//! that was killed.

use super::plane;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio, id};
use std::sync::{LazyLock, Mutex, PoisonError};

static RUN: LazyLock<Run> = LazyLock::new(Run::start);

struct Run {
    dir: PathBuf,
    guardian: Mutex<ChildStdin>,
}

impl Run {
    #[allow(clippy::zombie_processes, reason = "it outlives us: that is its purpose")]
    fn start() -> Self {
        let dir = std::env::temp_dir().join(format!("csi-cluster-{}", id()));
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(&dir).expect("a folder for this run");
        let mut guardian = Command::new(plane::repository().join("tests/support/guardian"))
            .arg(&dir)
            .arg(plane::script())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C ends the tests, not the one who cleans up after them.
            .process_group(0)
            .spawn()
            .expect("tests/support/guardian starts");
        let stdin = guardian.stdin.take().expect("it was piped");
        Self { dir, guardian: Mutex::new(stdin) }
    }
}

/// The folder of this run.
pub fn folder() -> &'static Path {
    &RUN.dir
}

/// Tells the guardian something, see there.
pub fn tell(line: &str) {
    let mut guardian = RUN.guardian.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(guardian, "{line}").ok();
}
