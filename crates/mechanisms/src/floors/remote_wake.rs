//! A floor: two processes on two CPUs, each asleep until the other wakes it.
//!
//! Two eventfds are the least by which the kernel wakes a sleeper on another CPU: a futex wakes it in the same time, and
//! takes a little more CPU time (docs/lab/method-page.md). An iteration is four system calls and two wake-ups.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::WAKE_UP;
use crate::support::probe::support_of;
use model::Params;
use model::card::{Card, CardKind, Support};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{read, retry_on_intr, write};
use sys::{Errno, Failure, OrFail};

/// eventfd(2), one for each direction.
#[derive(Debug)]
pub(crate) struct RemoteWake;

/// An endpoint that raises one counter, and sleeps until the other is raised.
#[derive(Debug)]
pub(crate) struct RemoteWakeEndpoint {
    own: OwnedFd,
    peers: OwnedFd,
}

impl Mechanism for RemoteWake {
    const CARD: Card = Card {
        kind: CardKind::Floor,
        name: "remote-wake",
        summary: "two processes on two CPUs that wake each other, by eventfds",
        limits: "carries nothing but the wake-up; two CPUs",
        man: &["eventfd(2)"],
        ..WAKE_UP
    };
    type Bound = RemoteWakeEndpoint;
    type End = RemoteWakeEndpoint;

    fn probe(_: &Params) -> Support {
        support_of(open())
    }

    fn bind(_: &TrialContext<'_>) -> Result<(RemoteWakeEndpoint, Ticket), Failure> {
        let (own, peers) = (open()?, open()?);
        let fds = [&peers, &own].map(|fd| fd.try_clone().or_fail("dup", "eventfd"));
        let fds = fds.into_iter().collect::<Result<_, _>>()?;
        Ok((RemoteWakeEndpoint { own, peers }, Ticket { address: Vec::new(), fds }))
    }

    fn accept(bound: RemoteWakeEndpoint) -> Result<RemoteWakeEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(_: &TrialContext<'_>, ticket: Ticket) -> Result<RemoteWakeEndpoint, Failure> {
        let [own, peers] = ticket.descriptors("remote-wake")?;
        Ok(RemoteWakeEndpoint { own, peers })
    }
}

fn open() -> Result<OwnedFd, Failure> {
    eventfd(0, EventfdFlags::CLOEXEC).or_fail("eventfd", "a counter of 0")
}

impl Endpoint for RemoteWakeEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        retry_on_intr(|| write(&self.peers, &1_u64.to_ne_bytes()))?;
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut count = [0; 8];
        retry_on_intr(|| read(&self.own, &mut count))?;
        // Two wake-ups in one mean that an iteration was lost.
        if u64::from_ne_bytes(count) == 1 { Ok(into.len()) } else { Err(Errno::BADMSG) }
    }
}
