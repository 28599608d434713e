//! What an explanation stands on: what probes observed of a case, and what was measured of it and beside it.

use super::case_observations::CaseObservations;
use super::control_cases::ControlDifference;
use model::observation::profile::CallProfile;
use model::record::Record;

/// All that is known of a case.
pub(crate) struct Evidence<'a> {
    pub(crate) observations: &'a CaseObservations,
    /// What was measured of it plainly.
    pub(crate) record: &'a Record,
    /// What was measured plainly in the same rounds: its control cases, and floors.
    pub(crate) records: &'a [Record],
    /// Both ends' calls.
    pub(crate) calls: Option<&'a [Vec<CallProfile>; 2]>,
}

impl Evidence<'_> {
    /// What was measured of the control case in `role`.
    pub(crate) fn control_case(&self, role: ControlDifference) -> Option<&Record> {
        let case =
            self.observations.control_cases().iter().find(|(of, _)| *of == role).map(|(_, case)| case)?;
        self.records.iter().find(|record| record.case == *case && record.summary.is_some())
    }

    /// What was measured of the floor `name`, between this case's CPUs.
    pub(crate) fn floor(&self, name: &str) -> Option<&Record> {
        self.records
            .iter()
            .find(|record| record.case.spec.name == name && record.case.cpus == self.record.case.cpus)
    }

    /// The system calls of both ends in an iteration.
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
