//! What an explanation stands on: what probes observed of a case, and what was measured of it and beside it.

use super::case_observations::CaseObservations;
use super::control_cases::ControlDifference;
use model::observation::profile::CallProfile;
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

    /// What was measured of the floor `name`, between this case's CPUs.
    pub(crate) fn floor(&self, name: &str) -> Option<&Record> {
        self.records
            .iter()
            .find(|record| record.case.spec.name == name && record.case.cpus == self.record.case.cpus)
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
