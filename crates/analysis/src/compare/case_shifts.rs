//! The shifts of one case between two sides: of its time, and of its time as a multiple of floors.

use super::chosen_pair::{ChosenPair, Multiples, shift_of};
use super::references::Reference;
use super::run_variance::RunVariance;
use super::statistics::Shift;
use model::case::Case;
use model::floor::{CACHE_LINE, SYSCALL};
use model::sample::Sample;
use model::workload::Workload;

/// What a case is held against, where it is no floor of that name.
const ITS_FLOOR: &str = "its floor";
const ITS_WAKE_FLOOR: &str = "its floor of a wake-up";
const SPEED_READINGS: &str = "the speed readings";

/// The shifts of one case by which it is judged.
pub(super) struct CaseShifts<'a> {
    pub(super) time: Shift,
    /// Whether the time is that at one speed of the host, which was read beside the slices.
    pub(super) is_read: bool,
    /// Beside the other mechanisms between the same CPUs.
    pub(super) beside_others: Option<Shift>,
    /// As a multiple of its own floor, or of what stands in for it, with its name. Of a case that sleeps on two CPUs it is the floor that
    /// wakes a sleeper: a cache line that changes hands between two that spin drifts by laws of its own.
    pub(super) adjusted: Option<(&'a str, Shift)>,
    /// Whether the floor does as the case does.
    pub(super) floor_is_alike: bool,
    /// The trials of that multiple.
    pub(super) multiples: Multiples,
    /// As multiples of other floors, with their names.
    pub(super) others: Vec<(&'a str, Shift)>,
}

impl<'a> CaseShifts<'a> {
    /// `None` where a side has too few trials.
    pub(super) fn from_pair(
        pair: &ChosenPair<'_>,
        beside_others: Option<Shift>,
        references: &[Reference<'a>],
    ) -> Option<Self> {
        let (case, time, sides) = (pair.case, pair.time?, &pair.slices);
        let of_floor = |by: &'a str, floor_ns: fn(&Sample) -> Option<f64>| {
            let multiples = sides.trials(|_, _, sample| floor_ns(sample));
            Some(((by, shift_of(&multiples)?), multiples))
        };
        let woken = of_floor(ITS_WAKE_FLOOR, |sample| sample.wake_floor_ns);
        let is_woken = woken.is_some();
        let resembles = |reference: &&Reference<'_>| {
            reference.resembles(case) && !(is_woken && reference.case.spec.name == CACHE_LINE)
        };
        let mut others: Vec<(&str, Shift)> = references
            .iter()
            .filter(resembles)
            .filter_map(|reference| Some((reference.case.spec.name.as_str(), reference.shift(sides)?)))
            .collect();
        let own = woken.or_else(|| of_floor(ITS_FLOOR, |sample| sample.floor_ns));
        let floor_is_alike = own.is_some() && (is_woken || is_switch(case));
        // A case without a floor of its own, such as an operation, is held against the speed of its CPU, or else against the bare
        // system call.
        let by_speed = || of_floor(SPEED_READINGS, reading_ns);
        let mut stand_in =
            || others.iter().position(|(name, _)| *name == SYSCALL).map(|at| others.remove(at));
        let (adjusted, multiples) = match own.or_else(by_speed) {
            Some((adjusted, multiples)) => (Some(adjusted), multiples),
            None => (stand_in(), Multiples::default()),
        };
        Some(Self { time, is_read: pair.is_read, beside_others, adjusted, multiples, floor_is_alike, others })
    }
}

impl CaseShifts<'_> {
    /// The probability that chance alone would have the case called different; `None` of a case without a floor, which never is.
    pub(super) fn p(&self, times: RunVariance, multiples: RunVariance) -> Option<f64> {
        let (_, adjusted) = self.adjusted?;
        let of_time = self.time.p(times);
        let by_floor_alone = if self.floor_is_alike { adjusted.p(multiples.doubled()) } else { 1.0 };
        Some(adjusted.p(multiples).max(of_time.min(by_floor_alone)))
    }
}

/// How long the reading of the client's CPU took beside `sample`.
fn reading_ns(sample: &Sample) -> Option<f64> {
    sample.speed.map(|speed| speed.client.mean_ns())
}

/// Whether an iteration of `case` hands over and back by switching on one CPU.
fn is_switch(case: &Case) -> bool {
    matches!(case.workload, Workload::Latency | Workload::Transfer)
        && case.cpus.is_some_and(|cpus| cpus.client == cpus.server)
}
