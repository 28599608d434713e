//! The server's side of a connected trial: it serves the phases that the client announces.

use super::buffered::BufferedEndpoint;
use super::loop_error::LoopError;
use super::meters::{ArrivalLog, CallLog, StepLog, Unmetered, call_counts};
use super::sample::usage_between;
use super::session::{Outcome, Session};
use crate::clock::Clock;
use crate::protocol::channel::Channel;
use crate::protocol::phase::{Iterations, Phase, PhaseKind, ServerPhase};
use mechanisms::{Endpoint, NoTrace};
use model::Workload;
use std::ops::Range;
use sys::usage::of_this_thread;

/// The server of a connected trial.
pub(crate) struct Server<'a, E> {
    pub(crate) session: &'a Session,
    pub(crate) link: &'a Channel,
    pub(crate) clock: Clock,
    pub(crate) endpoint: Box<BufferedEndpoint<E>>,
}

impl<E: Endpoint> Server<'_, E> {
    /// Serves one phase after the other until the client says that there are no more.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        loop {
            let (phase, _): (Phase, _) = self.link.receive()?;
            self.endpoint.check(self.session.check(phase.check));
            let done = match phase.kind {
                PhaseKind::End => return Ok(()),
                PhaseKind::Total => self.total(phase.iterations, None)?,
                PhaseKind::Common => {
                    let is_answered = self.session.workload().is_answered();
                    let log = (!is_answered).then(|| ArrivalLog::new(self.clock, phase.iterations));
                    self.total(phase.iterations, log)?
                }
                PhaseKind::Calls => self.calls(phase.iterations)?,
                PhaseKind::Steps => self.steps(phase.iterations)?,
                PhaseKind::Observed => self.observed(phase.iterations)?,
            };
            self.link.send(&done, &[])?;
        }
    }

    /// Its usage is taken when the last message of the lead-in and the first of the lead-out have come: it is that of the
    /// timed iterations, and noting it delays none of them.
    ///
    /// Where iterations are not answered, the server alone knows when a message came: it notes that in `log`.
    fn total(&mut self, iterations: u64, mut log: Option<ArrivalLog>) -> Result<ServerPhase, LoopError> {
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        let (mut before, mut after) = (of_this_thread(), None);
        // As `dyn`: so the loop that the timed iterations run is compiled apart from these closures.
        let note_start: &mut dyn FnMut() = &mut || before = of_this_thread();
        let note_end: &mut dyn FnMut() = &mut || {
            after.get_or_insert_with(of_this_thread);
        };
        let (mut lost, endpoint) = (None, &mut *self.endpoint);
        match self.session.workload() {
            Workload::Throughput => {
                endpoint.drain(lead_in, &mut Unmetered, note_start)?;
                match &mut log {
                    None => endpoint.drain(timed, &mut Unmetered, &mut nothing)?,
                    Some(log) => {
                        log.start();
                        let note_arrival: &mut dyn FnMut() = &mut || log.arrived();
                        endpoint.drain(timed, &mut Unmetered, note_arrival)?;
                    }
                }
                lost = E::LOSES.then_some(endpoint.lost);
                endpoint.drain(lead_out, &mut Unmetered, note_end)?;
            }
            Workload::Session(session) => {
                endpoint.receive_sessions(lead_in, session, &mut NoTrace, note_start)?;
                endpoint.receive_sessions(timed, session, &mut NoTrace, &mut nothing)?;
                endpoint.receive_sessions(lead_out, session, &mut NoTrace, note_end)?;
            }
            _ => {
                endpoint.answer(lead_in, note_start)?;
                endpoint.answer(timed, &mut nothing)?;
                endpoint.answer(lead_out, note_end)?;
            }
        }
        let usage = usage_between(before, after.unwrap_or(before));
        let times = log.map(ArrivalLog::times);
        Ok(ServerPhase { usage, times, lost, ..ServerPhase::default() })
    }

    /// The phase in which a probe observes both endpoints: it sees what the server does in the timed iterations, and no more.
    fn observed(&mut self, iterations: u64) -> Outcome<ServerPhase> {
        let mut probe = self.session.attach(&self.endpoint)?;
        // The client begins when the server is ready.
        self.link.send(&(), &[])?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        self.iterations(lead_in)?;
        probe.begin()?;
        self.iterations(timed)?;
        probe.end()?;
        self.iterations(lead_out)?;
        Ok(ServerPhase { observation: Some(probe.observation()?), ..ServerPhase::default() })
    }

    /// The server's side of `iterations`.
    fn iterations(&mut self, iterations: Range<u64>) -> Result<(), LoopError> {
        let nothing: &mut dyn FnMut() = &mut nothing;
        match self.session.workload() {
            Workload::Throughput => self.endpoint.drain(iterations, &mut Unmetered, nothing),
            Workload::Session(session) => {
                self.endpoint.receive_sessions(iterations, session, &mut NoTrace, nothing)
            }
            _ => self.endpoint.answer(iterations, nothing),
        }
    }

    fn calls(&mut self, iterations: u64) -> Result<ServerPhase, LoopError> {
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        let mut log = CallLog::new(self.clock);
        self.endpoint.drain(lead_in, &mut Unmetered, &mut nothing)?;
        self.endpoint.drain(timed, &mut log, &mut nothing)?;
        self.endpoint.drain(lead_out, &mut Unmetered, &mut nothing)?;
        Ok(ServerPhase { calls: Some(call_counts(&log, &self.clock)), ..ServerPhase::default() })
    }

    fn steps(&mut self, iterations: u64) -> Result<ServerPhase, LoopError> {
        let mut log = StepLog::new(self.clock);
        if let Workload::Session(session) = self.session.workload() {
            let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
            self.endpoint.receive_sessions(lead_in, session, &mut NoTrace, &mut nothing)?;
            self.endpoint.receive_sessions(timed, session, &mut log, &mut nothing)?;
            self.endpoint.receive_sessions(lead_out, session, &mut NoTrace, &mut nothing)?;
        }
        Ok(ServerPhase { steps: Some(log.by_name()), ..ServerPhase::default() })
    }
}

/// What is done between the message and the answer of a timed iteration.
fn nothing() {}
