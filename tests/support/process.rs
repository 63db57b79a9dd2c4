//! Programs under test: started in their own process group, with a log file, ended with the test.

use super::guard;
use super::wait::eventually;
use std::fs::{self, OpenOptions};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A running program.
pub struct Process {
    child: Child,
    log: PathBuf,
    start: usize,
}

impl Process {
    /// Starts a program; what it says is appended to `log`.
    pub fn start(mut command: Command, log: &Path) -> Self {
        let output = OpenOptions::new().create(true).append(true).open(log).expect("a log file");
        let start = output.metadata().map_or(0, |facts| usize::try_from(facts.len()).unwrap_or(0));
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a second handle"))
            .stderr(output)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
        guard::tell(&format!("process {}", child.id()));
        Self { child, log: log.to_owned(), start }
    }

    /// Sends a signal by name, such as TERM.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -{name} failed");
    }

    /// Ends it without a chance to say goodbye.
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        guard::tell(&format!("ended {}", self.child.id()));
    }

    /// Whether it has not ended yet.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end: the exit code, or minus the number of the signal that ended it.
    #[track_caller]
    pub fn ends_within(&mut self, limit: Duration) -> i32 {
        let ended: ExitStatus = eventually("the process has ended", limit, || self.child.try_wait().ok().flatten());
        ended.code().unwrap_or_else(|| -ended.signal().unwrap_or(0))
    }

    /// What it said since this start.
    pub fn said(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(text.get(self.start..).unwrap_or_default()).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
