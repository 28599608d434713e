//! What bytes pass through: descriptors of pipes or of sockets, and the operations that they take.

use super::queues::length;
use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use rustix::fd::{AsRawFd, OwnedFd};

/// What the descriptors are, which says which operations they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptorKind {
    /// Pipes: `IORING_OP_READ` and `IORING_OP_WRITE`.
    Pipe,
    /// Sockets: `IORING_OP_RECV` and `IORING_OP_SEND`.
    Socket,
}

#[derive(Debug)]
pub(super) struct Descriptors {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) kind: DescriptorKind,
}

impl Descriptors {
    /// The operation that sends from `bytes`.
    #[inline(always)]
    pub(super) fn send_operation(&self, bytes: &[u8]) -> Entry {
        let (output, length) = (types::Fd(self.output.as_raw_fd()), length(bytes.len()));
        match self.kind {
            DescriptorKind::Pipe => opcode::Write::new(output, bytes.as_ptr(), length).build(),
            DescriptorKind::Socket => opcode::Send::new(output, bytes.as_ptr(), length).build(),
        }
    }

    /// The operation that receives into `into`.
    #[inline(always)]
    pub(super) fn receive_operation(&self, into: &mut [u8]) -> Entry {
        let (input, length) = (types::Fd(self.input.as_raw_fd()), length(into.len()));
        match self.kind {
            DescriptorKind::Pipe => opcode::Read::new(input, into.as_mut_ptr(), length).build(),
            DescriptorKind::Socket => opcode::Recv::new(input, into.as_mut_ptr(), length).build(),
        }
    }
}
