//! Trials without endpoints, and a clock that stands still but for them: what the tests of the policies run on.

use super::schedule::{RunClock, TimeBudget, Trials};
use super::trial_error::TrialError;
use crate::endpoint::sample::sample;
use crate::protocol::error::EndpointError;
use crate::protocol::orders::Sizing;
use crate::protocol::report::TrialReport;
use model::floor;
use model::observation::{EndpointObservation, Observation, ProbeRequest};
use model::record::Usage;
use model::{Case, Workload};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// How long each trial takes by the clock of these trials.
pub(super) const TRIAL_TIME: Duration = Duration::from_secs(1);
/// More time than any test takes.
pub(super) const LONG: Duration = Duration::from_secs(1 << 30);

/// How a trial answers: from how many there were before it, and its name, to what an iteration takes.
type Answer<'a> = &'a dyn Fn(usize, &str) -> Result<f64, TrialError>;

/// Trials that answer what a test has them answer, and note what was asked of them.
pub(super) struct FakeTrials<'a> {
    answer: Answer<'a>,
    /// The name of each trial: its mechanism, and its probe behind a plus.
    pub(super) names: RefCell<Vec<String>>,
    /// The size of each trial.
    pub(super) sizes: RefCell<Vec<Sizing>>,
    /// After how many trials the run is interrupted.
    interrupted_after: Cell<usize>,
}

impl<'a> FakeTrials<'a> {
    pub(super) fn new(answer: Answer<'a>) -> Self {
        Self {
            answer,
            names: RefCell::default(),
            sizes: RefCell::default(),
            interrupted_after: Cell::new(usize::MAX),
        }
    }

    pub(super) fn interrupted_after(self, trials: usize) -> Self {
        self.interrupted_after.set(trials);
        self
    }

    /// A budget of `time` by the clock of these trials.
    pub(super) fn budget(&self, time: Duration) -> TimeBudget<'_> {
        TimeBudget { clock: self, time }
    }

    pub(super) fn count(&self) -> usize {
        self.names.borrow().len()
    }

    /// The names of all trials, with blanks between them.
    pub(super) fn order(&self) -> String {
        self.names.borrow().join(" ")
    }

    fn trial(&self, name: String, size: Sizing, number: u64) -> Result<f64, TrialError> {
        let before = self.count();
        assert_eq!(number, before as u64, "trials are numbered one after the other");
        let answer = (self.answer)(before, &name);
        self.names.borrow_mut().push(name);
        self.sizes.borrow_mut().push(size);
        answer
    }
}

impl Trials for FakeTrials<'_> {
    fn measure(&self, case: &Case, size: Sizing, number: u64) -> Result<TrialReport, TrialError> {
        let iteration_ns = self.trial(case.spec.name.clone(), size, number)?;
        let sample = sample(10, 10.0 * iteration_ns, Usage::default(), None);
        Ok(TrialReport { sample, settings: Vec::new(), iteration_times: Vec::new(), observation: None })
    }

    fn observe(
        &self,
        case: &Case,
        size: Sizing,
        number: u64,
        request: &ProbeRequest,
    ) -> Result<Observation, TrialError> {
        let probe = request.probe.map_or(String::new(), |probe| format!("+{probe}"));
        let iteration_ns = self.trial(format!("{}{probe}", case.spec.name), size, number)?;
        Ok(Observation {
            iterations: 10,
            elapsed_ns: 10.0 * iteration_ns,
            iteration_ends_ns: Vec::new(),
            client: EndpointObservation::default(),
            server: None,
        })
    }

    fn is_interrupted(&self) -> bool {
        self.count() >= self.interrupted_after.get()
    }
}

impl RunClock for FakeTrials<'_> {
    fn elapsed(&self) -> Duration {
        TRIAL_TIME * self.count() as u32
    }
}

/// A case called `name`, whose floor is a hand-over alone.
pub(super) fn case(name: &str) -> Case {
    Case { workload: Workload::Latency, ..floor::operation(name, 0) }
}

/// A failure of an endpoint that says `answer`.
pub(super) fn failure(answer: &str) -> TrialError {
    TrialError::Endpoint(EndpointError::bug("send", "the mechanism", answer))
}
