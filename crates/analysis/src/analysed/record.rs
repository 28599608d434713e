//! A record with everything that is computed from it. How it is computed is in `results`.

use super::host::AnalysedSlice;
use model::floor::Floor;
use model::record::Record;
use model::summary::Summary;

/// A record with everything that is computed from it.
#[derive(Debug, Clone)]
pub struct AnalysedRecord<'a> {
    /// What the file says.
    pub record: &'a Record,
    /// What its samples say: the file's summary, or one computed from the samples where the file has none.
    pub summary: Option<Summary>,
    /// The least that the machine allows for the same work; absent where no floor is defined.
    pub floor: Option<AnalysedFloor>,
    /// The first of [`PERCENTILES`](super::PERCENTILES) in nanoseconds, all trials together, as far as enough iterations lie beyond them.
    pub percentiles_ns: Vec<u64>,
    /// Slices in the order of time with the host's speed beside them, no more than a picture can show; none where no speed
    /// readings were taken.
    pub slices: Vec<AnalysedSlice>,
}

/// The floor of a case.
#[derive(Debug, Clone)]
pub struct AnalysedFloor {
    /// What it consists of.
    pub floor: Floor,
    /// What it took in this run; absent where a part of it was not measured.
    pub iteration_ns: Option<f64>,
    /// The same where each endpoint sleeps until its peer on another CPU wakes it; absent also for cases that do not sleep.
    pub wake_iteration_ns: Option<f64>,
}
