//! What an endpoint of one trial knows: its orders, its links and how the payload is checked. It does no iterations.

use super::control::{Control, Link, unexpected};
use super::network_meter::NetworkMeter;
use super::payload::{Check, answer_bytes};
pub(crate) use crate::protocol::error::Outcome;
use crate::protocol::error::{Blame, EndpointError};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage, PeerMessage};
use crate::protocol::orders::{MOST_RECORDED_ITERATIONS, Orders, Role, Sizing, SliceOrders};
use mechanisms::{Endpoint, Mechanism, Network, Shape, Ticket, TrialContext, registry};
use model::observation::{Probe, ProbeRequest};
use model::{CpuPair, HostAddress, Peers, Size, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ops::Range;
use sys::{Failure, OrFail};

/// The share of a slice that the warm-up of a trial must fill.
pub(crate) const WARM_UP_SHARE: f64 = 0.25;
/// The fewest iterations that are observed, though a warm-up that was disturbed may have allowed for less.
const LEAST_OBSERVED_ITERATIONS: u64 = 50;

/// How many iterations are observed in a trial for which there would be time for `iterations`.
pub(crate) fn observed_iterations(iterations: u64, size: Sizing, request: &ProbeRequest) -> u64 {
    let most = match request.probe {
        None | Some(Probe::Counters | Probe::Sampling) => u64::MAX,
        Some(_) => MOST_RECORDED_ITERATIONS,
    };
    match size {
        Sizing::Iterations(iterations) => iterations.min(most),
        Sizing::Slice { .. } => iterations.clamp(LEAST_OBSERVED_ITERATIONS, most),
    }
}

/// One endpoint's side of a trial.
pub(crate) struct Session {
    pub(crate) orders: Orders,
    pub(crate) role: Role,
    /// To every peer: one, unless there are several clients or servers.
    pub(crate) links: Vec<Link>,
    /// To the coordinator; only of a client or an operation, which it tells when a slice begins.
    pub(crate) control: Option<Control>,
    /// Whether the mechanism carries bytes, so that they can be checked.
    pub(crate) carries_bytes: bool,
}

impl Session {
    /// Pins this thread to its CPU, where it has one.
    pub(crate) fn pin(&self) -> Result<(), Failure> {
        self.cpu().map_or(Ok(()), sys::process::pin_to)
    }

    /// Where this thread is, or may be, instead of on its CPU. It is asked before and after iterations, never among them.
    pub(crate) fn elsewhere(&self) -> Option<u32> {
        self.cpu().and_then(sys::process::strayed_from)
    }

    fn cpu(&self) -> Option<u32> {
        let cpu = |pair: CpuPair| if self.role == Role::Server { pair.server } else { pair.client };
        self.orders.case.cpus.map(cpu)
    }

    /// What the trial gives the mechanism of its `pair`.
    pub(crate) fn context(&self, pair: u32) -> TrialContext<'_> {
        let Orders { case, directory, number, network, .. } = &self.orders;
        // What is of one host finds its peer there by its name, though the two are reached by commands.
        let is_of_networks =
            registry::card(&case.spec.name).is_some_and(|card| card.reach.leaves_the_machine());
        let network = network.filter(|_| is_of_networks);
        TrialContext {
            params: &case.spec.params,
            shape: Shape { size_bytes: self.size_bytes(), workload: case.workload },
            directory,
            number: number * u64::from(Peers::MOST) + u64::from(pair),
            network: network.map(|orders| Network { server: orders.server, token: orders.token }),
        }
    }

    /// The client's endpoint to the server of `link`. It makes the ticket, unless the server may be on another host.
    pub(crate) fn client_endpoint<M: Mechanism>(&self, link: &Link, pair: u32) -> Outcome<M::End> {
        let trial = self.context(pair);
        if trial.network.is_none() { make_ticket::<M>(&trial, link) } else { take_ticket::<M>(&trial, link) }
    }

    /// The server's endpoint to the client of `link`.
    pub(crate) fn server_endpoint<M: Mechanism>(&self, link: &Link, pair: u32) -> Outcome<M::End> {
        let trial = self.context(pair);
        let endpoint = if trial.network.is_none() {
            take_ticket::<M>(&trial, link)
        } else {
            make_ticket::<M>(&trial, link)
        }?;
        link.send(PeerMessage::Settings(endpoint.settings()), &[])?;
        Ok(endpoint)
    }

    /// Sleeps until the coordinator wants a further slice; `None` when it wants no more.
    pub(crate) fn next_slice(&self) -> Outcome<Option<SliceOrders>> {
        let control = self.control.as_ref().ok_or_else(|| {
            EndpointError::bug("receive", "the orders of a slice", "there is no control channel")
        })?;
        match control.receive()?.0 {
            CoordinatorMessage::Slice(orders) => Ok(Some(orders)),
            CoordinatorMessage::Goodbye => Ok(None),
            _ => Err(unexpected("the orders of a slice", "the coordinator").blaming(Blame::Coordinator)),
        }
    }

    /// Tells the coordinator something.
    pub(crate) fn tell(&self, message: &EndpointMessage) -> Outcome<()> {
        self.control.as_ref().map_or(Ok(()), |control| control.send(message))
    }

    /// Tells the coordinator that `iterations` of `iteration_ns` come now, where that is long enough to be waited for.
    pub(crate) fn expect(&self, iterations: u64, iteration_ns: f64) -> Outcome<()> {
        const WORTH_SAYING_NS: f64 = 1e8;
        let ns = iterations as f64 * iteration_ns;
        if ns < WORTH_SAYING_NS { Ok(()) } else { self.tell(&EndpointMessage::Expect { ns: ns as u64 }) }
    }

    /// Whether the speed of CPUs is read beside slices: not of several peers, whose iterations are not of one CPU or two.
    pub(crate) fn reads_speed(&self) -> bool {
        self.orders.case.peers == Peers::Pair && self.orders.probe.is_none()
    }

    /// Whether the way between the CPUs is read too: where they are two and known.
    pub(crate) fn reads_pair(&self) -> bool {
        let has_two = || self.orders.case.cpus.is_some_and(|cpus| cpus.client != cpus.server);
        self.reads_speed() && self.orders.network.is_none() && has_two()
    }

    /// Whether the endpoints are on one CPU.
    pub(crate) fn has_one_cpu(&self) -> bool {
        let is_one = || self.orders.case.cpus.is_some_and(|cpus| cpus.client == cpus.server);
        self.orders.network.is_none() && is_one()
    }

    /// Waits until every client is as far as this one, where there are several.
    pub(crate) fn wait_for_the_others(&self) -> Outcome<()> {
        let Some(control) = self.shared_control() else { return Ok(()) };
        control.send(&EndpointMessage::Ready)?;
        take_go(control)
    }

    /// Tells the coordinator that this client has measured one whole phase, where there are several clients.
    pub(crate) fn report_first_phase(&self) -> Outcome<()> {
        let Some(control) = self.shared_control() else { return Ok(()) };
        control.send(&EndpointMessage::MeasuredOnePhase)
    }

    /// Whether there is no other client to go on for.
    pub(crate) fn is_the_only_client(&self) -> bool {
        self.shared_control().is_none()
    }

    /// Whether every client has measured one whole phase by now.
    pub(crate) fn others_are_done(&self) -> Outcome<bool> {
        let Some(control) = self.shared_control() else { return Ok(true) };
        let is_said = control.has_news()?;
        // It is taken off the channel: what comes next there is the next slice.
        if is_said {
            take_go(control)?;
        }
        Ok(is_said)
    }

    /// The channel to the coordinator, where it has several clients keep together.
    fn shared_control(&self) -> Option<&Control> {
        self.control.as_ref().filter(|_| self.orders.case.peers.clients() > 1)
    }

    /// Attaches the probe that the coordinator wants to this endpoint, whose messages lie at `addresses`.
    pub(crate) fn attach(&self, addresses: Range<u64>) -> Outcome<observe::AttachedProbe> {
        let request = self.orders.probe.as_ref();
        let request = request.ok_or_else(|| EndpointError::bug("observe", "the trial", "it has no probe"))?;
        Ok(observe::attach(request, addresses)?)
    }

    /// What reads the kernel's counters of an endpoint over `socket`, where its peer may be on another host.
    pub(crate) fn network_meter(&self, socket: Option<BorrowedFd<'_>>) -> Option<NetworkMeter> {
        match self.orders.network?.server {
            HostAddress::Ip(server) => Some(NetworkMeter::new(socket, self.role, server)),
            HostAddress::Link(server, _) => Some(NetworkMeter::new(socket, self.role, server.into())),
            // The kernel counts nothing of virtual sockets, and they have no route.
            HostAddress::Vsock(_) => None,
        }
    }

    /// Whether messages lie in memory that the timed iterations touch first.
    pub(crate) fn has_cold_memory(&self) -> bool {
        self.orders.case.spec.params.has_cold_memory()
    }

    /// Whether the endpoints wait awake.
    pub(crate) fn spins(&self) -> bool {
        self.orders.case.spec.params.spins()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.orders.case.size_bytes.map_or(1, Size::as_usize)
    }

    pub(crate) fn workload(&self) -> Workload {
        self.orders.case.workload
    }

    pub(crate) fn answer_bytes(&self) -> usize {
        answer_bytes(self.workload(), self.size_bytes())
    }

    /// How the payload is checked in a phase that asks for everything, or not.
    ///
    /// Of a connection, the client alone checks the answer: a server may answer from a process of its own.
    pub(crate) fn check(&self, everything: bool) -> Check {
        match (self.carries_bytes, everything || self.orders.check) {
            (false, _) => Check::Nothing,
            _ if self.workload() == Workload::Connect && self.role == Role::Server => Check::Nothing,
            (true, false) => Check::Sequence,
            (true, true) => Check::Everything,
        }
    }

    /// The descriptors that go with each message of a session: of a file that costs nothing to close.
    pub(crate) fn fds(&self) -> Result<Vec<OwnedFd>, Failure> {
        let Workload::Session(session) = self.workload() else { return Ok(Vec::new()) };
        let open = || std::fs::File::open("/dev/null").map(OwnedFd::from).or_fail("open", "/dev/null");
        (0..session.fds).map(|_| open()).collect()
    }
}

