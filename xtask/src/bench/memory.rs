//! `cargo xtask bench memory`: the most memory that a run of the default suite has in use, all endpoints included.
//!
//! What is counted is the proportional set size (proc(5), smaps_rollup): memory that processes share counts once.

use super::ipcmark::Ipcmark;
use super::setup::numbers;
use std::fs::read_to_string;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// How often the memory of processes is read.
const EVERY: Duration = Duration::from_millis(250);

/// What a run and its endpoints had in use at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct InUse {
    run_kib: u64,
    endpoints_kib: u64,
    endpoints: usize,
}

impl InUse {
    fn all_kib(self) -> u64 {
        self.run_kib + self.endpoints_kib
    }
}

/// Measures while the default suite runs. Argument: the seconds of the run (60).
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let [seconds] = numbers(arguments, [60])?;
    let ipcmark = Ipcmark::build("bench-memory")?;
    let mut command = std::process::Command::new(&ipcmark.program);
    command.args(["run", "--time", &format!("{seconds}s")]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let (mut most, mut readings) = (InUse::default(), 0);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        let now = in_use(child.id());
        readings += 1;
        if now.all_kib() > most.all_kib() {
            most = now;
        }
        std::thread::sleep(EVERY);
    };
    if !status.success() {
        return Err(format!("{command:?}: {status}"));
    }
    println!(
        "at most {:.1} MB: the run {:.1} MB, its {} endpoints {:.1} MB; the most of {readings} readings",
        megabytes(most.all_kib()),
        megabytes(most.run_kib),
        most.endpoints,
        megabytes(most.endpoints_kib)
    );
    Ok(())
}

fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}

fn in_use(run: u32) -> InUse {
    let endpoints: Vec<u64> = children_of(run).into_iter().filter_map(proportional_kib).collect();
    InUse {
        run_kib: proportional_kib(run).unwrap_or(0),
        endpoints_kib: endpoints.iter().sum(),
        endpoints: endpoints.len(),
    }
}

/// The processes whose parent is `parent`, or one of its threads.
fn children_of(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| read_to_string(task.path().join("children")).ok());
    children
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// `None` of a process that has ended.
fn proportional_kib(process: u32) -> Option<u64> {
    let rollup = read_to_string(Path::new("/proc").join(process.to_string()).join("smaps_rollup")).ok()?;
    of_rollup(&rollup)
}

fn of_rollup(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proportional_size_is_read_of_a_rollup_and_of_this_process() {
        let rollup =
            "55f-7ff ---p 00000000 00:00 0 [rollup]\nRss:    10844 kB\nPss:     2154 kB\nPss_Anon: 3 kB\n";
        assert_eq!(of_rollup(rollup), Some(2154));
        assert_eq!(of_rollup("Rss: 1 kB"), None);
        assert!(proportional_kib(std::process::id()).is_some_and(|kib| kib > 0));
    }
}
