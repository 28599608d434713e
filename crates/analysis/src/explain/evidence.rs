//! What an explanation stands on: what probes observed of a case, and what was measured of it and beside it.

use super::case_observations::CaseObservations;
use super::control_cases::ControlDifference;
use crate::interval::MeanEstimate;
use model::observation::profile::CallProfile;
use model::observation::subsystem::Subsystem;
use model::record::Record;

/// All that is known of a case.
pub(crate) struct Evidence<'a> {
    pub(crate) observations: &'a CaseObservations,
    /// What was measured of it without probes.
    pub(crate) record: &'a Record,
    /// What was measured in the same rounds without probes: its control cases, and floors.
    pub(crate) records: &'a [Record],
    /// The calls of both endpoints.
    pub(crate) calls: Option<&'a [Vec<CallProfile>; 2]>,
}

impl Evidence<'_> {
    /// The record of the control case that differs in `difference`.
    pub(crate) fn control_case(&self, difference: ControlDifference) -> Option<&Record> {
        let case = self
            .observations
            .control_cases()
            .iter()
            .find(|(of, _)| *of == difference)
            .map(|(_, case)| case)?;
        self.records.iter().find(|record| record.case == *case && record.summary.is_some())
    }

    /// What an iteration spends in `subsystems`, by samples: their share of the CPU time of both endpoints, of which no more
    /// counts than the iteration takes. Nothing where samples do not name the kernel's functions.
    pub(crate) fn sampled_ns(&self, subsystems: &[Subsystem]) -> Option<MeanEstimate> {
        let summary = self.record.summary.as_ref()?;
        let of_ns = summary.cpu_ns().min(summary.iteration_ns.median);
        let samples = self.observations.samples().filter(|_| self.observations.names_kernel_functions())?;
        let share = samples.share_of(subsystems)?;
        let interval = share.interval.map(|(low, high)| (low * of_ns, high * of_ns));
        Some(MeanEstimate { mean: share.mean * of_ns, interval })
    }

    /// The system calls of both endpoints in an iteration.
    pub(crate) fn calls_an_iteration(&self) -> Option<f64> {
        Some(
            self.calls?
                .iter()
                .flatten()
                .map(|row| row.per_iteration)
                .fold(0.0, |sum, per_iteration| sum + per_iteration),
        )
    }
}
