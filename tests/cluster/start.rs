//! Starts that cannot go well: one clear line, the right exit code or patience, never a panic.

use crate::support::driver::Driver;
use crate::support::objects::{claim, class};
use crate::support::process::Process;
use crate::support::sidecar::Sidecar;
use crate::support::wait::{SOON, wait_until};
use crate::support::world::World;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Longest time until the first clear line about something that is waited for.
const TOLD: Duration = Duration::from_secs(12);

/// Exit code and output of the program with these arguments.
fn ran(world: &World, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-provisioner"));
    command.args(arguments).env_clear();
    let mut process = Process::start(command, &world.dir.join("ran.log"));
    let code = process.ends_within(SOON);
    (code, process.said())
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_bad_flags_end_with_two_and_one_line() {
    let world = World::new("flags");
    let cases: [(&[&str], &str); 5] = [
        (&["--timeout=banana"], "timeout"),
        (&["--timout=10s"], "--timeout"),
        (&["-csi-address=/x"], "csi-address"),
        (&["--worker-threads=none"], "worker-threads"),
        (&["--leader-election-lease-duration"], "leader-election-lease-duration"),
    ];
    for (arguments, word) in cases {
        let (code, said) = ran(&world, arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_bad_addresses_end_with_one_line_that_names_them() {
    let world = World::new("addresses");
    let kubeconfig = format!("--kubeconfig={}", world.plane.sidecar().display());
    let empty = world.dir.join("empty");
    fs::write(&empty, "").expect("a file");
    let empty = format!("--kubeconfig={}", empty.display());
    let socket = "--csi-address=/run/nobody";
    let cases: [(&[&str], i32, &str); 5] = [
        (&[&kubeconfig, "--csi-address=tcp://10.0.0.1:9000"], 1, "tcp://10.0.0.1:9000"),
        (&[&kubeconfig, "--csi-address=relative.sock"], 1, "relative.sock"),
        (&["--kubeconfig=/does/not/exist", socket], 255, "/does/not/exist"),
        (&[&empty, socket], 255, "empty"),
        (&[socket], 255, "--kubeconfig"),
    ];
    for (arguments, wanted, word) in cases {
        let (code, said) = ran(&world, arguments);
        assert_eq!(code, wanted, "{arguments:?}: {said}");
        let about: Vec<&str> = said.lines().filter(|line| line.contains(word)).collect();
        assert_eq!(about.len(), 1, "{arguments:?}: {said}");
        assert!(said.lines().count() <= 2 && !said.contains("panicked"), "{arguments:?}: {said}");
    }
}

/// A listener that is no driver: it reads, says something to everybody, and keeps all connections.
fn stranger(socket: &Path, words: &'static [u8]) {
    let listener = UnixListener::bind(socket).expect("a socket");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut buffer = [0; 1024];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                    if !words.is_empty() && stream.write_all(words).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_driver_that_is_none_is_waited_for_and_told_about() {
    let world = World::new("waiting");
    stranger(&world.dir.join("mute.sock"), b"");
    stranger(&world.dir.join("garbage.sock"), b"220 mail.example ESMTP\r\n\0\xff\xfe garbage garbage garbage\r\n");
    fs::write(world.dir.join("file.sock"), "no socket").expect("a file");
    let mut waiting: Vec<Sidecar> = ["mute", "garbage", "file", "absent"]
        .iter()
        .map(|name| {
            let socket = world.dir.join(format!("{name}.sock"));
            Sidecar::ours(&world, name, &socket).flag("--timeout=3s").flag("--v=0").started()
        })
        .collect();
    for sidecar in &mut waiting {
        sidecar.says("waiting for the CSI driver", TOLD);
    }
    thread::sleep(Duration::from_secs(5));
    for sidecar in &mut waiting {
        assert!(sidecar.runs(), "it keeps waiting: {}", sidecar.said());
        let said = sidecar.said();
        assert!(!said.contains("panicked"), "{said}");
        assert!(said.lines().count() <= 6, "it does not flood the log: {said}");
        sidecar.terminate();
    }
    for sidecar in &mut waiting {
        assert_eq!(sidecar.ends_within(Duration::from_secs(5)), 0, "{}", sidecar.said());
    }
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_driver_that_comes_late_is_served() {
    let world = World::new("late");
    world.create(class("fast"));
    world.create(claim("data"));
    let mut driver = Driver::bench(&world);
    let mut sidecar = world.sidecar(&driver);
    sidecar.says("waiting for the CSI driver", TOLD);
    driver.start();
    world.bound("data");
    world.settles_with(&driver, 1);
}

#[test]
#[ignore = "needs e2e/tools/bin: run e2e/run"]
fn cluster_unreachable_api_server_is_told_within_seconds_and_waited_for() {
    let world = World::new("unreachable");
    let driver = Driver::bench(&world).started();
    let kubeconfig = fs::read_to_string(world.plane.sidecar()).expect("a kubeconfig");
    let server = kubeconfig.split('"').find(|part| part.starts_with("https://")).expect("a server");
    // Nobody listens there: the port is reserved.
    let nowhere = kubeconfig.replace(server, "https://127.0.0.1:1");
    let path = world.dir.join("nowhere.kubeconfig");
    fs::write(&path, nowhere).expect("a kubeconfig");
    let flag = format!("--kubeconfig={}", path.display());
    let mut sidecar = Sidecar::ours(&world, "sidecar", &driver.socket()).flag(&flag).flag("--v=0").started();
    wait_until("it tells whom it cannot reach", TOLD, || {
        sidecar.said().lines().any(|line| line.contains("127.0.0.1:1") || line.contains("Connection refused"))
    });
    thread::sleep(Duration::from_secs(5));
    let said = sidecar.said();
    assert!(sidecar.runs() && !said.contains("panicked"), "{said}");
    assert!(said.lines().count() < 60, "it does not flood the log: {said}");
    sidecar.terminate();
    assert_eq!(sidecar.ends_within(SOON), 0);
}
