//! The server's side where several clients talk to one server: an event loop that serves whoever is ready, one message at a
//! time.
//!
//! Each client announces its phases on a link of its own and at its own time. The event loop watches the links beside the
//! endpoints, and nothing passes on them while iterations are timed. What passes between one client and the server is as
//! between a client and a server of its own.

use super::buffered::BufferedEndpoint;
use super::control::Link;
use super::injected::InjectedDelay;
use super::meters::ArrivalLog;
use super::server::announced_phase;
use super::session::{Outcome, Session};
use super::usage::usage_between;
use crate::clock::Clock;
use crate::protocol::message::PeerMessage;
use crate::protocol::phase::{Iterations, PhaseKind, ServerPhase};
use mechanisms::Endpoint;
use model::EndpointRole;
use model::observation::ServedOn;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsRawFd, OwnedFd};
use sys::usage::{ThreadUsage, of_this_thread};
use sys::{Errno, Failure, OrFail};

/// A server of several clients.
pub(crate) struct FanInServer<'a, E> {
    session: &'a Session,
    clock: Clock,
    clients: Vec<ServedClient<'a, E>>,
    /// What is injected in each timed iteration, if anything is.
    delay: Option<InjectedDelay>,
    /// Watches every client's link and endpoint.
    epoll: OwnedFd,
}

/// One client, as the server sees it.
struct ServedClient<'a, E> {
    link: &'a Link,
    endpoint: Box<BufferedEndpoint<E>>,
    /// The phase that it has announced, until that is over.
    phase: Option<RunningPhase>,
}

/// A phase under way.
struct RunningPhase {
    iterations: Iterations,
    next: u64,
    before: ThreadUsage,
    usage: Option<model::record::Usage>,
    log: Option<ArrivalLog>,
}

/// What is ready: the number by which epoll knows it.
enum Ready {
    Link(usize),
    Endpoint(usize),
}

impl Ready {
    fn data(&self) -> epoll::EventData {
        epoll::EventData::new_u64(match self {
            Ready::Link(at) => 2 * *at as u64,
            Ready::Endpoint(at) => 2 * *at as u64 + 1,
        })
    }

    fn from_data(data: epoll::EventData) -> Self {
        let at = (data.u64() / 2) as usize;
        if data.u64().is_multiple_of(2) { Ready::Link(at) } else { Ready::Endpoint(at) }
    }
}

impl<'a, E: Endpoint> FanInServer<'a, E> {
    /// The server of `session`, with the endpoint to the client of each of `links` in the same order.
    pub(crate) fn new(
        session: &'a Session,
        links: &'a [Link],
        endpoints: Vec<Box<BufferedEndpoint<E>>>,
    ) -> Result<Self, Failure> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .or_fail("epoll_create1", "the endpoints of the server")?;
        for (at, (link, endpoint)) in links.iter().zip(&endpoints).enumerate() {
            let both = link.descriptor().zip(endpoint.inner.input());
            let (link, input) =
                both.ok_or(Errno::OPNOTSUPP).or_fail("watch", "an endpoint that cannot be waited for")?;
            for (fd, ready) in [(link, Ready::Link(at)), (input, Ready::Endpoint(at))] {
                epoll::add(&epoll, fd, ready.data(), epoll::EventFlags::IN)
                    .or_fail("epoll_ctl", "an endpoint of the server")?;
            }
        }
        let clients =
            links.iter().zip(endpoints).map(|(link, endpoint)| ServedClient { link, endpoint, phase: None });
        let clock = Clock::new(session.orders.clock);
        let delay = InjectedDelay::from_orders(&session.orders, EndpointRole::Server, &clock)?;
        Ok(Self { session, clock, clients: clients.collect(), delay, epoll })
    }

    /// Serves every client until each has said that there is no further phase.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        let mut open = self.clients.len();
        // An endpoint that spins asks the event loop again and again, and never sleeps in it.
        let timeout = self.session.spins().then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut events = Vec::with_capacity(2 * open);
        while open > 0 {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(
                        Failure::from_errno("epoll_wait", "the endpoints of the server", errno).into()
                    );
                }
            }
            for event in &events {
                match Ready::from_data(event.data) {
                    Ready::Link(at) => open -= usize::from(!self.begin(at)?),
                    Ready::Endpoint(at) => self.message(at)?,
                }
            }
        }
        Ok(())
    }

    /// Takes what the client at `at` announces; says whether there is more to come from it.
    fn begin(&mut self, at: usize) -> Outcome<bool> {
        let client = &mut self.clients[at];
        let phase = announced_phase(client.link)?;
        if phase.kind == PhaseKind::End {
            let mut closed = [client.link.descriptor(), client.endpoint.inner.input()].into_iter().flatten();
            closed
                .try_for_each(|fd| epoll::delete(&self.epoll, fd))
                .or_fail("epoll_ctl", "an endpoint of the server")?;
            return Ok(false);
        }
        client.endpoint.check(self.session.check(phase.check));
        let is_noted = phase.kind == PhaseKind::Common && !self.session.workload().is_answered();
        client.phase = Some(RunningPhase {
            iterations: Iterations::from_phase(&phase),
            next: 0,
            before: of_this_thread(),
            usage: None,
            log: is_noted.then(|| ArrivalLog::new(self.clock, phase.iterations)),
        });
        Ok(true)
    }

    /// Serves one message of the client at `at`, which is ready. A client whose announcement was not received yet has to wait.
    fn message(&mut self, at: usize) -> Outcome<()> {
        let is_answered = self.session.workload().is_answered();
        let client = &mut self.clients[at];
        let Some(phase) = &mut client.phase else { return Ok(()) };
        let iteration = phase.next;
        let Iterations { timed, lead_out, .. } = &phase.iterations;
        let ends = phase.iterations.ranges().iter().any(|range| range.end == iteration + 1);
        let answer = if is_answered { Some(iteration) } else { ends.then_some(iteration + 1) };
        if iteration + 1 == timed.start {
            phase.before = of_this_thread();
        }
        if iteration == lead_out.start {
            phase.usage = Some(usage_between(phase.before, of_this_thread()));
        }
        if iteration == timed.start
            && let Some(log) = &mut phase.log
        {
            log.start();
        }
        let delay = self.delay.filter(|_| timed.contains(&iteration));
        client.endpoint.serve(iteration, answer, &mut || InjectedDelay::wait(&delay))?;
        if timed.contains(&iteration)
            && let Some(log) = &mut phase.log
        {
            log.arrived();
        }
        phase.next += 1;
        if phase.next == lead_out.end {
            let usage = phase.usage.unwrap_or_default();
            let times = phase.log.take().map(ArrivalLog::times);
            client.phase = None;
            let served_on = client.endpoint.inner.input().map(|input| ServedOn {
                input: input.as_raw_fd().cast_unsigned(),
                event_loop: self.epoll.as_raw_fd().cast_unsigned(),
            });
            // Of one phase after the other: where it was before this one, the one before has said.
            let elsewhere = self.session.elsewhere();
            let done = ServerPhase { usage, times, served_on, elsewhere, ..ServerPhase::default() };
            client.link.send(PeerMessage::Done(Box::new(done)), &[])?;
        }
        Ok(())
    }
}
