//! Trials without endpoints, and a clock that stands still but for their slices: what the tests of the policies run on.

use super::schedule::{RunClock, TimeBudget, Trial, Trials};
use super::trial_error::TrialError;
use crate::protocol::error::EndpointError;
use crate::protocol::orders::{Singly, Sizing, SliceOrders};
use crate::protocol::report::SliceReport;
use model::floor;
use model::observation::{
    CpuTrace, EndpointObservation, EventSet, Observation, ProbeRequest, RecordingWay, SamplingRate,
};
use model::record::{Sample, Usage};
use model::{Case, Workload};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// How long each slice takes by the clock of these trials.
pub(super) const SLICE_TIME: Duration = Duration::from_secs(1);
/// More time than any test takes.
pub(super) const LONG: Duration = Duration::from_secs(1 << 30);

/// How a slice answers: from how many there were before it, and its name, to what an iteration takes.
type Answer<'a> = &'a dyn Fn(usize, &str) -> Result<f64, TrialError>;

/// Trials that answer what a test has them answer, and note what was asked of them.
pub(super) struct FakeTrials<'a> {
    answer: Answer<'a>,
    /// The name of each slice: its mechanism, and its probe behind a plus.
    pub(super) names: RefCell<Vec<String>>,
    /// The orders of each slice.
    pub(super) orders: RefCell<Vec<SliceOrders>>,
    /// The name of each trial that was started.
    pub(super) started: RefCell<Vec<String>>,
    /// How often samples were to be taken in each trial that was started to be observed.
    pub(super) asked_sampling: RefCell<Vec<SamplingRate>>,
    /// How many slices there had been each time that a disturbance was waited out.
    pub(super) waited_after: RefCell<Vec<usize>>,
    last_number: Cell<Option<u64>>,
    /// How many trials are alive, and the most there were.
    alive: Cell<usize>,
    pub(super) most_were_alive: Cell<usize>,
    most_alive: Cell<usize>,
    /// After how many slices the run is interrupted.
    interrupted_after: Cell<usize>,
}

/// One of them.
struct FakeTrial<'a> {
    trials: &'a FakeTrials<'a>,
    name: String,
    is_observed: bool,
}

impl<'a> FakeTrials<'a> {
    pub(super) fn new(answer: Answer<'a>) -> Self {
        Self {
            answer,
            names: RefCell::default(),
            orders: RefCell::default(),
            started: RefCell::default(),
            asked_sampling: RefCell::default(),
            waited_after: RefCell::default(),
            last_number: Cell::default(),
            alive: Cell::default(),
            most_were_alive: Cell::default(),
            most_alive: Cell::new(usize::MAX),
            interrupted_after: Cell::new(usize::MAX),
        }
    }

    pub(super) fn interrupted_after(self, slices: usize) -> Self {
        self.interrupted_after.set(slices);
        self
    }

    pub(super) fn with_most_alive(self, trials: usize) -> Self {
        self.most_alive.set(trials);
        self
    }

    /// A budget of `time` by the clock of these trials.
    pub(super) fn budget(&self, time: Duration) -> TimeBudget<'_> {
        TimeBudget { clock: self, time }
    }

    /// How many slices there were.
    pub(super) fn count(&self) -> usize {
        self.names.borrow().len()
    }

    /// The names of all slices, with blanks between them.
    pub(super) fn order(&self) -> String {
        self.names.borrow().join(" ")
    }
}

impl Trials for FakeTrials<'_> {
    fn start<'s>(
        &'s self,
        case: &Case,
        number: u64,
        probe: Option<&ProbeRequest>,
    ) -> Result<Box<dyn Trial + 's>, TrialError> {
        assert!(self.last_number.get().is_none_or(|last| number > last), "no two trials have one number");
        self.last_number.set(Some(number));
        let suffix =
            probe.and_then(|request| request.probe).map_or(String::new(), |probe| format!("+{probe}"));
        let name = format!("{}{suffix}", case.spec.name);
        self.started.borrow_mut().push(name.clone());
        self.asked_sampling.borrow_mut().extend(probe.map(|request| request.sampling));
        self.alive.set(self.alive.get() + 1);
        self.most_were_alive.set(self.most_were_alive.get().max(self.alive.get()));
        Ok(Box::new(FakeTrial { trials: self, name, is_observed: probe.is_some() }))
    }

    fn first_number(&self) -> u64 {
        self.last_number.get().map_or(0, |last| (last + 2) / 2 * 2)
    }

    fn wait_out_disturbance(&self) {
        self.waited_after.borrow_mut().push(self.count());
    }

    fn is_interrupted(&self) -> bool {
        self.count() >= self.interrupted_after.get()
    }

    fn most_alive(&self) -> usize {
        self.most_alive.get()
    }
}

impl Trial for FakeTrial<'_> {
    fn slice(&mut self, orders: SliceOrders) -> Result<SliceReport, TrialError> {
        let answer = (self.trials.answer)(self.trials.count(), &self.name);
        self.trials.names.borrow_mut().push(self.name.clone());
        self.trials.orders.borrow_mut().push(orders);
        let (iteration_ns, elsewhere) = match answer {
            Err(TrialError::Elsewhere { cpu }) => (1.0, Some(cpu)),
            answer => (answer?, None),
        };
        let observation = self.is_observed.then(|| Observation {
            iterations: 10,
            elapsed_ns: 10.0 * iteration_ns,
            iteration_ends_ns: Vec::new(),
            client: EndpointObservation::default(),
            server: None,
        });
        let sample = Sample::new(10, 10.0 * iteration_ns, Usage::default(), None);
        Ok(SliceReport { observation, elsewhere, ..SliceReport::from_sample(sample) })
    }

    /// Its name says how many sets are open.
    fn traced_slice(
        &mut self,
        size: Sizing,
        sets: &[EventSet],
        _: RecordingWay,
    ) -> Result<(SliceReport, CpuTrace), TrialError> {
        let plain = self.name.clone();
        self.name = format!("{plain}+{}", sets.len());
        let report = self.slice(SliceOrders { size, singly: Singly::Throughout });
        self.name = plain;
        Ok((report?, CpuTrace { sets: sets.to_vec(), ..CpuTrace::default() }))
    }

    fn end(&mut self) -> Result<(), TrialError> {
        Ok(())
    }
}

impl Drop for FakeTrial<'_> {
    fn drop(&mut self) {
        self.trials.alive.set(self.trials.alive.get() - 1);
    }
}

impl RunClock for FakeTrials<'_> {
    fn elapsed(&self) -> Duration {
        SLICE_TIME * self.count() as u32
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
