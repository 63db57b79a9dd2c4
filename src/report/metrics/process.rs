//! `process_*` metrics, read from `/proc`. A value that cannot be read keeps its last state.

use prometheus::{Gauge, Registry};
use std::fs;

/// Kernel clock ticks a second, as user space sees them on every Linux.
const TICKS: f64 = 100.0;
/// Bytes of a page on the platforms that this program is built for.
const PAGE: f64 = 4096.0;

/// The gauges and counters of the process.
pub(super) struct Process {
    cpu: Gauge,
    open_files: Gauge,
    most_files: Gauge,
    resident: Gauge,
    virtual_bytes: Gauge,
    started: Gauge,
}

impl Process {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let process = Self {
            cpu: Gauge::new("process_cpu_seconds_total", "Seconds of processor time, user and system.")?,
            open_files: Gauge::new("process_open_fds", "Open file descriptors.")?,
            most_files: Gauge::new("process_max_fds", "Most file descriptors that may be open.")?,
            resident: Gauge::new("process_resident_memory_bytes", "Bytes of resident memory.")?,
            virtual_bytes: Gauge::new("process_virtual_memory_bytes", "Bytes of virtual memory.")?,
            started: Gauge::new("process_start_time_seconds", "Start of the process, in seconds since 1970.")?,
        };
        for gauge in [
            &process.cpu,
            &process.open_files,
            &process.most_files,
            &process.resident,
            &process.virtual_bytes,
            &process.started,
        ] {
            registry.register(Box::new(gauge.clone()))?;
        }
        Ok(process)
    }

    pub(super) fn refresh(&self) {
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            self.open_files.set(f64::from(u32::try_from(files.count()).unwrap_or(u32::MAX)));
        }
        if let Some(most) = fs::read_to_string("/proc/self/limits").ok().as_deref().and_then(most_files) {
            self.most_files.set(most);
        }
        let boot = fs::read_to_string("/proc/stat").ok().as_deref().and_then(boot_time);
        let stat = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(stat);
        if let Some(stat) = stat {
            self.cpu.set(stat.cpu_ticks / TICKS);
            self.virtual_bytes.set(stat.virtual_bytes);
            self.resident.set(stat.resident_pages * PAGE);
            if let Some(boot) = boot {
                self.started.set(boot + stat.start_ticks / TICKS);
            }
        }
    }
}

struct Stat {
    cpu_ticks: f64,
    start_ticks: f64,
    virtual_bytes: f64,
    resident_pages: f64,
}

/// Fields 14, 15, 22, 23 and 24 of proc(5); the command name before them may contain anything.
fn stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some(Stat {
        cpu_ticks: number(14)? + number(15)?,
        start_ticks: number(22)?,
        virtual_bytes: number(23)?,
        resident_pages: number(24)?,
    })
}

fn most_files(limits: &str) -> Option<f64> {
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{boot_time, most_files, stat};

    #[test]
    fn stat_is_read_behind_any_command_name() {
        let text = "7 (a) b (c)) S 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 3 0 1000 4096000 250 1";
        let read = stat(text).expect("readable");
        assert_eq!(
            (read.cpu_ticks, read.start_ticks, read.virtual_bytes, read.resident_pages),
            (200.0, 1000.0, 4_096_000.0, 250.0)
        );
    }

    #[test]
    fn limits_and_boot_time_are_found_by_name() {
        assert_eq!(
            most_files("Limit Soft Hard\nMax open files            1024                 4096  files\n"),
            Some(1024.0)
        );
        assert_eq!(boot_time("cpu 1\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(boot_time("cpu 1\n"), None);
    }
}
