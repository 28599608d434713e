//! What the kernel accounts to the calling thread whether or not anybody asks: CPU time, switches, faults, migrations. It is read before
//! and after, so that it costs the iterations nothing. It opens no event.

use std::fs::File;
use std::os::unix::fs::FileExt;
use sys::usage::{ThreadUsage, of_this_thread};
use sys::{Failure, OrFail};

/// What the scheduler says of the calling thread (proc(5)).
const SCHEDULER: &str = "/proc/thread-self/sched";
/// How often it was moved to another CPU.
const MIGRATIONS: &str = "se.nr_migrations";
/// How often it left its CPU.
const SWITCHES: &str = "nr_switches";
/// The whole of that file; a test finds our readings of it by this size.
const READING_BYTES: usize = 8192;

/// The accounting of a thread between two moments.
pub(crate) struct Accounted {
    scheduler: Option<File>,
    before: Reading,
    after: Reading,
}

/// The accounting at one moment.
struct Reading {
    usage: ThreadUsage,
    /// What the scheduler said: it is understood later.
    said: Vec<u8>,
}

impl Reading {
    fn empty() -> Self {
        Self { usage: of_this_thread(), said: vec![0; READING_BYTES] }
    }

    /// What the scheduler said of `name`.
    fn said_of(&self, name: &str) -> Option<u64> {
        let said = String::from_utf8_lossy(&self.said);
        let line = said.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_prefix(':')?.trim().parse().ok()
    }
}

impl Accounted {
    pub(crate) fn of_this_thread() -> Self {
        let mut accounted =
            Self { scheduler: File::open(SCHEDULER).ok(), before: Reading::empty(), after: Reading::empty() };
        // Some kernels have no such file (CONFIG_SCHED_DEBUG), or no such line in it.
        if accounted.begin().is_err() || accounted.before.said_of(MIGRATIONS).is_none() {
            accounted.scheduler = None;
        }
        accounted
    }

    /// Whether migrations are among what is accounted here.
    pub(crate) fn has_migrations(&self) -> bool {
        self.scheduler.is_some()
    }

    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        self.ask_scheduler(true)?;
        self.before.usage = of_this_thread();
        Ok(())
    }

    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.after.usage = of_this_thread();
        self.ask_scheduler(false)
    }

    fn ask_scheduler(&mut self, begins: bool) -> Result<(), Failure> {
        let Some(scheduler) = &self.scheduler else { return Ok(()) };
        let reading = if begins { &mut self.before } else { &mut self.after };
        scheduler.read_at(&mut reading.said, 0).or_fail("read", SCHEDULER).map(drop)
    }

    /// What was accounted between `begin` and `end`, by the names that perf_event_open(2) and its users have for it.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let (before, after) = (&self.before.usage, &self.after.usage);
        let between = |of: fn(&ThreadUsage) -> u64| of(after).saturating_sub(of(before));
        let said = |name| {
            let [after, before] = [self.after.said_of(name)?, self.before.said_of(name)?];
            self.has_migrations().then(|| after.saturating_sub(before))
        };
        // From the same reading as migrations, so that all events of the scheduler are those between the same two moments.
        let switches = said(SWITCHES)
            .unwrap_or_else(|| between(|usage| usage.voluntary_switches + usage.involuntary_switches));
        let mut counts = vec![("task-clock", between(|usage| usage.cpu_ns)), ("context-switches", switches)];
        counts.extend(said(MIGRATIONS).map(|migrations| ("cpu-migrations", migrations)));
        counts.push(("minor-faults", between(|usage| usage.minor_faults)));
        counts.push(("major-faults", between(|usage| usage.major_faults)));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scheduler_says_is_understood() {
        let said = "x (1, #threads: 1)\n----\nse.nr_migrations          :         17\nnr_switches : 3\n";
        let of =
            |said: &str, name| Reading { usage: ThreadUsage::default(), said: said.into() }.said_of(name);
        assert_eq!((of(said, MIGRATIONS), of(said, SWITCHES)), (Some(17), Some(3)));
        assert_eq!((of("nr_switches : 3", MIGRATIONS), of("", SWITCHES)), (None, None));
    }

    #[test]
    fn sleeps_and_faults_between_two_moments_are_counted() {
        const SLEEPS: u64 = 7;
        const PAGES: usize = 64;
        let mut accounted = Accounted::of_this_thread();
        accounted.begin().unwrap();
        for _ in 0..SLEEPS {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        std::hint::black_box(vec![1_u8; PAGES << 12]);
        accounted.end().unwrap();
        let counts = accounted.counts();
        let count_of = |name| counts.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
        assert!(
            count_of("context-switches") >= SLEEPS && count_of("minor-faults") >= PAGES as u64 / 2,
            "{counts:?}"
        );
        assert!(count_of("task-clock") > 0);
    }
}
