//! What rows share that wake the peer and carry nothing. Not a mechanism itself.

use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::{Params, Workload};
use rustix::fd::OwnedFd;
use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::marker::PhantomData;
use sys::signal::Thread;
use sys::{Errno, Failure, OrFail};

/// The card of a wake-up, but for its name, summary and manual pages.
pub(crate) const WAKE_UP: Card = Card {
    name: "",
    kind: CardKind::Mechanism,
    summary: "",
    framing: Framing::Token,
    reach: Reach::Related,
    payload: Payload::None,
    fds: false,
    hangup: false,
    polled: false,
    one_endpoint: false,
    empty: false,
    params: &[],
    workloads: &[Workload::Latency],
    sized: false,
    limits: "carries nothing but the wake-up",
    man: &[],
};

/// An end that wakes its peer, and sleeps until its peer wakes it.
pub trait Waker {
    /// Wakes the peer.
    fn wake(&mut self) -> Result<(), Errno>;
    /// Sleeps until the peer has woken this end, once for each time.
    fn sleep(&mut self) -> Result<(), Errno>;
}

/// A [`Waker`] as an endpoint whose messages are empty.
#[derive(Debug)]
pub struct WakeEnd<W>(pub(crate) W);

impl<W: Waker> Endpoint for WakeEnd<W> {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.0.wake()?;
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.0.sleep()?;
        Ok(into.len())
    }
}

/// A mechanism that needs nothing but that each end knows which thread the other is.
pub trait BetweenThreads {
    /// What it declares about itself.
    const CARD: Card;
    /// What an end must have before its peer may send to it.
    type Receiver;
    /// A connected end.
    type End: Endpoint;
    /// Whether it works on this host.
    fn probe() -> Support;
    /// Makes the calling thread ready to receive.
    fn receiver() -> Result<Self::Receiver, Failure>;
    /// The end whose peer is `peer`.
    fn end(receiver: Self::Receiver, peer: Thread) -> Result<Self::End, Failure>;
}

/// [`BetweenThreads`] as a row of the table: client's ticket introduces it, server answers over a pipe.
#[derive(Debug)]
pub struct Introduced<M>(PhantomData<M>);

impl<M: BetweenThreads> Mechanism for Introduced<M> {
    const CARD: Card = M::CARD;
    type Bound = (M::Receiver, OwnedFd);
    type End = M::End;

    fn probe(_: &Params) -> Support {
        M::probe()
    }

    fn bind(_: &Trial<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (answer, to_answer) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "an introduction")?;
        let ticket = Ticket { address: Thread::current().to_bytes().to_vec(), fds: vec![to_answer] };
        Ok(((M::receiver()?, answer), ticket))
    }

    fn accept((receiver, answer): Self::Bound) -> Result<M::End, Failure> {
        let mut peer = [0; 8];
        let count = read(&answer, &mut peer).or_fail("read", "server's introduction")?;
        if count < peer.len() {
            return Err(Failure::of("read", "server's introduction", Errno::PIPE));
        }
        M::end(receiver, Thread::from_bytes(peer))
    }

    fn connect(_: &Trial<'_>, ticket: Ticket) -> Result<M::End, Failure> {
        let receiver = M::receiver()?;
        let peer = ticket.address.as_slice().try_into().map(Thread::from_bytes);
        let peer = peer.map_err(|_| Failure::of("take the ticket of", M::CARD.name, Errno::INVAL))?;
        let [to_client] = ticket.descriptors(M::CARD.name)?;
        // Client may send as soon as it has read this: the receiver is ready by now.
        write(&to_client, &Thread::current().to_bytes()).or_fail("write", "an introduction")?;
        M::end(receiver, peer)
    }
}
