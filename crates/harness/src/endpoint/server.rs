//! The server's side of a connected trial: it serves the phases that the client announces.

use super::control::Link;
use super::injected::InjectedDelay;
use super::loop_error::LoopError;
use super::meters::{ArrivalLog, CallLog, StepLog, call_counts};
use super::network_meter::NetworkMeter;
use super::session::{Outcome, Session};
use super::sides::{Between, ServerSide};
use super::speed::SpeedReader;
use super::usage::usage_between;
use crate::clock::Clock;
use crate::protocol::message::PeerMessage;
use crate::protocol::phase::{Iterations, Phase, PhaseKind, ServerPhase};
use model::speed::SpeedReading;
use model::{EndpointRole, Workload};
use std::ops::Range;
use sys::usage::of_this_thread;

/// What is between a message and its answer in iterations that are not timed.
const NOTHING: Between<'static> = Between::Delay(None);

/// The server of a connected trial.
pub(crate) struct Server<'a> {
    session: &'a Session,
    link: &'a Link,
    clock: Clock,
    endpoint: Box<dyn ServerSide + 'a>,
    /// What is injected in each iteration, if anything is.
    delay: Option<InjectedDelay>,
    speed: SpeedReader,
    /// Where the client may be on another host.
    network: Option<NetworkMeter>,
}

impl<'a> Server<'a> {
    /// The server of `session` with the `endpoint` to the client of `link`.
    pub(crate) fn new(
        session: &'a Session,
        link: &'a Link,
        endpoint: Box<dyn ServerSide + 'a>,
    ) -> Outcome<Self> {
        let clock = Clock::new(session.orders.clock);
        let speed = match session.reads_pair() {
            true => SpeedReader::of_server(clock, link)?,
            false => SpeedReader::new(clock, None),
        };
        let delay = InjectedDelay::from_orders(&session.orders, EndpointRole::Server, &clock)?;
        let network = session.network_meter(endpoint.network_socket());
        Ok(Self { session, link, clock, endpoint, delay, speed, network })
    }

    /// Serves one phase after the other until the client says that there are no more.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        loop {
            let phase = announced_phase(self.link)?;
            let before = self.session.elsewhere();
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
            let network = self.network.as_ref().map(|meter| meter.readings(self.endpoint.network_socket()));
            let elsewhere = before.or(self.session.elsewhere());
            self.link.send(PeerMessage::Done(Box::new(ServerPhase { network, elsewhere, ..done })), &[])?;
        }
    }

    /// Its usage is taken when the last message before the timed ones and the first after them have come: it is that of the
    /// timed iterations, and noting it delays none of them.
    ///
    /// Where iterations are not answered, the server alone knows when a message came: it notes that in `log`.
    fn total(&mut self, phase: &Phase, mut log: Option<ArrivalLog>) -> Result<ServerPhase, LoopError> {
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::from_phase(phase);
        let (mut before, mut after) = (of_this_thread(), None);
        self.iterations(lead_in, NOTHING)?;
        let before_ns = self.speed_before(phase);
        self.iterations(settling, Between::Note(&mut || before = of_this_thread()))?;
        self.cool()?;
        match &mut log {
            None => self.timed(timed)?,
            Some(log) => {
                log.start();
                let delay = self.delay;
                let mut between = || {
                    log.arrived();
                    InjectedDelay::wait(&delay);
                };
                self.iterations(timed, Between::Note(&mut between))?;
            }
        }
        let lost = self.endpoint.lost().filter(|_| self.session.workload() == Workload::Throughput);
        let mut note_after = || {
            after.get_or_insert_with(of_this_thread);
        };
        self.iterations(lead_out, Between::Note(&mut note_after))?;
        let speed = self.speed_after(phase, before_ns);
        let usage = usage_between(before, after.unwrap_or(before));
        Ok(ServerPhase { usage, speed, times: log.map(ArrivalLog::times), lost, ..ServerPhase::default() })
    }

    /// A stream in its steady state: from the arrival of the last message of the run-up to that of the last timed one.
    fn steady(&mut self, phase: &Phase) -> Result<ServerPhase, LoopError> {
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::from_phase(phase);
        self.iterations(lead_in, NOTHING)?;
        let before_ns = self.speed_before(phase);
        self.endpoint.drain(settling, NOTHING)?;
        self.cool()?;
        let before = of_this_thread();
        let start = self.clock.now();
        self.endpoint.drain(timed, Between::Delay(self.delay))?;
        let end = self.clock.now();
        let usage = usage_between(before, of_this_thread());
        let lost = self.endpoint.lost();
        let next = lead_out.end;
        self.endpoint.drain(lead_out, NOTHING)?;
        self.endpoint.send_word(next)?;
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
        let mut probe = self.session.attach(self.endpoint.addresses())?;
        // The client begins when the server is ready.
        self.link.send(PeerMessage::Ready, &[])?;
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::from_phase(phase);
        self.iterations(lead_in, NOTHING)?;
        self.iterations(settling, NOTHING)?;
        self.cool()?;
        probe.begin()?;
        self.timed(timed)?;
        probe.end()?;
        self.iterations(lead_out, NOTHING)?;
        Ok(ServerPhase { observation: Some(probe.observation()?), ..ServerPhase::default() })
    }

    /// The server's side of timed iterations, each with the delay that is injected in it.
    fn timed(&mut self, iterations: Range<u64>) -> Result<(), LoopError> {
        let delay = self.delay;
        self.endpoint.run(self.session.workload(), iterations, Between::Delay(delay))
    }

    /// The server's side of `iterations`; `between` runs after each message and before its answer.
    fn iterations(&mut self, iterations: Range<u64>, between: Between<'_>) -> Result<(), LoopError> {
        self.endpoint.run(self.session.workload(), iterations, between)
    }

    /// Makes the endpoint's memory cold, where it is to be.
    fn cool(&mut self) -> Result<(), LoopError> {
        if self.session.has_cold_memory() { self.endpoint.cool() } else { Ok(()) }
    }

    fn calls(&mut self, phase: &Phase) -> Result<ServerPhase, LoopError> {
        let mut log = CallLog::new(self.clock);
        let iterations = Iterations::from_phase(phase);
        for range in iterations.ranges() {
            match range == iterations.timed {
                true => self.endpoint.calls(range, &mut log)?,
                false => self.iterations(range, NOTHING)?,
            }
        }
        Ok(ServerPhase { calls: Some(call_counts(&log, &self.clock)), ..ServerPhase::default() })
    }

    fn steps(&mut self, phase: &Phase) -> Result<ServerPhase, LoopError> {
        let mut log = StepLog::new(self.clock);
        if let Workload::Session(session) = self.session.workload() {
            let Iterations { lead_in, settling, timed, lead_out } = Iterations::from_phase(phase);
            self.iterations(lead_in, NOTHING)?;
            self.iterations(settling, NOTHING)?;
            self.endpoint.steps(timed, session, &mut log)?;
            self.iterations(lead_out, NOTHING)?;
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