/// An endpoint that makes the ticket, sends it over `link`, and waits for its peer.
fn make_ticket<M: Mechanism>(trial: &TrialContext<'_>, link: &Link) -> Outcome<M::End> {
    let (bound, ticket) = M::bind(trial)?;
    send(link, ticket)?;
    Ok(M::accept(bound)?)
}

/// An endpoint that takes the ticket from `link`, and connects.
fn take_ticket<M: Mechanism>(trial: &TrialContext<'_>, link: &Link) -> Outcome<M::End> {
    Ok(M::connect(trial, receive(link)?)?)
}

/// Sends the ticket, and does not keep the peer's descriptors open: whoever did would not see the peer's death.
fn send(link: &Link, Ticket { address, fds }: Ticket) -> Outcome<()> {
    link.send(PeerMessage::Ticket(address), &fds.iter().map(AsFd::as_fd).collect::<Vec<_>>())
}

fn receive(link: &Link) -> Outcome<Ticket> {
    let (address, fds) = link.receive("the ticket", |message| match message {
        PeerMessage::Ticket(address) => Some(address),
        _ => None,
    })?;
    Ok(Ticket { address, fds })
}

/// Waits until the coordinator says that no client is behind this one.
fn take_go(control: &Control) -> Outcome<()> {
    match control.receive()?.0 {
        CoordinatorMessage::Go => Ok(()),
        _ => Err(unexpected("the word to go on", "the coordinator").blaming(Blame::Coordinator)),
    }
}

