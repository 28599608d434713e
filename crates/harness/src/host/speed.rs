//! Speed readings of the idle host: how long the same short work takes on each CPU, over about a second. What they mean is for
//! the doctor to say.

use crate::clock::Clock;
use std::time::Duration;

/// The speed readings of one CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuReadings {
    /// The CPU.
    pub cpu: u32,
    /// What [`sys::speed::run_mix`] took each time.
    pub readings_ns: Vec<f64>,
}

/// How often each CPU is read, and how long nothing is done in between. A host with hundreds of CPUs takes a second more.
const ROUNDS: usize = 100;
const SPACING: Duration = Duration::from_millis(10);

/// Reads the speed of each of `cpus` by `clock`, for about a second. A CPU on which this process may not run has no readings, and none
/// has where no thread can be started.
pub fn read(clock: Clock, cpus: &[u32]) -> Vec<CpuReadings> {
    let mut all: Vec<CpuReadings> =
        cpus.iter().map(|cpu| CpuReadings { cpu: *cpu, readings_ns: Vec::new() }).collect();
    // A thread of its own is moved from CPU to CPU, so that the caller stays where it may run.
    std::thread::scope(|scope| {
        let read = || {
            for _ in 0..ROUNDS {
                for one in &mut all {
                    if sys::process::pin_to(one.cpu).is_ok() {
                        one.readings_ns.push(reading_ns(clock));
                    }
                }
                std::thread::sleep(SPACING);
            }
        };
        let _ = std::thread::Builder::new().spawn_scoped(scope, read);
    });
    all
}

fn reading_ns(clock: Clock) -> f64 {
    // The CPU was asleep: the first run fills its caches and lets its clock rise.
    sys::speed::run_mix();
    let start = clock.now();
    sys::speed::run_mix();
    clock.ns_between(start, clock.now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::ClockSource;

    #[test]
    fn each_cpu_that_may_be_used_is_read_as_often() {
        let host = crate::host::facts::read(std::path::Path::new("/"));
        let mut cpus: Vec<u32> = host.topology.cpus.iter().map(|cpu| cpu.id).collect();
        cpus.truncate(2);
        // No kernel has this CPU.
        cpus.push(u32::MAX);
        let all = read(Clock::new(ClockSource::MonotonicRaw), &cpus);
        assert_eq!(all.iter().map(|one| one.cpu).collect::<Vec<u32>>(), cpus);
        let (absent, present) = all.split_last().unwrap();
        assert!(present.iter().all(|one| one.readings_ns.len() == ROUNDS), "{all:?}");
        assert!(present.iter().flat_map(|one| &one.readings_ns).all(|ns| *ns > 0.0));
        assert!(absent.readings_ns.is_empty());
    }
}
