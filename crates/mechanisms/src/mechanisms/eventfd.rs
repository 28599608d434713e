//! Two eventfds, one for each direction: a counter that one endpoint raises and the other sleeps for.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::WAKE_UP;
use crate::support::descriptor::{DescriptorEndpoint, Fds};
use crate::support::probe::support_of;
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{BorrowedFd, OwnedFd};
use sys::{Errno, Failure, OrFail};

/// eventfd(2).
#[derive(Debug)]
pub(crate) struct Eventfd;

/// An endpoint that raises one counter by one, and takes from the other.
#[derive(Debug)]
pub(crate) struct EventfdEndpoint(DescriptorEndpoint);

impl Mechanism for Eventfd {
    const CARD: Card = Card {
        name: "eventfd",
        summary: "a counter in the kernel, one for each direction",
        params: &[WAIT],
        limits: "carries a count; wake-ups that arrive before the peer sleeps are added up",
        man: &["eventfd(2)"],
        polled: true,
        ..WAKE_UP
    };
    type Bound = EventfdEndpoint;
    type End = EventfdEndpoint;

    fn probe(_: &Params) -> Support {
        support_of(open())
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(EventfdEndpoint, Ticket), Failure> {
        let (to_server, to_client) = (open()?, open()?);
        let server = [&to_server, &to_client].map(|fd| fd.try_clone().or_fail("dup", "eventfd"));
        let fds = server.into_iter().collect::<Result<_, _>>()?;
        let endpoint = endpoint(Fds { input: to_client, output: to_server }, trial.params)?;
        Ok((endpoint, Ticket { address: Vec::new(), fds }))
    }

    fn accept(bound: EventfdEndpoint) -> Result<EventfdEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<EventfdEndpoint, Failure> {
        let [input, output] = ticket.descriptors("eventfd")?;
        endpoint(Fds { input, output }, trial.params)
    }
}

fn open() -> Result<OwnedFd, Failure> {
    eventfd(0, EventfdFlags::CLOEXEC).or_fail("eventfd", "a counter of 0")
}

fn endpoint(fds: Fds, params: &Params) -> Result<EventfdEndpoint, Failure> {
    DescriptorEndpoint::new(fds, params, &Eventfd::CARD, Vec::new()).map(EventfdEndpoint)
}

impl Endpoint for EventfdEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.0.send(&1_u64.to_ne_bytes())?;
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut count = [0; 8];
        self.0.receive(&mut count)?;
        // Two wake-ups in one mean that an iteration was lost.
        if u64::from_ne_bytes(count) == 1 { Ok(into.len()) } else { Err(Errno::BADMSG) }
    }

    fn settings(&self) -> Vec<Setting> {
        self.0.settings()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.0.input()
    }
}
