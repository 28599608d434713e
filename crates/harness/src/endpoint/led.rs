//! An endpoint that the coordinator leads from phase to phase: ipcmark's own side of the core of the protocol, for a peer that is a driver.

use super::buffered::BufferedEndpoint;
use super::control::{Control, unexpected};
use super::meters::IterationLog;
use super::session::{Outcome, Session};
use super::sides::{Between, ClientSide, Extras, ServerSide, Watched};
use crate::clock::{Clock, Stamp};
use crate::protocol::error::{Blame, EndpointError};
use crate::protocol::hello::DriverMechanism;
use crate::protocol::led::{LedDone, LedOrders, LedPhase, Stretch};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage};
use crate::protocol::orders::{Orders, Role};
use mechanisms::{Mechanism, Operation, Ticket, Visitor, registry};
use model::card::Payload;
use model::record::ClockSource;
use model::{Case, EndpointRole, Invalid, Params, Placement, Size, Spec, Workload, floor};
use std::ops::Range;
use sys::Failure;

/// The workloads in which an endpoint can be led.
const WORKLOADS: [Workload; 3] = [Workload::Latency, Workload::Transfer, Workload::Throughput];

/// The clock of an endpoint that is led: one that needs no calibration.
const CLOCK: Clock = Clock::raw();

/// What endpoints of this program can be led through: what has its descriptors from its start, or an address.
const MECHANISMS: [&str; 5] = ["pipe", "unix-stream", "eventfd", "tcp", "udp"];

/// That, as a hello has it.
pub(super) fn mechanisms() -> Vec<DriverMechanism> {
    let mechanism = |name: &str| {
        let card = registry::card(name)?;
        let workloads = WORKLOADS.into_iter().filter(|workload| card.takes(*workload)).collect();
        Some(DriverMechanism { name: name.to_owned(), workloads, codecs: Vec::new(), summary: String::new() })
    };
    MECHANISMS.into_iter().filter_map(mechanism).collect()
}

/// Takes part in the trial of `orders` until the coordinator says goodbye.
pub(super) fn take_part(orders: LedOrders, control: &Control) -> Outcome<()> {
    let session = session(&orders)?;
    let name = orders.mechanism.clone();
    registry::visit(&name, Led { session, orders, control }).unwrap_or_else(|| Err(unknown(&name)))
}

fn unknown(name: &str) -> EndpointError {
    EndpointError {
        remedy: "name one that the hello has".to_owned(),
        ..EndpointError::bug("find", &shown(name), "there is no such mechanism")
    }
}

/// As much of a name from the other side as is said back.
fn shown(name: &str) -> String {
    model::invalid::printable(name)
}

/// The session of `orders`, which came over a channel: they are checked.
fn session(orders: &LedOrders) -> Outcome<Session> {
    let card = registry::card(&orders.mechanism).ok_or_else(|| unknown(&orders.mechanism))?;
    let refuse = |answer: String| EndpointError {
        remedy: "name one that the hello has".to_owned(),
        ..EndpointError::bug("take", "orders", &answer)
    };
    if !WORKLOADS.contains(&orders.workload) || !card.takes(orders.workload) {
        return Err(refuse(format!("{} has no workload {} that is led", card.name, orders.workload.name())));
    }
    let params = match orders.parameters.is_empty() {
        true => Params::default(),
        false => Params::parse(&orders.parameters.to_string(), card)
            .map_err(|Invalid { problem, .. }| refuse(problem))?,
    };
    let message = Size(orders.size_bytes);
    let role = match orders.role {
        EndpointRole::Client => Role::Client,
        EndpointRole::Server => Role::Server,
    };
    let case = Case {
        spec: Spec { params: params.matched(message), ..Spec::plain(card.name) },
        workload: orders.workload,
        size_bytes: Some(message),
        placement: Placement::Unpinned,
        cpus: None,
        ..floor::operation(card.name, 0)
    };
    let orders = Orders {
        case,
        role,
        clock: ClockSource::MonotonicRaw,
        directory: orders.directory.clone(),
        number: orders.number,
        pair: 0,
        inject_ns: None,
        check: false,
        probe: None,
        network: orders.network,
    };
    Ok(Session {
        orders,
        role,
        links: Vec::new(),
        control: None,
        carries_bytes: card.payload == Payload::Bytes,
    })
}

/// A trial, compiled once for each mechanism.
struct Led<'a> {
    session: Session,
    orders: LedOrders,
    control: &'a Control,
}

impl Visitor for Led<'_> {
    type Output = Outcome<()>;

    fn mechanism<M: Mechanism>(self) -> Outcome<()> {
        let inner = self.connect::<M>()?;
        self.control.send(&EndpointMessage::Connected)?;
        let (message, answer) = (self.session.size_bytes(), self.session.answer_bytes());
        match self.orders.role {
            EndpointRole::Client => self.ask(&mut vec![BufferedEndpoint::new(inner, message, answer)]),
            EndpointRole::Server => self.answer(&mut *BufferedEndpoint::new(inner, answer, message)),
        }
    }

    fn operation<O: Operation>(self) -> Outcome<()> {
        Err(unknown(&self.orders.mechanism))
    }
}

