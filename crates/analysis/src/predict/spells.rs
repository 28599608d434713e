//! When a run was in a slow spell of its host: waking another CPU took much longer than in its calmest part.
//!
//! On a virtual machine such spells last from seconds to a minute, while what happens on one CPU takes as long as ever (docs/lab/choose.md).
//! What is measured in them says little of a mechanism.

use super::size_line::quantiles;
use crate::wander::{FEWEST_WINDOWS, Window, by_window, window_of};
use model::Sample;
use model::record::Record;
use std::collections::BTreeSet;

/// A window with fewer slices is taken to be calm.
const FEWEST_SLICES: usize = 5;
/// The share of windows that is calm in any case.
const CALM: f64 = 0.125;
/// How many times as long as in the calm ones round trips take in a slow one. Other windows of a busy host differed by up to 1.3.
const SLOWER: f64 = 1.5;

/// The slow windows of one run.
#[derive(Debug)]
pub(super) struct Spells {
    slow: BTreeSet<u64>,
}

impl Spells {
    /// Those of a run by its records of `round_trips` between two CPUs: by how long these took, each over what is usual of its case.
    pub(super) fn of<'a>(round_trips: impl Iterator<Item = &'a Record>) -> Self {
        let logs = |sample: &Sample| (sample.started_ns, sample.iteration_ns().ln());
        let windows = by_window(round_trips.map(|record| usable(record).map(logs).collect()));
        let level = |(at, logs): (u64, Vec<f64>)| Some((at, Window::of(&logs, FEWEST_SLICES)?.middle.exp()));
        let levels: Vec<(u64, f64)> = windows.into_iter().filter_map(level).collect();
        let (calm, _) = quantiles(levels.iter().map(|(_, level)| *level).collect(), CALM);
        let is_slow = |(at, level): (u64, f64)| (level > SLOWER * calm).then_some(at);
        let has_enough = levels.len() >= FEWEST_WINDOWS;
        Self { slow: levels.into_iter().filter(|_| has_enough).filter_map(is_slow).collect() }
    }

    /// The slices of `record` that were measured outside of spells; all of them where there is none.
    pub(super) fn calm_slices<'a>(&self, record: &'a Record) -> Vec<&'a Sample> {
        let calm: Vec<&Sample> =
            usable(record).filter(|sample| !self.slow.contains(&window_of(sample.started_ns))).collect();
        if calm.is_empty() { usable(record).collect() } else { calm }
    }
}

/// The slices in which something was done.
pub(super) fn usable(record: &Record) -> impl Iterator<Item = &Sample> {
    record.samples.iter().filter(|sample| sample.iterations > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wander::WINDOW_NS;
    use model::floor;
    use model::testing::{record, sample};

    /// Slices of a case, ten in a window, in windows `slow` of which round trips take four times as long.
    fn run(windows: std::ops::Range<u64>, slow: std::ops::Range<u64>) -> Record {
        let slices = (windows.start * 10..windows.end * 10).map(|at| {
            let longer = if slow.contains(&(at / 10)) { 4.0 } else { 1.0 };
            let noise = 1.0 + 0.02 * (at % 3) as f64;
            Sample { started_ns: at * WINDOW_NS / 10, ..sample(at as u32, 1000.0 * longer * noise, None) }
        });
        record(floor::operation("getpid", 0), slices.collect())
    }

    /// How many slices are kept of `round_trips`, and of `other` records of the same run.
    fn kept(round_trips: &[Record], other: &[Record]) -> Vec<usize> {
        let spells = Spells::of(round_trips.iter());
        round_trips.iter().chain(other).map(|record| spells.calm_slices(record).len()).collect()
    }

    #[test]
    fn what_was_measured_in_a_slow_spell_is_left_out_of_every_case() {
        assert_eq!(kept(&[run(0..20, 5..12)], &[run(0..20, 0..0)]), [130, 130]);
        // Most of a run may be slow.
        assert_eq!(kept(&[run(0..20, 0..15), run(0..20, 0..15)], &[]), [50, 50]);
    }

    #[test]
    fn a_calm_run_is_kept_whole_and_what_does_not_wake_another_cpu_tells_nothing() {
        assert_eq!(kept(&[run(0..20, 0..0)], &[run(0..20, 0..0)]), [200, 200]);
        assert_eq!(kept(&[], &[run(0..20, 5..12)]), [200]);
    }

    #[test]
    fn a_short_run_does_not_tell_what_is_slow() {
        assert_eq!(kept(&[run(0..5, 3..5)], &[]), [50]);
    }

    #[test]
    fn a_case_that_was_measured_in_a_spell_only_is_kept() {
        assert_eq!(kept(&[run(0..20, 5..12)], &[run(6..10, 0..0)]), [130, 40]);
    }
}
