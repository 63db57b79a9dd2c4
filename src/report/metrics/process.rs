//! `process_*` metrics, read from `/proc` under the names of Go's client library. A value that cannot be read keeps
//! its last state.

use prometheus::{Counter, Gauge, Registry};
use std::fs;

/// Kernel clock ticks a second, as user space sees them on every Linux this program is built for.
const TICKS: f64 = 100.0;
/// What "unlimited" is in Go's metric.
const UNLIMITED: f64 = 18_446_744_073_709_551_615.0;

/// The gauges and counters of the process.
pub(super) struct Process {
    cpu: Counter,
    open_files: Gauge,
    most_files: Gauge,
    resident: Gauge,
    virtual_bytes: Gauge,
    most_virtual: Gauge,
    started: Gauge,
    received: Counter,
    sent: Counter,
}

impl Process {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str| {
            let gauge = Gauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let counter = |name: &str, help: &str| {
            let counter = Counter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        Ok(Self {
            cpu: counter("process_cpu_seconds_total", "Seconds of processor time, user and system.")?,
            open_files: gauge("process_open_fds", "Open file descriptors.")?,
            most_files: gauge("process_max_fds", "Most file descriptors that may be open.")?,
            resident: gauge("process_resident_memory_bytes", "Bytes of resident memory.")?,
            virtual_bytes: gauge("process_virtual_memory_bytes", "Bytes of virtual memory.")?,
            most_virtual: gauge("process_virtual_memory_max_bytes", "Most bytes of virtual memory that there may be.")?,
            started: gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.")?,
            received: counter("process_network_receive_bytes_total", "Bytes received by the network namespace.")?,
            sent: counter("process_network_transmit_bytes_total", "Bytes sent by the network namespace.")?,
        })
    }

    pub(super) fn refresh(&self) {
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            self.open_files.set(f64::from(u32::try_from(files.count()).unwrap_or(u32::MAX)));
        }
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let limits = read("/proc/self/limits");
        set(&self.most_files, limit(&limits, "Max open files"));
        set(&self.most_virtual, limit(&limits, "Max address space"));
        let status = read("/proc/self/status");
        set(&self.resident, kibibytes(&status, "VmRSS:").map(|kib| kib * 1024.0));
        set(&self.virtual_bytes, kibibytes(&status, "VmSize:").map(|kib| kib * 1024.0));
        let stat = read("/proc/self/stat");
        raise(
            &self.cpu,
            stat_field(&stat, 14).zip(stat_field(&stat, 15)).map(|(user, system)| (user + system) / TICKS),
        );
        let boot = boot_time(&read("/proc/stat"));
        set(&self.started, boot.zip(stat_field(&stat, 22)).map(|(boot, ticks)| boot + ticks / TICKS));
        let netstat = read("/proc/self/net/netstat");
        raise(&self.received, octets(&netstat, "InOctets"));
        raise(&self.sent, octets(&netstat, "OutOctets"));
    }
}

fn set(gauge: &Gauge, value: Option<f64>) {
    if let Some(value) = value {
        gauge.set(value);
    }
}

/// Brings a counter up to a total. A total that went back (it never should) changes nothing.
fn raise(counter: &Counter, total: Option<f64>) {
    if let Some(more) = total.map(|total| total - counter.get()).filter(|more| *more > 0.0) {
        counter.inc_by(more);
    }
}

/// A field of proc(5)'s `stat`, counted from 1; the command name before them may contain anything.
fn stat_field(text: &str, field: usize) -> Option<f64> {
    text.rsplit_once(')')?.1.split_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
}

/// The soft limit of one line of `limits`.
fn limit(limits: &str, name: &str) -> Option<f64> {
    let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(UNLIMITED),
        number => number.parse().ok(),
    }
}

fn kibibytes(status: &str, name: &str) -> Option<f64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// A column of the `IpExt` table: one line of names, one of values.
fn octets(netstat: &str, name: &str) -> Option<f64> {
    let mut lines = netstat.lines().filter(|line| line.starts_with("IpExt:"));
    let column = lines.next()?.split_whitespace().position(|title| title == name)?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Process, UNLIMITED, boot_time, kibibytes, limit, octets, stat_field};
    use prometheus::Registry;

    #[test]
    fn stat_is_read_behind_any_command_name() {
        let text = "7 (a) b (c)) S 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 3 0 1000 4096000 250 1";
        assert_eq!(
            (stat_field(text, 14), stat_field(text, 15), stat_field(text, 22)),
            (Some(150.0), Some(50.0), Some(1000.0))
        );
    }

    #[test]
    fn limits_are_found_by_name() {
        let limits =
            "Limit Soft Hard\nMax address space   unlimited  unlimited bytes\nMax open files  1024  4096  files\n";
        assert_eq!(
            (limit(limits, "Max open files"), limit(limits, "Max address space"), limit(limits, "Max cats")),
            (Some(1024.0), Some(UNLIMITED), None)
        );
    }

    #[test]
    fn memory_and_boot_time_are_found_by_name() {
        assert_eq!(kibibytes("Name:\tx\nVmRSS:\t    1234 kB\n", "VmRSS:"), Some(1234.0));
        assert_eq!(boot_time("cpu 1\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(boot_time("cpu 1\n"), None);
    }

    #[test]
    fn network_bytes_are_found_by_column() {
        let text = "TcpExt: A InOctets\nTcpExt: 1 2\nIpExt: A InOctets OutOctets\nIpExt: 3 4 5\n";
        assert_eq!((octets(text, "InOctets"), octets(text, "OutOctets")), (Some(4.0), Some(5.0)));
    }

    #[test]
    fn this_process_can_be_read() {
        let process = Process::register(&Registry::new()).expect("names are constants");
        process.refresh();
        assert!(process.resident.get() > 1e5 && process.started.get() > 1e9 && process.open_files.get() > 2.0);
    }
}
