//! A signal to the peer, which reads it from a descriptor instead of handling it.

use crate::support::cards::SIGNAL;
use crate::support::wake::{BetweenThreads, WakeEndpoint, Waker};
use model::card::{Card, Support};
use rustix::fd::OwnedFd;
use rustix::io::{read, retry_on_intr};
use sys::signal::{Signal, SignalSender, ThreadId, descriptor};
use sys::{Errno, Failure};

/// kill(2) and signalfd(2).
#[derive(Debug)]
pub(crate) struct Signalfd {
    sender: SignalSender,
    descriptor: OwnedFd,
}

impl BetweenThreads for Signalfd {
    const CARD: Card = Card {
        name: "signalfd",
        summary: "SIGUSR1 by kill, read from a signalfd",
        man: &["kill(2)", "signalfd(2)"],
        ..SIGNAL
    };
    type Receiver = OwnedFd;
    type End = WakeEndpoint<Self>;

    fn probe() -> Support {
        Support::UNLIMITED
    }

    fn receiver() -> Result<OwnedFd, Failure> {
        descriptor(Signal::Standard)
    }

    fn endpoint(receiver: OwnedFd, peer: ThreadId) -> Result<WakeEndpoint<Self>, Failure> {
        Ok(WakeEndpoint(Self { sender: SignalSender::new(peer, Signal::Standard), descriptor: receiver }))
    }
}

impl Waker for Signalfd {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.sender.kill()
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        let mut information = [0; 128];
        retry_on_intr(|| read(&self.descriptor, &mut information)).map(drop)
    }
}
