//! Two buffers that the kernel pins once, one for each direction (io_uring_register(2), `IORING_REGISTER_BUFFERS`).
//! Bytes are copied to and from them.

use super::queues::{Queues, length, refusal};
use crate::anonymous::Mapping;
use crate::{Errno, Failure};
use io_uring::{opcode, types};
use rustix::fd::{AsRawFd, OwnedFd};

/// The numbers of the buffers in the ring's table.
const OUTGOING: u16 = 0;
const INCOMING: u16 = 1;

/// A mapping whose first half is for sends and whose second half is for receives.
#[derive(Debug)]
pub(super) struct Registered {
    memory: Mapping,
}

impl Registered {
    /// Makes two buffers of `size_bytes` each, and registers them with the ring of `queues`.
    pub(super) fn new(queues: &Queues, size_bytes: usize) -> Result<Self, Failure> {
        let this = Self { memory: Mapping::new(2 * size_bytes)? };
        let buffers = [OUTGOING, INCOMING]
            .map(|buffer| libc::iovec { iov_base: this.at(buffer).cast(), iov_len: size_bytes });
        // SAFETY: both buffers lie in the mapping. The kernel pins its pages, which exist as long as it needs them.
        unsafe { queues.ring.submitter().register_buffers(&buffers) }
            .map_err(|error| refusal("io_uring_register(IORING_REGISTER_BUFFERS)", &error))?;
        Ok(this)
    }

    fn size_bytes(&self) -> usize {
        self.memory.len_bytes() / 2
    }

    fn at(&self, buffer: u16) -> *mut u8 {
        self.memory.base().as_ptr().wrapping_add(usize::from(buffer) * self.size_bytes())
    }

    /// Copies as many of `bytes` as fit into the buffer, and sends them to `output`.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        queues: &mut Queues,
        output: &OwnedFd,
        bytes: &[u8],
    ) -> Result<usize, Errno> {
        let count = bytes.len().min(self.size_bytes());
        let (buffer, output) = (self.at(OUTGOING), types::Fd(output.as_raw_fd()));
        // SAFETY: the buffer has room for `count` bytes and is other memory than `bytes`. No operation uses it now.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, count) };
        let entry = opcode::WriteFixed::new(output, buffer, length(count), OUTGOING).build();
        // SAFETY: the buffer is this value's own, and `run` returns when the operation has completed.
        unsafe { queues.run(entry, |_| {}) }
    }

    /// Receives what there is from `input`, and copies it to `into`.
    #[inline(always)]
    pub(super) fn receive(
        &mut self,
        queues: &mut Queues,
        input: &OwnedFd,
        into: &mut [u8],
    ) -> Result<usize, Errno> {
        let most = into.len().min(self.size_bytes());
        let (buffer, input) = (self.at(INCOMING), types::Fd(input.as_raw_fd()));
        let entry = opcode::ReadFixed::new(input, buffer, length(most), INCOMING).build();
        // SAFETY: the buffer is this value's own, and `run` returns when the operation has completed.
        let count = unsafe { queues.run(entry, |_| {}) }?.min(most);
        // SAFETY: the buffer holds `count` bytes. `into` has room for them and is other memory.
        unsafe { std::ptr::copy_nonoverlapping(buffer, into.as_mut_ptr(), count) };
        Ok(count)
    }

    /// Unpins the memory now. Otherwise the kernel does so some time after the ring is closed, and until then the
    /// memory counts against the limit of locked memory, which the next rings need. If this fails, that is what
    /// happens.
    pub(super) fn release(queues: &Queues) {
        let _ = queues.ring.submitter().unregister_buffers();
    }
}
