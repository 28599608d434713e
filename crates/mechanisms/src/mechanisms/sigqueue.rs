//! A real-time signal with a value. It is queued, and not merged with the one before.

use crate::contract::Endpoint;
use crate::support::cards::SIGNAL;
use crate::support::token::{TOKEN_BYTES, pack, unpack};
use crate::support::wake::BetweenThreads;
use model::card::{Card, Payload, Support};
use model::semantics::{Atomic, Loss, Order, Semantics, WhenFull};
use sys::signal::{Signal, SignalSender, SignalWaiter, ThreadId};
use sys::{Errno, Failure};

/// sigqueue(3) and sigwaitinfo(2).
#[derive(Debug)]
pub(crate) struct Sigqueue {
    sender: SignalSender,
    waiter: SignalWaiter,
}

impl BetweenThreads for Sigqueue {
    const CARD: Card = Card {
        name: "sigqueue",
        summary: "SIGRTMIN with a value by sigqueue, awaited in sigwaitinfo",
        payload: Payload::Bytes,
        sized: true,
        limits: "4 bytes; as many pending signals as 'ulimit -i' allows; the same user only",
        semantics: Semantics {
            order: Order::Kept,
            loss: Loss::Never,
            when_full: WhenFull::Refuses,
            atomic: Atomic::Message,
            most_bytes: Some(4),
            ..SIGNAL.semantics
        },
        man: &["sigqueue(3)", "sigwaitinfo(2)", "signal(7)"],
        ..SIGNAL
    };
    type Receiver = SignalWaiter;
    type End = Self;

    fn probe() -> Support {
        Support::Yes { largest_bytes: Some(TOKEN_BYTES as u64) }
    }

    fn receiver() -> Result<SignalWaiter, Failure> {
        SignalWaiter::new(Signal::Queued)
    }

    fn endpoint(receiver: SignalWaiter, peer: ThreadId) -> Result<Self, Failure> {
        Ok(Self { sender: SignalSender::new(peer, Signal::Queued), waiter: receiver })
    }
}

impl Endpoint for Sigqueue {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.sender.queue(pack(bytes)?)?;
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        Ok(unpack(self.waiter.wait()?, into))
    }
}