impl Led<'_> {
    /// Connects as the mechanism does: by descriptors that this process has from its start, or by the server's ticket.
    fn connect<M: Mechanism>(&self) -> Outcome<M::End> {
        let trial = self.session.context(0);
        let inherited = &self.orders.descriptors;
        if !inherited.is_empty() {
            let fds = inherited.iter().map(|number| sys::inherited::take(*number));
            let fds = fds.collect::<Result<_, Failure>>()?;
            return Ok(M::connect(&trial, Ticket { address: Vec::new(), fds })?);
        }
        if self.orders.role == EndpointRole::Server {
            let (bound, ticket) = M::bind(&trial)?;
            if !ticket.fds.is_empty() {
                let answer = "its server is reached by descriptors, and the orders have none";
                return Err(EndpointError {
                    remedy: "name another mechanism".to_owned(),
                    ..EndpointError::bug("connect", M::CARD.name, answer)
                });
            }
            self.control.send(&EndpointMessage::Ticket(ticket.address))?;
            return Ok(M::accept(bound)?);
        }
        match self.control.receive()?.0 {
            CoordinatorMessage::Ticket(address) => {
                Ok(M::connect(&trial, Ticket { address, fds: Vec::new() })?)
            }
            _ => Err(unexpected("the ticket", "the coordinator").blaming(Blame::Coordinator)),
        }
    }

    /// The next phase; `None` when there is none.
    fn next_phase(&self) -> Outcome<Option<LedPhase>> {
        match self.control.receive()?.0 {
            CoordinatorMessage::Phase(phase) => Ok(Some(phase)),
            CoordinatorMessage::Goodbye => Ok(None),
            _ => Err(unexpected("a phase", "the coordinator").blaming(Blame::Coordinator)),
        }
    }

    /// The client's phases.
    fn ask(&self, client: &mut dyn ClientSide) -> Outcome<()> {
        while let Some(phase) = self.next_phase()? {
            let checks = self.session.check(phase.check);
            client.ends().iter_mut().for_each(|end| end.check(checks));
            let (mut elapsed_ns, mut log) =
                (0.0, IterationLog::new(CLOCK, if phase.each { phase.timed() } else { 0 }));
            for (stretch, messages) in numbered(&phase)? {
                let watched =
                    if phase.each && stretch.timed { Watched::Logged(&mut log) } else { Watched::Nothing };
                let took_ns = self.ask_stretch(client, stretch, messages, watched)?;
                elapsed_ns += if stretch.timed { took_ns } else { 0.0 };
            }
            let each_ns = log.times().ticks;
            self.control.send(&EndpointMessage::Done(LedDone { elapsed_ns, each_ns }))?;
        }
        Ok(())
    }

    /// The client's side of a stretch. Returns how long it took, in nanoseconds.
    fn ask_stretch(
        &self,
        client: &mut dyn ClientSide,
        stretch: Stretch,
        messages: Range<u64>,
        mut watched: Watched<'_>,
    ) -> Outcome<f64> {
        watched.start();
        let start = CLOCK.now();
        match self.orders.workload == Workload::Throughput && !stretch.acknowledged {
            true => client.stream(messages, None, watched)?,
            false => client.run(self.orders.workload, messages, Extras { fds: &[], delay: None }, watched)?,
        }
        Ok(CLOCK.ns_between(start, CLOCK.now()))
    }

    /// The server's phases.
    fn answer(&self, server: &mut dyn ServerSide) -> Outcome<()> {
        while let Some(phase) = self.next_phase()? {
            server.check(self.session.check(phase.check));
            let stretches = numbered(&phase)?;
            self.control.send(&EndpointMessage::Ready)?;
            let mut elapsed_ns = 0.0;
            for (stretch, messages) in stretches {
                let start: Stamp = CLOCK.now();
                match self.orders.workload == Workload::Throughput && !stretch.acknowledged {
                    true => server.drain(messages, Between::Delay(None))?,
                    false => server.run(self.orders.workload, messages, Between::Delay(None))?,
                }
                elapsed_ns += if stretch.timed { CLOCK.ns_between(start, CLOCK.now()) } else { 0.0 };
            }
            self.control.send(&EndpointMessage::Done(LedDone { elapsed_ns, each_ns: Vec::new() }))?;
        }
        Ok(())
    }
}

/// The stretches of `phase`, each with the numbers of its messages.
fn numbered(phase: &LedPhase) -> Outcome<Vec<(Stretch, Range<u64>)>> {
    let mut next = 0_u64;
    let mut all = Vec::new();
    for stretch in &phase.stretches {
        let end = next.checked_add(stretch.messages);
        let end = end.ok_or_else(|| unexpected("a phase with an end", "the coordinator"))?;
        all.push((*stretch, next..end));
        next = end;
    }
    Ok(all)
}
