//! Notifications from ring to ring: one puts a completion into the other (`IORING_OP_MSG_RING`, io_uring_enter(2)).

use super::queues::{Queues, SubmissionMode};
use crate::{Errno, Failure};
use io_uring::{opcode, types};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};

/// The user data of a completion that another ring sent.
const NOTIFICATION: u64 = 0;

/// A ring that sends notifications to other rings, by their descriptors, and receives them.
#[derive(Debug)]
pub struct MessageRing {
    queues: Queues,
    /// How many notifications have arrived for which nobody has waited yet.
    pub(super) received: u64,
}

impl MessageRing {
    /// A ring of the calling thread, which alone can wait for notifications.
    pub fn open() -> Result<Self, Failure> {
        Ok(Self { queues: Queues::open(SubmissionMode::Caller)?, received: 0 })
    }

    /// Notifies `peer`, the descriptor of another message ring. `Errno::OWNERDEAD` when its thread has ended.
    #[inline(always)]
    pub fn notify(&mut self, peer: BorrowedFd<'_>) -> Result<(), Errno> {
        let entry = opcode::MsgRingData::new(types::Fd(peer.as_raw_fd()), 0, NOTIFICATION, None).build();
        let Self { queues, received } = self;
        // SAFETY: it names no memory.
        unsafe { queues.run(entry, |_| *received += 1) }.map(drop)
    }

    /// Takes one notification. Sleeps until there is one.
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
        // SAFETY: the ring is open as long as `self` lives.
        unsafe { BorrowedFd::borrow_raw(self.queues.ring.as_raw_fd()) }
    }
}
