//! The server's side of a connected trial: it serves the phases that the client announces.

use super::buffered::BufferedEndpoint;
use super::control::Link;
use super::injected::InjectedDelay;
use super::loop_error::LoopError;
use super::meters::{ArrivalLog, CallLog, StepLog, Unmetered, call_counts};
use super::network_meter::NetworkMeter;
use super::sample::usage_between;
use super::session::{Outcome, Session};
use super::speed::SpeedReader;
use crate::clock::Clock;
use crate::protocol::message::PeerMessage;
use crate::protocol::phase::{Iterations, Phase, PhaseKind, ServerPhase};
use mechanisms::{Endpoint, NoTrace};
use model::Workload;
use model::speed::SpeedReading;
use std::ops::Range;
use sys::usage::of_this_thread;

/// The server of a connected trial.
pub(crate) struct Server<'a, E> {
    pub(crate) session: &'a Session,
    pub(crate) link: &'a Link,
    pub(crate) clock: Clock,
    pub(crate) endpoint: Box<BufferedEndpoint<E>>,
    /// What is injected in each iteration, if anything is.
    pub(crate) delay: Option<InjectedDelay>,
    pub(crate) speed: SpeedReader,
    /// Where the client may be on another host.
    pub(crate) network: Option<NetworkMeter>,
}