/// A session for tests.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use model::Case;
    use model::record::ClockSource;

    /// The session of an endpoint of trial 3.
    pub(crate) fn session(case: Case, role: Role, control: Option<Control>) -> Session {
        let orders = Orders {
            case,
            role,
            clock: ClockSource::MonotonicRaw,
            directory: std::env::temp_dir(),
            number: 3,
            pair: 0,
            check: false,
            inject_ns: None,
            probe: None,
            network: None,
        };
        Session { orders, role, links: Vec::new(), control, carries_bytes: true }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::session;
    use super::*;
    use crate::protocol::channel::channel;
    use model::{Case, floor};

    fn case(workload: Workload, peers: Peers) -> Case {
        Case { workload, peers, ..floor::operation("pipe", 64) }
    }

    #[test]
    fn payload_is_checked_as_the_phase_and_the_workload_ask() {
        let of =
            |workload, role, everything| session(case(workload, Peers::Pair), role, None).check(everything);
        assert_eq!(of(Workload::Latency, Role::Client, false), Check::Sequence);
        assert_eq!(of(Workload::Latency, Role::Server, true), Check::Everything);
        assert_eq!(of(Workload::Connect, Role::Server, true), Check::Nothing);
        assert_eq!(of(Workload::Connect, Role::Client, true), Check::Everything);
        let without = Session {
            carries_bytes: false,
            ..session(case(Workload::Latency, Peers::Pair), Role::Client, None)
        };
        assert_eq!(without.check(true), Check::Nothing);
    }

    #[test]
    fn trials_and_pairs_have_numbers_of_their_own() {
        let session = session(case(Workload::Latency, Peers::Pair), Role::Client, None);
        let most = u64::from(Peers::MOST);
        assert_eq!((session.context(0).number, session.context(5).number), (3 * most, 3 * most + 5));
    }

    #[test]
    fn a_single_client_waits_for_nobody_and_one_of_several_for_the_coordinator() {
        let (ours, theirs) = channel().unwrap();
        let alone =
            session(case(Workload::Latency, Peers::Pair), Role::Client, Some(Control::over_socket(theirs)));
        assert!(alone.is_the_only_client() && alone.others_are_done().unwrap());
        alone.wait_for_the_others().unwrap();
        drop((ours, alone));

        let (ours, theirs) = channel().unwrap();
        let one_of_two = session(
            case(Workload::Latency, Peers::Pairs(2)),
            Role::Client,
            Some(Control::over_socket(theirs)),
        );
        assert!(!one_of_two.is_the_only_client() && !one_of_two.others_are_done().unwrap());
        one_of_two.report_first_phase().unwrap();
        assert!(matches!(ours.receive().unwrap().0, EndpointMessage::MeasuredOnePhase));
        ours.send(&CoordinatorMessage::Go, &[]).unwrap();
        assert!(one_of_two.others_are_done().unwrap());
        drop(ours);
        let error = one_of_two.report_first_phase().unwrap_err();
        assert_eq!(error.blame, Blame::Coordinator, "{error}");
    }

    #[test]
    fn observed_iterations_have_bounds_where_each_event_is_recorded() {
        let observed = |iterations, size, probe| {
            observed_iterations(iterations, size, &ProbeRequest { probe, ..ProbeRequest::default() })
        };
        let slice = Sizing::Slice { slice_ns: 1, hint_ns: None };
        assert_eq!(observed(3, slice, Some(Probe::Syscalls)), LEAST_OBSERVED_ITERATIONS);
        assert_eq!(observed(1 << 40, slice, Some(Probe::Syscalls)), MOST_RECORDED_ITERATIONS);
        assert_eq!(observed(1 << 40, slice, Some(Probe::Counters)), 1 << 40);
        assert_eq!(observed(1000, Sizing::Iterations(7), Some(Probe::Timeline)), 7);
    }
}
