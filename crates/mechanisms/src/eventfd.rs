//! Two eventfds, one for each direction: a counter that one end raises and the other sleeps for.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::descriptor::{DescriptorEnd, Fds, WAIT, supported};
use crate::wake::WAKE_UP;
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{BorrowedFd, OwnedFd};
use sys::{Errno, Failure, OrFail};

/// eventfd(2).
#[derive(Debug)]
pub struct Eventfd;

/// An end that raises one counter by one and takes from the other.
#[derive(Debug)]
pub struct EventfdEnd(DescriptorEnd);

impl Mechanism for Eventfd {
    const CARD: Card = Card {
        name: "eventfd",
        summary: "a counter in the kernel, one for each direction",
        params: &[WAIT],
        limits: "carries a count; wake-ups that are not taken in time become one",
        man: &["eventfd(2)"],
        polled: true,
        ..WAKE_UP
    };
    type Bound = EventfdEnd;
    type End = EventfdEnd;

    fn probe(_: &Params) -> Support {
        supported(open())
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(EventfdEnd, Ticket), Failure> {
        let (to_server, to_client) = (open()?, open()?);
        let server = [&to_server, &to_client].map(|fd| fd.try_clone().or_fail("dup", "eventfd"));
        let fds = server.into_iter().collect::<Result<_, _>>()?;
        let end = end(Fds { input: to_client, output: to_server }, trial.params)?;
        Ok((end, Ticket { address: Vec::new(), fds }))
    }

    fn accept(bound: EventfdEnd) -> Result<EventfdEnd, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<EventfdEnd, Failure> {
        let [input, output] = ticket.descriptors("eventfd")?;
        end(Fds { input, output }, trial.params)
    }
}

fn open() -> Result<OwnedFd, Failure> {
    eventfd(0, EventfdFlags::CLOEXEC).or_fail("eventfd", "a counter of 0")
}

fn end(fds: Fds, params: &Params) -> Result<EventfdEnd, Failure> {
    DescriptorEnd::new(fds, params, &Eventfd::CARD, Vec::new()).map(EventfdEnd)
}

impl Endpoint for EventfdEnd {
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