impl<E: Endpoint> Server<'_, E> {
    /// Serves one phase after the other until the client says that there are no more.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        loop {
            let phase = announced_phase(self.link)?;
            self.endpoint.check(self.session.check(phase.check));
            if self.link.is_relayed() && !matches!(phase.kind, PhaseKind::End | PhaseKind::Observed) {
                self.link.send(PeerMessage::Ready, &[])?;
            }
            let done = match phase.kind {
                PhaseKind::End => return Ok(()),
                PhaseKind::Total => self.total(&phase, None)?,
                PhaseKind::Steady { .. } => self.steady(&phase)?,
                PhaseKind::Common => {
                    let is_answered = self.session.workload().is_answered();
                    let log = (!is_answered).then(|| ArrivalLog::new(self.clock, phase.iterations));
                    self.total(&phase, log)?
                }
                PhaseKind::Calls => self.calls(&phase)?,
                PhaseKind::Steps => self.steps(&phase)?,
                PhaseKind::Observed => self.observed(&phase)?,
            };
            let network =
                self.network.as_ref().map(|meter| meter.readings(self.endpoint.inner.network_socket()));
            self.link.send(PeerMessage::Done(Box::new(ServerPhase { network, ..done })), &[])?;
        }
    }

    /// Its usage is taken when the last message before the timed ones and the first after them have come: it is that of the
    /// timed iterations, and noting it delays none of them.
    ///
    /// Where iterations are not answered, the server alone knows when a message came: it notes that in `log`.
    fn total(&mut self, phase: &Phase, mut log: Option<ArrivalLog>) -> Result<ServerPhase, LoopError> {
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::of(phase);
        let (mut before, mut after) = (of_this_thread(), None);
        self.iterations(lead_in, &mut nothing)?;
        let before_ns = self.speed_before(phase);
        // As `dyn`: so these closures share one loop, and that of the timed iterations calls nothing between two messages. An
        // indirect call there costs a round trip on one CPU some percent: each switch of processes forgets where it leads.
        let mut note_before = || before = of_this_thread();
        self.iterations::<dyn FnMut()>(settling, &mut note_before)?;
        self.endpoint.cool(self.session.has_cold_memory())?;
        match &mut log {
            None => self.timed(timed)?,
            Some(log) => {
                log.start();
                let delay = self.delay;
                self.iterations::<dyn FnMut()>(timed, &mut || {
                    log.arrived();
                    if let Some(delay) = delay {
                        delay.wait();
                    }
                })?;
            }
        }
        let lost =
            (self.session.workload() == Workload::Throughput && E::LOSES).then_some(self.endpoint.lost);
        self.iterations::<dyn FnMut()>(lead_out, &mut || {
            after.get_or_insert_with(of_this_thread);
        })?;
        let speed = self.speed_after(phase, before_ns);
        let usage = usage_between(before, after.unwrap_or(before));
        Ok(ServerPhase { usage, speed, times: log.map(ArrivalLog::times), lost, ..ServerPhase::default() })
    }

    /// A stream in its steady state: from the arrival of the last message of the run-up to that of the last timed one.
    fn steady(&mut self, phase: &Phase) -> Result<ServerPhase, LoopError> {
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::of(phase);
        self.iterations(lead_in, &mut nothing)?;
        let before_ns = self.speed_before(phase);
        let endpoint = &mut *self.endpoint;
        endpoint.drain(settling, &mut Unmetered, &mut nothing)?;
        endpoint.cool(self.session.has_cold_memory())?;
        let before = of_this_thread();
        let start = self.clock.now();
        match self.delay {
            None => endpoint.drain(timed, &mut Unmetered, &mut nothing)?,
            Some(delay) => endpoint.drain(timed, &mut Unmetered, &mut || delay.wait())?,
        }
        let end = self.clock.now();
        let usage = usage_between(before, of_this_thread());
        let lost = E::LOSES.then_some(endpoint.lost);
        let next = lead_out.end;
        endpoint.drain(lead_out, &mut Unmetered, &mut nothing)?;
        endpoint.send_word(next)?;
        let speed = self.speed_after(phase, before_ns);
        let steady_ns = Some(self.clock.ns_between(start, end));
        Ok(ServerPhase { usage, steady_ns, speed, lost, ..ServerPhase::default() })
    }

    /// What the server's CPU takes for the mix before the timed iterations, if `phase` asks for that and the CPU is its own.
    fn speed_before(&mut self, phase: &Phase) -> Option<f64> {
        let reads_speed = phase.reads_speed && !self.session.has_one_cpu();
        reads_speed.then(|| {
            self.speed.answer_pair();
            self.speed.cpu_ns()
        })
    }

    /// The reading after the timed iterations, with that before.
    fn speed_after(&mut self, phase: &Phase, before_ns: Option<f64>) -> Option<SpeedReading> {
        let after_ns = before_ns.map(|_| self.speed.cpu_ns());
        if phase.reads_speed && !self.session.has_one_cpu() {
            self.speed.answer_pair();
        }
        Some(SpeedReading { before_ns: before_ns?, after_ns: after_ns? })
    }

    /// The phase in which a probe observes both endpoints: it sees what the server does in the timed iterations, and no more.
    fn observed(&mut self, phase: &Phase) -> Outcome<ServerPhase> {
        let mut probe = self.session.attach(&self.endpoint)?;
        // The client begins when the server is ready.
        self.link.send(PeerMessage::Ready, &[])?;
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::of(phase);
        self.iterations(lead_in, &mut nothing)?;
        self.iterations(settling, &mut nothing)?;
        self.endpoint.cool(self.session.has_cold_memory())?;
        probe.begin()?;
        self.timed(timed)?;
        probe.end()?;
        self.iterations(lead_out, &mut nothing)?;
        Ok(ServerPhase { observation: Some(probe.observation()?), ..ServerPhase::default() })
    }

    /// The server's side of timed iterations, each with the delay that is injected in it. Without one it is the same code as
    /// without this function.
    fn timed(&mut self, iterations: Range<u64>) -> Result<(), LoopError> {
        match self.delay {
            None => self.iterations(iterations, &mut nothing),
            Some(delay) => self.iterations::<dyn FnMut()>(iterations, &mut || delay.wait()),
        }
    }

    /// The server's side of `iterations`. `between` runs after each message and before its answer; where messages are not
    /// answered, the client gets the word that all have come.
    fn iterations<F: FnMut() + ?Sized>(
        &mut self,
        iterations: Range<u64>,
        between: &mut F,
    ) -> Result<(), LoopError> {
        match self.session.workload() {
            Workload::Throughput => {
                let next = iterations.end;
                self.endpoint.drain(iterations, &mut Unmetered, between)?;
                self.endpoint.send_word(next)
            }
            Workload::Session(session) => {
                self.endpoint.receive_sessions(iterations, session, &mut NoTrace, between)
            }
            _ => self.endpoint.answer(iterations, between),
        }
    }

    fn calls(&mut self, phase: &Phase) -> Result<ServerPhase, LoopError> {
        let mut log = CallLog::new(self.clock);
        let iterations = Iterations::of(phase);
        for range in iterations.ranges() {
            let next = range.end;
            match range == iterations.timed {
                true => self.endpoint.drain(range, &mut log, &mut nothing)?,
                false => self.endpoint.drain(range, &mut Unmetered, &mut nothing)?,
            }
            self.endpoint.send_word(next)?;
        }
        Ok(ServerPhase { calls: Some(call_counts(&log, &self.clock)), ..ServerPhase::default() })
    }

    fn steps(&mut self, phase: &Phase) -> Result<ServerPhase, LoopError> {
        let mut log = StepLog::new(self.clock);
        if let Workload::Session(session) = self.session.workload() {
            let Iterations { lead_in, settling, timed, lead_out } = Iterations::of(phase);
            self.endpoint.receive_sessions(lead_in, session, &mut NoTrace, &mut nothing)?;
            self.endpoint.receive_sessions(settling, session, &mut NoTrace, &mut nothing)?;
            self.endpoint.receive_sessions(timed, session, &mut log, &mut nothing)?;
            self.endpoint.receive_sessions(lead_out, session, &mut NoTrace, &mut nothing)?;
        }
        Ok(ServerPhase { steps: Some(log.by_name()), ..ServerPhase::default() })
    }
}

/// The phase that the client of `link` announces next.
pub(super) fn announced_phase(link: &Link) -> Outcome<Phase> {
    let phase = |message| match message {
        PeerMessage::Phase(phase) => Some(phase),
        _ => None,
    };
    link.receive("the next phase", phase).map(|(phase, _)| phase)
}

/// What is done between the message and the answer of a timed iteration.
fn nothing() {}
