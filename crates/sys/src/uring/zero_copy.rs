//! Sends without a copy, as far as the kernel can: `IORING_OP_SEND_ZC`, io_uring_enter(2). Receives are copied.
//!
//! Such a send completes twice: when the socket has taken the bytes, and when the kernel is done with the memory.

use super::queues::{Queues, SubmissionMode, length, operation_result};
use crate::anonymous::Mapping;
use crate::{Errno, Failure};
use io_uring::{cqueue, opcode, types};
use rustix::fd::{AsRawFd, OwnedFd};
use std::ops::Range;

/// How many buffers there are. Messages are sent from one after the other.
pub const COUNT: usize = 8;

/// `IORING_SEND_ZC_REPORT_USAGE` and `IORING_NOTIF_USAGE_ZC_COPIED` of linux/io_uring.h (Linux 6.2).
const REPORT_USAGE: u16 = 1 << 3;
const COPIED: u32 = 1 << 31;

/// An endpoint over a socket that sends from buffers of its own. It uses a buffer again when the kernel is done with
/// it.
#[derive(Debug)]
pub struct UringZeroCopy {
    queues: Queues,
    socket: OwnedFd,
    pool: Pool,
}

/// How many sends the kernel is done with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZeroCopySends {
    /// All of them.
    pub sends: u64,
    /// Those whose bytes the kernel copied after all.
    pub copied: u64,
}

#[derive(Debug)]
struct Pool {
    memory: Mapping,
    size_bytes: usize,
    /// The next buffer: the one whose last send is the oldest.
    next: usize,
    /// For each buffer, how many sends from it the kernel is not done with.
    held: [u32; COUNT],
    /// The result of the send that is awaited.
    send_result: Option<i32>,
    sent: ZeroCopySends,
}

impl UringZeroCopy {
    /// An endpoint over `socket`, which must block, with buffers of `size_bytes` each.
    pub fn open(socket: OwnedFd, size_bytes: usize) -> Result<Self, Failure> {
        let memory = Mapping::new(COUNT * size_bytes)?;
        let pool = Pool {
            memory,
            size_bytes,
            next: 0,
            held: [0; COUNT],
            send_result: None,
            sent: ZeroCopySends::default(),
        };
        Ok(Self { queues: Queues::open(SubmissionMode::Caller)?, socket, pool })
    }

    /// At most `most_bytes` bytes of the next buffer. Sleeps until the kernel is done with it.
    #[inline(always)]
    pub fn reserve(&mut self, most_bytes: usize) -> &mut [u8] {
        let Self { queues, pool, .. } = self;
        while pool.held[pool.next] > 0 {
            queues.await_some(|completion| pool.note(completion));
        }
        let count = most_bytes.min(pool.size_bytes);
        // SAFETY: inside the mapping, which was zeroed. No operation reads the buffer, because all sends from it are
        // over and none can begin while the endpoint is borrowed.
        unsafe { std::slice::from_raw_parts_mut(pool.at(pool.next), count) }
    }

    /// Sends the first `bytes` of the next buffer, all of them, and goes on to the buffer after it. Sleeps until the
    /// socket has taken them, not until the kernel is done with the buffer.
    #[inline(always)]
    pub fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        let Self { queues, socket, pool } = self;
        if bytes > pool.size_bytes {
            return Err(Errno::INVAL);
        }
        let buffer = pool.next;
        pool.next = (buffer + 1) % COUNT;
        let mut start = 0;
        while start < bytes {
            match pool.send(queues, socket, buffer, start..bytes) {
                Err(Errno::INTR) => {}
                sent => start += sent?,
            }
        }
        Ok(())
    }

    /// Receives at least 1 byte into `into`. Sleeps until there is one. `Errno::PIPE` when the peer has closed.
    #[inline(always)]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let Self { queues, socket, pool } = self;
        let entry =
            opcode::Recv::new(types::Fd(socket.as_raw_fd()), into.as_mut_ptr(), length(into.len())).build();
        // SAFETY: `run` returns when the operation has completed, and `into` is borrowed until then.
        match unsafe { queues.run(entry, |completion| pool.note(completion)) } {
            Ok(0) => Err(Errno::PIPE),
            result => result,
        }
    }

    /// How many sends the kernel is done with.
    pub fn sends(&self) -> ZeroCopySends {
        self.pool.sent
    }
}

impl Pool {
    /// The first byte of `buffer`, which is one of `COUNT`.
    #[inline(always)]
    fn at(&self, buffer: usize) -> *mut u8 {
        self.memory.base().as_ptr().wrapping_add(buffer % COUNT * self.size_bytes)
    }

    /// Sends a first part of the bytes of `buffer` in `range`, and returns how many the socket took.
    #[inline(always)]
    fn send(
        &mut self,
        queues: &mut Queues,
        socket: &OwnedFd,
        buffer: usize,
        range: Range<usize>,
    ) -> Result<usize, Errno> {
        let (socket, from) = (types::Fd(socket.as_raw_fd()), self.at(buffer).wrapping_add(range.start));
        let entry = opcode::SendZc::new(socket, from, length(range.len())).zc_flags(REPORT_USAGE).build();
        // SAFETY: it names memory of this value, which is not written before the kernel is done with it (`reserve`).
        // After the first completion the kernel holds the pages themselves and no longer uses the address. So the
        // mapping may go before the kernel is done, because nobody else ever gets those pages.
        unsafe { queues.push(&entry.user_data(buffer as u64)) }?;
        loop {
            queues.await_some(|completion| self.note(completion));
            if let Some(result) = self.send_result.take() {
                return operation_result(result);
            }
        }
    }

    /// Notes the result of a send, or that the kernel is done with the buffer of one.
    #[inline(always)]
    fn note(&mut self, completion: &cqueue::Entry) {
        let held = &mut self.held[completion.user_data() as usize % COUNT];
        let flags = completion.flags();
        if cqueue::notif(flags) {
            *held = held.saturating_sub(1);
            self.sent.sends += 1;
            self.sent.copied += u64::from(completion.result() as u32 & COPIED != 0);
        } else {
            *held += u32::from(cqueue::more(flags));
            self.send_result = Some(completion.result());
        }
    }
}
