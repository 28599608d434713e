//! What measuring needs and must give back: the signals, the directory of the run, its clock. Trials are started from here;
//! which trials is for the harness's policies to say.

use crate::exit::Error;
use harness::clock::Calibration;
use harness::coordinator::address_layout::AddressLayout;
use harness::coordinator::plain_times::PlainTimes;
use harness::coordinator::remote::Remote;
use harness::coordinator::replay::ReplayBounds;
use harness::coordinator::run::RunFinish;
use harness::coordinator::run_directory::RunDirectory;
use harness::coordinator::trials::EndpointTrials;
use model::Invalid;
use model::record::{ClockRecord, Fact, RunEnd};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The system calls without which nothing can be measured, nor what was made be removed.
const NEEDED: &[&str] = &[
    "clock_getres",
    "clock_nanosleep",
    #[cfg(target_env = "gnu")]
    "clone3",
    "flock",
    "futex",
    "kill",
    "pipe2",
    "prctl",
    "sched_getaffinity",
    "sendmsg",
    "socketpair",
    "statx",
];

/// A measuring command from its first trial to its last. Its directory is removed when it is dropped; trials and collectors
/// borrow from it, so that they are gone by then.
#[derive(Debug)]
pub struct RunSession {
    stop: Arc<AtomicBool>,
    directory: RunDirectory,
    calibration: Calibration,
    ticks_at_start: Option<(u64, u64)>,
}

impl RunSession {
    /// Takes care of signals first: none may end this process while it has a directory. Then chooses the clock, which takes
    /// about 20 ms.
    pub fn open() -> Result<Self, Error> {
        sys::seccomp::require("measure", NEEDED)?;
        let stop = watch_signals()?;
        let directory = RunDirectory::create()?;
        let calibration = Calibration::choose(Path::new("/"));
        let ticks_at_start = harness::host::facts::steal_ticks(Path::new("/"));
        Ok(Self { stop, directory, calibration, ticks_at_start })
    }

    /// Starts trials, each of which may go `timeout` without a report. With `check`, every byte is checked in the timed phases
    /// too; without, in the warm-up alone. Endpoints of remote cases are on the sides of `remote`.
    pub fn trials<'a>(
        &'a self,
        check: bool,
        timeout: Duration,
        remote: Option<&'a Remote>,
    ) -> EndpointTrials<'a> {
        EndpointTrials { remote, layout: AddressLayout::Random, ..self.trials_of(None, check, timeout) }
    }

    /// The same of one side of a comparison, with the endpoints of another build, `program`: those of both sides have their
    /// memory at the same addresses.
    pub fn trials_of<'a>(
        &'a self,
        program: Option<&'a Path>,
        check: bool,
        timeout: Duration,
    ) -> EndpointTrials<'a> {
        EndpointTrials {
            program,
            clock: self.clock().source,
            directory: &self.directory,
            check,
            interrupted: &self.stop,
            timeout,
            time: None,
            plain_times: PlainTimes::default(),
            remote: None,
            layout: AddressLayout::Alike,
            drivers: None,
        }
    }

    /// What replays of scenarios need, which take so long, and in which nothing may happen for `timeout`.
    pub fn replays(&self, time: Duration, timeout: Duration) -> ReplayBounds<'_> {
        let (clock, directory) = (self.clock().source, &self.directory);
        ReplayBounds { clock, directory, interrupted: &self.stop, timeout, time }
    }

    /// The flag that ends trials: a signal sets it, and so does whoever finds that going on is of no use.
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Whether trials were ended by it.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Where names in the file system go.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// The id of the run.
    pub fn id(&self) -> &str {
        self.directory.id()
    }

    /// The clock that times iterations.
    pub fn clock(&self) -> &ClockRecord {
        &self.calibration.record
    }

    /// The last line of the results: how the run that came to `finish` ended, all trials with probes included.
    pub fn end(&self, finish: RunFinish) -> RunEnd {
        let stolen = self.ticks_at_start.zip(harness::host::facts::steal_ticks(Path::new("/")));
        let unknown = || Fact::Unknown("/proc/stat cannot be read".to_owned());
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        RunEnd {
            interrupted: self.is_stopped(),
            rounds: finish.rounds,
            elapsed_ns: ns(finish.elapsed),
            starting_ns: Some(ns(finish.starting)),
            stolen: stolen.map_or_else(unknown, |(before, after)| Fact::Known(stolen_share(before, after))),
            clock_drift: self.calibration.drift(),
        }
    }
}

/// The share of processor time that was stolen between two readings of its ticks: those stolen, and all.
fn stolen_share((stolen, all): (u64, u64), (stolen_after, all_after): (u64, u64)) -> f64 {
    stolen_after.saturating_sub(stolen) as f64 / all_after.saturating_sub(all).max(1) as f64
}

/// Refuses trials of `slice_ns` where `clock` makes fewer than 100 steps in that time.
pub fn check_slice(slice_ns: u64, clock: &ClockRecord) -> Result<(), Invalid> {
    const LEAST_STEPS: f64 = 100.0;
    if slice_ns as f64 >= clock.precision_ns * LEAST_STEPS {
        return Ok(());
    }
    Err(Invalid::new(
        format!(
            "a trial would measure for {slice_ns} ns, and the clock here steps by {} ns",
            clock.precision_ns
        ),
        "give it more --time, or fewer cases",
    ))
}

/// The flag that SIGINT, SIGTERM and SIGHUP set, from the first call on, before which they end the process, or are ignored where whoever
/// started it ignored them. A second SIGINT ends it at once; the janitor then removes its directory.
pub fn watch_signals() -> Result<Arc<AtomicBool>, Error> {
    use signal_hook::flag::{register, register_conditional_shutdown};
    static FLAG: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut known = FLAG.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(flag) = known.as_ref() {
        return Ok(Arc::clone(flag));
    }
    let flag = Arc::new(AtomicBool::new(false));
    let refuse = |error: std::io::Error| {
        sys::Failure::new("sigaction", "SIGINT", error.to_string(), "report this bug")
    };
    register_conditional_shutdown(SIGINT, 130, Arc::clone(&flag)).map_err(refuse)?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        register(signal, Arc::clone(&flag)).map_err(refuse)?;
    }
    Ok(Arc::clone(known.insert(flag)))
}

/// Makes a write beyond the limit of file sizes (`RLIMIT_FSIZE`) an error, as any other write that fails; by itself SIGXFSZ ends the
/// process without a word. It is handled and not ignored, so that programs which this one starts have it as they would without.
pub fn outlive_the_limit_of_file_sizes() {
    // Where that is refused, all else works.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::ClockSource;

    #[test]
    fn a_slice_of_less_than_a_hundred_steps_of_the_clock_is_refused() {
        let clock = ClockRecord {
            source: ClockSource::MonotonicRaw,
            reason: String::new(),
            precision_ns: 10.0,
            cost_ns: 20.0,
        };
        check_slice(1000, &clock).unwrap();
        let invalid = check_slice(999, &clock).unwrap_err();
        assert_eq!(invalid.problem, "a trial would measure for 999 ns, and the clock here steps by 10 ns");
    }

    #[test]
    fn the_stolen_share_is_of_the_time_between_the_readings() {
        assert_eq!(stolen_share((10, 100), (20, 200)), 0.1);
        assert_eq!(stolen_share((10, 100), (10, 100)), 0.0);
        // Ticks of a processor that went away are gone from the sum.
        assert_eq!(stolen_share((10, 100), (9, 90)), 0.0);
    }
}
