//! The shifts of one case between two sides: of its time, and of its time as a multiple of floors.

use super::chosen_pair::ChosenPair;
use super::references::Reference;
use super::run_variance::RunVariance;
use super::statistics::Shift;
use model::case::Case;
use model::floor::SYSCALL;
use model::workload::Workload;

/// The shifts of one case by which it is judged.
pub(super) struct CaseShifts<'a> {
    pub(super) time: Shift,
    /// As a multiple of its own floor, or of what stands in for it, with its name.
    pub(super) adjusted: Option<(&'a str, Shift)>,
    /// Whether the floor does as the case does.
    pub(super) floor_is_alike: bool,
    /// As multiples of other floors, with their names.
    pub(super) others: Vec<(&'a str, Shift)>,
}

impl<'a> CaseShifts<'a> {
    /// `None` where a side has too few trials.
    pub(super) fn of(pair: &ChosenPair<'_>, references: &[Reference<'a>]) -> Option<Self> {
        let time = pair.shift(|_, _, _| Some(1.0))?;
        let own = pair.shift(|_, _, sample| sample.floor_ns).map(|shift| ("its floor", shift));
        let floor_is_alike = own.is_some() && is_switch(pair.case);
        let mut others: Vec<(&str, Shift)> = references
            .iter()
            .filter(|reference| reference.resembles(pair.case))
            .filter_map(|reference| Some((reference.case.spec.name.as_str(), reference.shift(pair)?)))
            .collect();
        // A case without a floor of its own, such as an operation, is held against the bare system call.
        let stand_in = || others.iter().position(|(name, _)| *name == SYSCALL).map(|at| others.remove(at));
        let adjusted = own.or_else(stand_in);
        Some(Self { time, adjusted, floor_is_alike, others })
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

/// Whether an iteration of `case` hands over and back by switching on one CPU.
fn is_switch(case: &Case) -> bool {
    matches!(case.workload, Workload::Latency | Workload::Transfer)
        && case.cpus.is_some_and(|cpus| cpus.client == cpus.server)
}
