//! Mechanisms that wake the peer and carry nothing. Not a mechanism itself.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use model::Params;
use model::card::{Card, Support};
use rustix::fd::OwnedFd;
use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::marker::PhantomData;
use sys::signal::ThreadId;
use sys::{Errno, Failure, OrFail};

/// An endpoint that wakes its peer, and sleeps until its peer wakes it.
pub(crate) trait Waker {
    /// Wakes the peer.
    fn wake(&mut self) -> Result<(), Errno>;
    /// Sleeps until the peer has woken this endpoint. Each wake-up ends one sleep.
    fn sleep(&mut self) -> Result<(), Errno>;
}

/// A [`Waker`] as an endpoint whose messages are empty.
#[derive(Debug)]
pub(crate) struct WakeEndpoint<W>(pub(crate) W);

impl<W: Waker> Endpoint for WakeEndpoint<W> {
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

/// A mechanism for which each endpoint must know only which thread the other is.
pub(crate) trait BetweenThreads {
    /// What the mechanism declares about itself.
    const CARD: Card;
    /// What an endpoint must have before its peer may send to it.
    type Receiver;
    /// A connected endpoint.
    type End: Endpoint + 'static;
    /// Whether the mechanism works on this host. Tries it for real.
    fn probe() -> Support;
    /// Makes the calling thread ready to receive.
    fn receiver() -> Result<Self::Receiver, Failure>;
    /// The endpoint whose peer is `peer`.
    fn endpoint(receiver: Self::Receiver, peer: ThreadId) -> Result<Self::End, Failure>;
}

/// [`BetweenThreads`] as a mechanism: the ticket tells the server the client's thread, and the server answers with
/// its own over a pipe.
#[derive(Debug)]
pub(crate) struct Introduced<M>(PhantomData<M>);

impl<M: BetweenThreads> Mechanism for Introduced<M> {
    const CARD: Card = M::CARD;
    type Bound = (M::Receiver, OwnedFd);
    type End = M::End;

    fn probe(_: &Params) -> Support {
        M::probe()
    }

    fn bind(_: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (answer, to_answer) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "an introduction")?;
        let ticket = Ticket { address: ThreadId::current().to_bytes().to_vec(), fds: vec![to_answer] };
        Ok(((M::receiver()?, answer), ticket))
    }

    fn accept((receiver, answer): Self::Bound) -> Result<M::End, Failure> {
        let mut peer = [0; 8];
        let count = read(&answer, &mut peer).or_fail("read", "the server's introduction")?;
        if count < peer.len() {
            return Err(Failure::from_errno("read", "the server's introduction", Errno::PIPE));
        }
        M::endpoint(receiver, ThreadId::from_bytes(peer))
    }

    fn connect(_: &TrialContext<'_>, ticket: Ticket) -> Result<M::End, Failure> {
        let receiver = M::receiver()?;
        let peer = ticket.address.as_slice().try_into().map(ThreadId::from_bytes);
        let peer = peer.map_err(|_| Failure::from_errno("take the ticket of", M::CARD.name, Errno::INVAL))?;
        let [to_client] = ticket.descriptors(M::CARD.name)?;
        // The client may send as soon as it has read this. The receiver is ready by now.
        write(&to_client, &ThreadId::current().to_bytes()).or_fail("write", "an introduction")?;
        M::endpoint(receiver, peer)
    }
}
