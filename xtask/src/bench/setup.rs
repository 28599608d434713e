//! What every benchmark needs of the harness: a run directory, a clock, the topology, single trials.

use harness::clock::Calibration;
use harness::coordinator::run_directory::RunDirectory;
use harness::coordinator::schedule::{Trial, Trials};
use harness::coordinator::trials::EndpointTrials;
use harness::protocol::orders::Sizing;
use mechanisms::registry::CARDS;
use model::estimate::Estimate;
use model::topology::Topology;
use model::{Case, Endpoints, Pace, Peers, Placement, Size, Spec, Workload};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time that one ratio may take, and how well it is to be known.
pub const TIME: Duration = Duration::from_secs(15);
pub const PRECISION: f64 = 0.005;
/// What one trial measures.
pub const SLICE: Duration = Duration::from_millis(6);

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
            clock: self.calibration.record.source,
            directory: &self.directory,
            check: false,
            interrupted: &self.interrupted,
            timeout: Duration::from_secs(5),
            program: None,
        }
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
            peers: Peers::Pair,
            spec: Spec::parse(spec, CARDS).map_err(|invalid| invalid.to_string())?,
        })
    }

    /// What an iteration of `case` takes in trial `number`, which measures for `slice`.
    pub fn iteration_ns(&self, case: &Case, slice: Duration, number: u64) -> Result<f64, String> {
        let size = Sizing::Slice { slice_ns: slice.as_nanos() as u64, hint_ns: None };
        let yielded =
            self.trials().measure(case, size, number).map_err(|error| format!("{case}: {error}"))?;
        Ok(yielded.sample.iteration_ns())
    }
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
