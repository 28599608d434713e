//! Bytes out of one descriptor and into another through a ring.

use super::provided::Provided;
use super::registered::Registered;
use super::{Queues, Taker, length};
use crate::{Errno, Failure};
use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use rustix::fd::{AsRawFd, OwnedFd};

/// What the descriptors are, which says by which operations bytes pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// Pipes: `IORING_OP_READ` and `IORING_OP_WRITE`.
    Pipe,
    /// Sockets: `IORING_OP_RECV` and `IORING_OP_SEND`.
    Socket,
}

/// Which memory the operations name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffers {
    /// The caller's.
    Callers,
    /// One buffer of so many bytes for each direction, which the kernel has pinned, and to and from which bytes are
    /// copied (`IORING_OP_READ_FIXED`, `IORING_OP_WRITE_FIXED`).
    Registered(usize),
    /// The caller's to send. Received bytes come into buffers of so many bytes that lie ready for the kernel, by one
    /// operation that goes on (multishot), and are copied from there.
    Provided(usize),
}

/// An end that receives from one descriptor and sends into another, which may be the same. Both must block, for a
/// descriptor that does not is answered at once where there is nothing.
#[derive(Debug)]
pub struct Stream {
    queues: Queues,
    descriptors: Descriptors,
    memory: Memory,
}

#[derive(Debug)]
pub(super) struct Descriptors {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) object: Object,
}

#[derive(Debug)]
enum Memory {
    Callers,
    Registered(Registered),
    Provided(Provided),
}

impl Stream {
    /// An end over `input` and `output`.
    pub fn open(
        input: OwnedFd,
        output: OwnedFd,
        object: Object,
        buffers: Buffers,
        taker: Taker,
    ) -> Result<Self, Failure> {
        let queues = Queues::open(taker)?;
        let memory = match buffers {
            Buffers::Callers => Memory::Callers,
            Buffers::Registered(size_bytes) => Memory::Registered(Registered::new(&queues, size_bytes)?),
            Buffers::Provided(size_bytes) => Memory::Provided(Provided::new(&queues, size_bytes)?),
        };
        Ok(Self { queues, descriptors: Descriptors { input, output, object }, memory })
    }

    /// Hands over a first part of `bytes`; sleeps until there is room for it.
    #[inline(always)]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let Self { queues, descriptors, memory } = self;
        match memory {
            // SAFETY: `run` returns when the operation has completed, and `bytes` is borrowed until then.
            Memory::Callers => unsafe { queues.run(descriptors.sends(bytes), |_| {}) },
            // SAFETY: likewise.
            Memory::Provided(provided) => unsafe {
                queues.run(descriptors.sends(bytes), |completion| provided.note(completion))
            },
            Memory::Registered(registered) => registered.send(queues, &descriptors.output, bytes),
        }
    }

    /// Receives at least 1 byte into `into`; sleeps until there is one. `Errno::PIPE` when the peer has closed.
    #[inline(always)]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let Self { queues, descriptors, memory } = self;
        let received = match memory {
            // SAFETY: `run` returns when the operation has completed, and `into` is borrowed until then.
            Memory::Callers => unsafe { queues.run(descriptors.receives(into), |_| {}) },
            Memory::Provided(provided) => provided.receive(queues, descriptors, into),
            Memory::Registered(registered) => registered.receive(queues, &descriptors.input, into),
        };
        match received {
            Ok(0) => Err(Errno::PIPE),
            answer => answer,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        match &mut self.memory {
            Memory::Callers => {}
            Memory::Registered(_) => Registered::release(&self.queues),
            // The buffers are unmapped after this, and the kernel must not write into what comes to lie there.
            Memory::Provided(provided) => provided.stop(&mut self.queues),
        }
    }
}

impl Descriptors {
    /// The operation that sends from `bytes`.
    #[inline(always)]
    fn sends(&self, bytes: &[u8]) -> Entry {
        let (output, length) = (types::Fd(self.output.as_raw_fd()), length(bytes.len()));
        match self.object {
            Object::Pipe => opcode::Write::new(output, bytes.as_ptr(), length).build(),
            Object::Socket => opcode::Send::new(output, bytes.as_ptr(), length).build(),
        }
    }

    /// The operation that receives into `into`.
    #[inline(always)]
    fn receives(&self, into: &mut [u8]) -> Entry {
        let (input, length) = (types::Fd(self.input.as_raw_fd()), length(into.len()));
        match self.object {
            Object::Pipe => opcode::Read::new(input, into.as_mut_ptr(), length).build(),
            Object::Socket => opcode::Recv::new(input, into.as_mut_ptr(), length).build(),
        }
    }
}
