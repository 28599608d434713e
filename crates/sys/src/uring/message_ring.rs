//! A completion that one ring puts into another: `IORING_OP_MSG_RING`, io_uring_enter(2).

use super::queues::{Queues, SubmissionMode};
use crate::{Errno, Failure};
use io_uring::{opcode, types};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};

/// The mark of a completion that another ring sent.
const NOTIFICATION: u64 = 0;

/// A ring that others ring, by its descriptor, and that rings others.
#[derive(Debug)]
pub struct MessageRing {
    queues: Queues,
    /// How often it was received and nobody has waited for it.
    pub(super) received: u64,
}

impl MessageRing {
    /// A ring of the calling thread, which alone can wait for it.
    pub fn open() -> Result<Self, Failure> {
        Ok(Self { queues: Queues::open(SubmissionMode::Caller)?, received: 0 })
    }

    /// Rings `peer`, the descriptor of another of these. `Errno::OWNERDEAD` when its thread has ended.
    #[inline(always)]
    pub fn notify(&mut self, peer: BorrowedFd<'_>) -> Result<(), Errno> {
        let entry = opcode::MsgRingData::new(types::Fd(peer.as_raw_fd()), 0, NOTIFICATION, None).build();
        let Self { queues, received } = self;
        // SAFETY: it names no memory.
        unsafe { queues.run(entry, |_| *received += 1) }.map(drop)
    }

    /// Sleeps until it has been received, once for each time.
    #[inline(always)]
    pub fn wait(&mut self) {
        let Self { queues, received } = self;
        while *received == 0 {
            queues.await_some(|_| *received += 1);
        }
        *received -= 1;
    }
}

impl AsFd for MessageRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring is open as long as `self` is there.
        unsafe { BorrowedFd::borrow_raw(self.queues.ring.as_raw_fd()) }
    }
}
