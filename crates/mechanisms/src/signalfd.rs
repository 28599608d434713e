//! A signal to the peer, which reads it from a descriptor instead of handling it.

use crate::wake::{BetweenThreads, WAKE_UP, WakeEnd, Waker};
use model::card::{Card, Reach, Support};
use rustix::fd::OwnedFd;
use rustix::io::{read, retry_on_intr};
use sys::signal::{Sender, Signal, Thread, descriptor};
use sys::{Errno, Failure};

/// kill(2) and signalfd(2).
#[derive(Debug)]
pub struct Signalfd {
    sender: Sender,
    descriptor: OwnedFd,
}

impl BetweenThreads for Signalfd {
    const CARD: Card = Card {
        name: "signalfd",
        summary: "SIGUSR1 by kill, read from a signalfd",
        reach: Reach::Host,
        limits: "a pending signal takes up the next; the same user only",
        man: &["kill(2)", "signalfd(2)"],
        one_endpoint: true,
        ..WAKE_UP
    };
    type Receiver = OwnedFd;
    type End = WakeEnd<Self>;

    fn probe() -> Support {
        Support::UNLIMITED
    }

    fn receiver() -> Result<OwnedFd, Failure> {
        descriptor(Signal::Standard)
    }

    fn end(receiver: OwnedFd, peer: Thread) -> Result<WakeEnd<Self>, Failure> {
        Ok(WakeEnd(Self { sender: Sender::new(peer, Signal::Standard), descriptor: receiver }))
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
