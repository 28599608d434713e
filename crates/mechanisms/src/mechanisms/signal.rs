//! A signal to the peer, which sleeps in sigsuspend(2) and runs a handler that does almost nothing.

use crate::support::cards::SIGNAL;
use crate::support::wake::{BetweenThreads, WakeEndpoint, Waker};
use model::card::{Card, Support};
use sys::signal::{Signal, SignalSender, SignalSuspender, ThreadId};
use sys::{Errno, Failure};

/// kill(2) and sigsuspend(2).
#[derive(Debug)]
pub(crate) struct KillAndSuspend {
    sender: SignalSender,
    suspender: SignalSuspender,
}

impl BetweenThreads for KillAndSuspend {
    const CARD: Card = Card {
        name: "signal",
        summary: "SIGUSR1 by kill, awaited in sigsuspend, with a handler",
        man: &["kill(2)", "sigsuspend(2)", "signal(7)"],
        ..SIGNAL
    };
    type Receiver = SignalSuspender;
    type End = WakeEndpoint<Self>;

    fn probe() -> Support {
        Support::UNLIMITED
    }

    fn receiver() -> Result<SignalSuspender, Failure> {
        SignalSuspender::new()
    }

    fn endpoint(receiver: SignalSuspender, peer: ThreadId) -> Result<WakeEndpoint<Self>, Failure> {
        Ok(WakeEndpoint(Self { sender: SignalSender::new(peer, Signal::Standard), suspender: receiver }))
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
