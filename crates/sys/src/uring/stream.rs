//! A stream of bytes through a ring: received from one descriptor and sent to another. What the descriptors are is
//! said in `descriptors`.

use super::descriptors::{DescriptorKind, Descriptors};
use super::provided::Provided;
use super::queues::{Queues, SubmissionMode};
use super::registered::Registered;
use crate::{Errno, Failure};
use rustix::fd::OwnedFd;

/// Which memory the operations name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UringBuffers {
    /// The caller's memory.
    Callers,
    /// One buffer of so many bytes for each direction, which the kernel has pinned. Bytes are copied to and from it
    /// (`IORING_OP_READ_FIXED`, `IORING_OP_WRITE_FIXED`).
    Registered(usize),
    /// The caller's memory to send. One operation receives again and again (multishot) into buffers of so many bytes,
    /// and bytes are copied from there.
    Provided(usize),
}

/// An endpoint that receives from one descriptor and sends to another, which may be the same. Both must block: an
/// operation on one that does not would fail at once when there is nothing to receive.
#[derive(Debug)]
pub struct UringStream {
    queues: Queues,
    descriptors: Descriptors,
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Callers,
    Registered(Registered),
    Provided(Provided),
}

impl UringStream {
    /// An endpoint over `input` and `output`.
    pub fn open(
        input: OwnedFd,
        output: OwnedFd,
        kind: DescriptorKind,
        buffers: UringBuffers,
        mode: SubmissionMode,
    ) -> Result<Self, Failure> {
        let queues = Queues::open(mode)?;
        let memory = match buffers {
            UringBuffers::Callers => Memory::Callers,
            UringBuffers::Registered(size_bytes) => Memory::Registered(Registered::new(&queues, size_bytes)?),
            UringBuffers::Provided(size_bytes) => Memory::Provided(Provided::new(&queues, size_bytes)?),
        };
        Ok(Self { queues, descriptors: Descriptors { input, output, kind }, memory })
    }

    /// Sends a first part of `bytes`, and returns its length. Sleeps until there is room for it.
    #[inline(always)]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let Self { queues, descriptors, memory } = self;
        match memory {
            // SAFETY: `run` returns when the operation has completed, and `bytes` is borrowed until then.
            Memory::Callers => unsafe { queues.run(descriptors.send_operation(bytes), |_| {}) },
            // SAFETY: likewise.
            Memory::Provided(provided) => unsafe {
                queues.run(descriptors.send_operation(bytes), |completion| provided.note(completion))
            },
            Memory::Registered(registered) => registered.send(queues, &descriptors.output, bytes),
        }
    }

    /// Receives at least 1 byte into `into`. Sleeps until there is one. `Errno::PIPE` when the peer has closed.
    #[inline(always)]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let Self { queues, descriptors, memory } = self;
        let received = match memory {
            // SAFETY: `run` returns when the operation has completed, and `into` is borrowed until then.
            Memory::Callers => unsafe { queues.run(descriptors.receive_operation(into), |_| {}) },
            Memory::Provided(provided) => provided.receive(queues, descriptors, into),
            Memory::Registered(registered) => registered.receive(queues, &descriptors.input, into),
        };
        match received {
            Ok(0) => Err(Errno::PIPE),
            result => result,
        }
    }
}

impl Drop for UringStream {
    fn drop(&mut self) {
        match &mut self.memory {
            Memory::Callers => {}
            Memory::Registered(_) => Registered::release(&self.queues),
            // The buffers are unmapped after this, and the kernel must not write to what is mapped there next.
            Memory::Provided(provided) => provided.stop(&mut self.queues),
        }
    }
}
