//! The endpoint that users of the ring have: the protocol over real shared memory.

use super::layout::RingGeometry;
use super::mapping::{Region, claim};
use super::protocol::Engine;
use super::wait::{FutexWait, WaitStrategy};
use crate::shared_memory::SharedMemory;
use crate::side::MemorySide;
use crate::{Errno, Failure};

/// One endpoint of a pair of rings between two processes.
#[derive(Debug)]
pub struct RingEndpoint<W: WaitStrategy = FutexWait>(
    Engine<Region<SharedMemory>, W, { RingGeometry::SLOTS }>,
);

impl<W: WaitStrategy> RingEndpoint<W> {
    /// Takes `side` of the pair of `geometry` in `memory`, to wait as `wait` does. The peer takes the other side with
    /// the same geometry and the same way of waiting.
    pub fn claim(
        memory: SharedMemory,
        geometry: RingGeometry,
        side: MemorySide,
        wait: W,
    ) -> Result<Self, Failure> {
        claim(memory, geometry, side, wait).map(Self)
    }

    /// Sends a first part of `bytes` and returns its length. Waits while there is no room.
    ///
    /// `Errno::PIPE` when there is no room and the peer has closed. `Errno::BADMSG` when the peer has written what no
    /// endpoint of a ring writes.
    #[inline(always)]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.0.send(bytes)
    }

    /// Receives at least 1 byte into `into`, and at most one piece. Waits until there is one.
    ///
    /// `Errno::PIPE` when there is none and the peer has closed. `Errno::BADMSG` as in [`send`](Self::send).
    #[inline(always)]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.0.receive(into)
    }

    /// The same endpoint, which does not dirty the lines of messages in the bulk area: for a user that receives in
    /// place and does not touch the payload. The lines then stay in the cache in which they were written.
    pub fn without_dirtying(mut self) -> Self {
        self.0.incoming.dirties = false;
        self
    }

    /// Room for a next part of a message: 1 to `most_bytes` bytes, of any content, which [`commit`](Self::commit)
    /// sends. Waits while there is no room, and fails as [`send`](Self::send).
    ///
    /// This endpoint alone knows where they lie, and an endpoint of a ring does not touch them until they are
    /// committed. That is all that makes the reference exclusive. A peer that breaks the protocol, or any process
    /// that maps the memory, can change these bytes under it: no process can be kept from that, and the language does
    /// not provide for it. So nothing that must be right may depend on their values.
    #[inline(always)]
    pub fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        self.0.reserve(most_bytes)
    }

    /// Sends the first `bytes` of what [`reserve`](Self::reserve) returned last. `Errno::INVAL` when that was less,
    /// or when anything was sent since.
    #[inline(always)]
    pub fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        self.0.commit(bytes)
    }

    /// The next bytes, where they lie: 1 to `most_bytes` of one piece. Waits until there are any, and fails as
    /// [`receive`](Self::receive). Until they are released, the next peek returns the same bytes.
    ///
    /// Where they lie and how many there are is checked, whatever the peer wrote. That they do not change under the
    /// reference depends on the peer, as in [`reserve`](Self::reserve).
    #[inline(always)]
    pub fn peek(&mut self, most_bytes: usize) -> Result<&[u8], Errno> {
        self.0.peek(most_bytes)
    }

    /// Releases the next `bytes`. `Errno::INVAL` when [`peek`](Self::peek) could not return so many.
    #[inline(always)]
    pub fn release(&mut self, bytes: usize) -> Result<(), Errno> {
        self.0.release(bytes)
    }
}
