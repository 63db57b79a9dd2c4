//! CSI drivers that nobody of this project wrote the core of: Kubernetes' own mock driver, and the bench driver with its
//! control endpoint. Both take fault rules (e2e/tools/script) and log their calls.

use super::plane;
use super::process::Process;
use super::wait::{SOON, wait_until};
use super::world::World;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One call to a driver. A call that still runs has neither outcome nor reply.
#[derive(Clone, Debug)]
pub struct Call {
    /// Name of the volume for a creation, else the identifier.
    pub key: String,
    /// The request, in protobuf JSON.
    pub request: Value,
    /// The answer, if there was one.
    pub reply: Value,
    /// reply, error, or the name of the fault; empty while it runs.
    pub outcome: String,
    start: String,
}

impl Call {
    fn from(line: &Value) -> Self {
        let text = |field: &str| line[field].as_str().unwrap_or("").to_owned();
        let (request, reply) = (line["request"].clone(), line["reply"].clone());
        Self { key: text("key"), request, reply, outcome: text("outcome"), start: text("start") }
    }

    /// When it came in.
    pub fn second_of_day(&self) -> f64 {
        let time = self.start.split_once('T').map_or("", |(_, time)| time.trim_end_matches('Z'));
        time.split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().expect("a time"))
    }
}

/// A driver. The same one may be started again and again: the bench driver keeps its volumes in a journal.
pub struct Driver {
    program: PathBuf,
    flags: Vec<String>,
    dir: PathBuf,
    process: Option<Process>,
    controlled: bool,
}

impl Driver {
    /// The bench driver.
    pub fn bench(world: &World) -> Self {
        Self::bench_in(world, "driver")
    }

    /// The bench driver on a node, with storage of its own.
    pub fn on_node(world: &World, node: &str) -> Self {
        Self::bench_in(world, &format!("driver-{node}")).flag("--topology").flag(&format!("--node={node}"))
    }

    fn bench_in(world: &World, folder: &str) -> Self {
        let mut driver = Self::new(world, folder, "bench-driver", true);
        driver.flags.push(format!("--state={}", driver.path("state").display()));
        driver.flags.push(format!("--control=unix:{}", driver.path("control").display()));
        driver
    }

    /// Kubernetes' mock driver.
    pub fn mock(world: &World) -> Self {
        let mut driver = Self::new(world, "driver", "mock-driver-go", false);
        driver.flags.push(format!("--script={}", driver.path("script").display()));
        driver
    }

    fn new(world: &World, folder: &str, program: &str, controlled: bool) -> Self {
        let dir = world.dir.join(folder);
        fs::create_dir_all(&dir).expect("a folder for the driver");
        let program = plane::tool(program);
        let mut driver = Self { program, flags: Vec::new(), dir, process: None, controlled };
        driver.flags.push(format!("--name={}", world.driver_name()));
        driver.flags.push(format!("--socket={}", driver.socket().display()));
        driver.flags.push(format!("--log={}", driver.path("calls").display()));
        driver
    }

    /// With one more flag; later ones win.
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Starts it.
    pub fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Starts it, again, and waits until it listens.
    pub fn start(&mut self) {
        fs::remove_file(self.socket()).ok();
        let mut command = Command::new(&self.program);
        command.args(&self.flags);
        self.process = Some(Process::start(command, &self.path("output")));
        let socket = self.socket();
        wait_until("the driver listens", SOON, || UnixStream::connect(&socket).is_ok());
    }

    /// Starts it again with one more flag.
    pub fn start_with(&mut self, flag: &str) {
        self.flags.push(flag.to_owned());
        self.start();
    }

    /// Ends it without a chance to say goodbye.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Whether it has not ended yet.
    pub fn runs(&mut self) -> bool {
        self.process.as_mut().is_some_and(Process::runs)
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.path("csi.sock")
    }

    /// Replaces all fault rules.
    pub fn script(&self, rules: &Value) {
        if self.controlled {
            self.ask("POST /script", &rules.to_string());
        } else {
            fs::write(self.path("script.new"), rules.to_string()).expect("a script");
            fs::rename(self.path("script.new"), self.path("script")).expect("a script");
        }
    }

    /// Calls of a method since the first start, oldest first. Those that still run are seen of the bench driver only,
    /// and those that a killed driver never ended of none.
    pub fn calls(&self, method: &str) -> Vec<Call> {
        let running = self.controlled && UnixStream::connect(self.path("control")).is_ok();
        let running = if running { self.ask(&format!("GET /calls?method={method}"), "") } else { Value::Null };
        let log = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let mut calls: Vec<Call> = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["method"] == method)
            .map(|line| Call::from(&line))
            .collect();
        for call in running.as_array().into_iter().flatten().map(Call::from) {
            if !calls.iter().any(|one| one.start == call.start && one.key == call.key) {
                calls.push(call);
            }
        }
        calls.sort_by(|a, b| a.start.cmp(&b.start));
        calls
    }

    /// Waits until it has ended what it was asked for, whoever asked. It does not keep two calls about one volume apart,
    /// as the interface asks of drivers: an old creation that runs on would make a deleted volume anew.
    #[track_caller]
    pub fn rests(&self) {
        wait_until("the driver has ended its calls", SOON, || {
            let calls = ["CreateVolume", "DeleteVolume"].map(|method| self.calls(method));
            calls.iter().flatten().all(|call| !call.outcome.is_empty())
        });
    }

    /// Identifiers of its volumes.
    pub fn volumes(&self) -> BTreeSet<String> {
        if self.controlled {
            let volumes = self.ask("GET /volumes", "");
            return volumes.as_array().into_iter().flatten().map(|one| id(one, "/id")).collect();
        }
        let mut volumes: BTreeSet<String> = answered(&self.calls("CreateVolume")).map(created).collect();
        for call in answered(&self.calls("DeleteVolume")) {
            volumes.remove(&call.key);
        }
        volumes
    }

    /// Loses the volume of this name, while the driver does not run.
    pub fn forgets(&self, name: &str) {
        let path = self.path("state");
        let journal = fs::read_to_string(&path).expect("a journal");
        let mut volumes = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let volume = volumes.rfind(|one| one["name"] == name).expect("it had that volume");
        let gone = serde_json::json!({"id": volume["id"], "name": name, "gone": true});
        fs::write(&path, format!("{journal}{gone}\n")).expect("a journal");
    }

    fn ask(&self, request: &str, body: &str) -> Value {
        let mut stream = UnixStream::connect(self.path("control")).expect("the driver's control endpoint answers");
        // Of this version the answer is not chunked and ends with the connection.
        write!(stream, "{request} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers in UTF-8");
        let (head, body) = answer.split_once("\r\n\r\n").expect("it speaks HTTP");
        assert!(head.contains(" 200 "), "{request}: {head}\n{body}");
        serde_json::from_str(body).expect("it answers in JSON")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// What a driver's folder tells about its calls, for a look after a failed test.
pub fn log_of(world: &Path) -> String {
    fs::read_to_string(world.join("driver/calls")).unwrap_or_default()
}

fn answered(calls: &[Call]) -> impl Iterator<Item = &Call> {
    calls.iter().filter(|call| call.outcome == "reply")
}

fn created(call: &Call) -> String {
    id(&call.reply, "/volume/volumeId")
}

fn id(value: &Value, pointer: &str) -> String {
    super::api::text(value, pointer).to_owned()
}
