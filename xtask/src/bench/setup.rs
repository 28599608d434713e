//! What every benchmark needs of the harness: a run directory, a clock, the topology, trials of one slice.

use harness::clock::Calibration;
use harness::coordinator::address_layout::AddressLayout;
use harness::coordinator::plain_times::PlainTimes;
use harness::coordinator::run_directory::RunDirectory;
use harness::coordinator::schedule::Trials;
use harness::coordinator::trial_error::TrialError;
use harness::coordinator::trials::EndpointTrials;
use harness::protocol::orders::{Singly, Sizing, SliceOrders};
use harness::protocol::report::SliceReport;
use mechanisms::registry::CARDS;
use model::estimate::Estimate;
use model::observation::ProbeRequest;
use model::topology::Topology;
use model::{Case, CpuPair, Endpoints, Pace, Peers, Placement, Size, Spec, Workload};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time that one ratio may take, and how well it is to be known.
pub const TIME: Duration = Duration::from_secs(15);
pub const PRECISION: f64 = 0.005;
/// What one slice measures.
pub const SLICE: Duration = Duration::from_millis(1);

/// What every benchmark needs of the harness.
pub struct Bench {
    directory: RunDirectory,
    calibration: Calibration,
    topology: Topology,
    interrupted: AtomicBool,
}

impl Bench {
    pub fn new() -> Result<Self, String> {
        let root = Path::new("/");
        Ok(Self {
            directory: RunDirectory::create().map_err(|failure| failure.to_string())?,
            calibration: Calibration::choose(root),
            topology: harness::host::facts::read(root).topology,
            interrupted: AtomicBool::new(false),
        })
    }

    pub fn trials(&self) -> EndpointTrials<'_> {
        EndpointTrials {
            drivers: None,
            clock: self.calibration.record.source,
            directory: &self.directory,
            check: false,
            interrupted: &self.interrupted,
            timeout: Duration::from_secs(5),
            time: None,
            plain_times: PlainTimes::default(),
            program: None,
            remote: None,
            layout: AddressLayout::Random,
        }
    }

    pub fn cpus(&self, placement: Placement) -> Result<CpuPair, String> {
        self.topology.place(placement)?.ok_or_else(|| format!("{placement}: no CPUs"))
    }

    pub fn case(
        &self,
        spec: &str,
        workload: Workload,
        size: u64,
        placement: Placement,
    ) -> Result<Case, String> {
        Ok(Case {
            workload,
            size_bytes: Some(Size(size)),
            placement,
            cpus: self.topology.place(placement)?,
            endpoints: Endpoints::Processes,
            pace: Pace::BackToBack,
            inject: None,
            peers: Peers::Pair,
            spec: Spec::parse(spec, CARDS).map_err(|invalid| invalid.to_string())?,
        })
    }

    /// What a trial of one slice of `case` says, with the probe that `probe` names.
    pub fn trial(
        &self,
        case: &Case,
        size: Sizing,
        number: u64,
        probe: Option<&ProbeRequest>,
    ) -> Result<SliceReport, String> {
        let report = || {
            let trials = self.trials();
            let mut trial = trials.start(case, number, probe)?;
            let report = trial.slice(SliceOrders { size, singly: Singly::Omitted })?;
            trial.end()?;
            Ok(report)
        };
        report().map_err(|error: TrialError| format!("{case}: {error}"))
    }

    /// What an iteration of `case` takes in trial `number`, which measures for `slice`.
    pub fn iteration_ns(&self, case: &Case, slice: Duration, number: u64) -> Result<f64, String> {
        let report = self.trial(case, filling(slice, None), number, None)?;
        Ok(report.sample.iteration_ns())
    }
}

/// As many iterations as fill `slice`, if one took `hint_ns` before.
pub fn filling(slice: Duration, hint_ns: Option<f64>) -> Sizing {
    Sizing::Slice { slice_ns: slice.as_nanos() as u64, hint_ns }
}

pub fn shown(ratio: Option<Estimate>) -> String {
    match ratio {
        Some(Estimate { median, interval: Some((low, high)) }) => {
            format!("{median:.3} ({low:.3} to {high:.3})")
        }
        Some(Estimate { median, interval: None }) => format!("{median:.3} (too few rounds for an interval)"),
        None => "-".to_owned(),
    }
}

/// The numbers that are given, and the defaults of the others.
pub(super) fn numbers<const N: usize>(arguments: &[&str], defaults: [u64; N]) -> Result<[u64; N], String> {
    let mut numbers = defaults;
    for (number, text) in numbers.iter_mut().zip(arguments) {
        *number = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_given_have_their_defaults() {
        assert_eq!(numbers(&[], [2, 60]), Ok([2, 60]));
        assert_eq!(numbers(&["3"], [2, 60]), Ok([3, 60]));
        assert_eq!(numbers(&["3", "10"], [2, 60]), Ok([3, 10]));
        assert!(numbers(&["many"], [2, 60]).is_err());
    }
}
