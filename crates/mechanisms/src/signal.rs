//! A signal to the peer, which sleeps in sigsuspend(2) and runs a handler that does next to nothing.

use crate::wake::{BetweenThreads, WAKE_UP, WakeEnd, Waker};
use model::card::{Card, Reach, Support};
use sys::signal::{Sender, Signal, Suspender, Thread};
use sys::{Errno, Failure};

/// kill(2) and sigsuspend(2).
#[derive(Debug)]
pub struct KillAndSuspend {
    sender: Sender,
    suspender: Suspender,
}

impl BetweenThreads for KillAndSuspend {
    const CARD: Card = Card {
        name: "signal",
        summary: "SIGUSR1 by kill, awaited in sigsuspend by way of a handler",
        reach: Reach::Host,
        limits: "a pending signal takes up the next; the same user only",
        man: &["kill(2)", "sigsuspend(2)", "signal(7)"],
        one_endpoint: true,
        ..WAKE_UP
    };
    type Receiver = Suspender;
    type End = WakeEnd<Self>;

    fn probe() -> Support {
        Support::UNLIMITED
    }

    fn receiver() -> Result<Suspender, Failure> {
        Suspender::new()
    }

    fn end(receiver: Suspender, peer: Thread) -> Result<WakeEnd<Self>, Failure> {
        Ok(WakeEnd(Self { sender: Sender::new(peer, Signal::Standard), suspender: receiver }))
    }
}

impl Waker for KillAndSuspend {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.sender.kill()
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.suspender.sleep()
    }
}
