//! A real-time signal with a value, which is queued and not merged with the one before.

use crate::cache_line::{TOKEN_BYTES, pack, unpack};
use crate::contract::Endpoint;
use crate::wake::{BetweenThreads, WAKE_UP};
use model::card::{Card, Payload, Reach, Support};
use sys::signal::{Sender, Signal, Thread, Waiter};
use sys::{Errno, Failure};

/// sigqueue(3) and sigwaitinfo(2).
#[derive(Debug)]
pub struct Sigqueue {
    sender: Sender,
    waiter: Waiter,
}

impl BetweenThreads for Sigqueue {
    const CARD: Card = Card {
        name: "sigqueue",
        summary: "SIGRTMIN with a value by sigqueue, awaited in sigwaitinfo",
        reach: Reach::Host,
        payload: Payload::Bytes,
        sized: true,
        limits: "4 bytes; as many pending signals as 'ulimit -i' allows; the same user only",
        man: &["sigqueue(3)", "sigwaitinfo(2)", "signal(7)"],
        one_endpoint: true,
        ..WAKE_UP
    };
    type Receiver = Waiter;
    type End = Self;

    fn probe() -> Support {
        Support::Yes { largest_bytes: Some(TOKEN_BYTES as u64) }
    }

    fn receiver() -> Result<Waiter, Failure> {
        Waiter::new(Signal::Queued)
    }

    fn end(receiver: Waiter, peer: Thread) -> Result<Self, Failure> {
        Ok(Self { sender: Sender::new(peer, Signal::Queued), waiter: receiver })
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
