//! Buffers that the kernel may fill, and one operation that receives into them until it is stopped (multishot).

use super::descriptors::{DescriptorKind, Descriptors};
use super::queues::{CALL, Queues, operation_result, refusal};
use crate::anonymous::Mapping;
use crate::{Errno, Failure};
use io_uring::types::{BufRingEntry, Fd};
use io_uring::{cqueue, opcode};
use rustix::fd::AsRawFd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, Ordering};

/// How many buffers there are; a power of two.
pub const COUNT: u16 = 16;
/// The page before the buffers, which tells the kernel where they are.
const HEAD_BYTES: usize = 4096;
/// The number of the group in the ring.
const GROUP: u16 = 0;
/// The user data of the multishot operation.
const ARRIVAL: u64 = CALL - 1;

/// The buffers, and what has arrived in them.
#[derive(Debug)]
pub(super) struct Provided {
    memory: Mapping,
    size_bytes: usize,
    /// How often a buffer was given to the kernel. The number wraps.
    given: u16,
    /// Whether the operation is under way, so that the kernel may write into every buffer that it was given.
    under_way: bool,
    /// Completions of which nobody has taken the bytes yet.
    arrived: VecDeque<Arrival>,
    /// What is left of the buffer from which bytes are being copied.
    rest: Option<Rest>,
}

/// What a completion says: the number of bytes or the error, and the buffer.
#[derive(Debug)]
struct Arrival {
    result: i32,
    buffer: Option<u16>,
}

#[derive(Debug)]
struct Rest {
    buffer: u16,
    start: usize,
    end: usize,
}

impl Provided {
    /// Makes buffers of `size_bytes` each, and registers them with the ring of `queues`
    /// (io_uring_register_buf_ring(3)).
    pub(super) fn new(queues: &Queues, size_bytes: usize) -> Result<Self, Failure> {
        let memory = Mapping::new(HEAD_BYTES + usize::from(COUNT) * size_bytes)?;
        let head = memory.base().as_ptr().addr() as u64;
        // SAFETY: the page is aligned, holds `COUNT` entries, and the kernel pins it. The buffers that its entries
        // name are freed when no operation uses them any more (`stop`).
        unsafe { queues.ring.submitter().register_buf_ring_with_flags(head, COUNT, GROUP, 0) }
            .map_err(|error| refusal("io_uring_register(IORING_REGISTER_PBUF_RING)", &error))?;
        // As many as there can be at a time: one for each buffer, and the one that ends the operation.
        let arrived = VecDeque::with_capacity(usize::from(COUNT) + 1);
        let mut this = Self { memory, size_bytes, given: 0, under_way: false, arrived, rest: None };
        (0..COUNT).for_each(|buffer| this.give(buffer));
        Ok(this)
    }

    /// The first byte of `buffer`, which is one of `COUNT`.
    #[inline(always)]
    fn at(&self, buffer: u16) -> *mut u8 {
        let offset = HEAD_BYTES + usize::from(buffer % COUNT) * self.size_bytes;
        self.memory.base().as_ptr().wrapping_add(offset)
    }

    /// Gives `buffer` to the kernel. All of its bytes have been read.
    #[inline(always)]
    fn give(&mut self, buffer: u16) {
        let entries = self.memory.base().as_ptr().cast::<BufRingEntry>();
        let address = self.at(buffer).addr() as u64;
        // SAFETY: the entry is one of the first page, and the kernel does not read it before the tail includes it.
        // The tail is two aligned bytes of that page, which no reference covers.
        unsafe {
            let entry = &mut *entries.add(usize::from(self.given % COUNT));
            entry.set_addr(address);
            entry.set_len(self.size_bytes as u32);
            entry.set_bid(buffer % COUNT);
            self.given = self.given.wrapping_add(1);
            let tail = AtomicU16::from_ptr(BufRingEntry::tail(entries).cast_mut());
            tail.store(self.given, Ordering::Release);
        }
    }

    /// Notes a completion. Does not allocate.
    #[inline(always)]
    pub(super) fn note(&mut self, completion: &cqueue::Entry) {
        if completion.user_data() == ARRIVAL {
            let flags = completion.flags();
            self.under_way = cqueue::more(flags);
            let buffer = cqueue::buffer_select(flags);
            self.arrived.push_back(Arrival { result: completion.result(), buffer });
        }
    }

    /// Copies bytes that have arrived to `into`. Sleeps until there are some. Returns 0 when the peer has closed.
    #[inline(always)]
    pub(super) fn receive(
        &mut self,
        queues: &mut Queues,
        descriptors: &Descriptors,
        into: &mut [u8],
    ) -> Result<usize, Errno> {
        loop {
            if let Some(Rest { buffer, start, end }) = self.rest.take() {
                let count = into.len().min(end - start);
                // SAFETY: the kernel has written these bytes of the buffer, and will not use it until it is given
                // again. `into` is other memory.
                unsafe {
                    std::ptr::copy_nonoverlapping(self.at(buffer).add(start), into.as_mut_ptr(), count);
                };
                if start + count < end {
                    self.rest = Some(Rest { buffer, start: start + count, end });
                } else {
                    self.give(buffer);
                }
                return Ok(count);
            }
            if let Some(Arrival { result, buffer }) = self.arrived.pop_front() {
                match (operation_result(result), buffer) {
                    (Ok(count @ 1..), Some(buffer)) => {
                        self.rest = Some(Rest { buffer, start: 0, end: count.min(self.size_bytes) });
                    }
                    // All buffers were full, which ended the operation. They have been emptied since.
                    (Err(Errno::NOBUFS | Errno::INTR), None) => {}
                    (other, buffer) => {
                        buffer.into_iter().for_each(|buffer| self.give(buffer));
                        return other;
                    }
                }
                continue;
            }
            if !self.under_way {
                self.start(queues, descriptors)?;
            }
            queues.await_some(|completion| self.note(completion));
        }
    }

    /// Pushes the multishot operation.
    fn start(&mut self, queues: &mut Queues, descriptors: &Descriptors) -> Result<(), Errno> {
        let input = Fd(descriptors.input.as_raw_fd());
        let entry = match descriptors.kind {
            DescriptorKind::Pipe => opcode::ReadMulti::new(input, 0, GROUP).build(),
            DescriptorKind::Socket => opcode::RecvMulti::new(input, GROUP).build(),
        };
        // SAFETY: it names the buffers of the group alone, which are not unmapped before `stop`.
        unsafe { queues.push(&entry.user_data(ARRIVAL)) }?;
        self.under_way = true;
        Ok(())
    }

    /// Stops the operation. When this returns, no operation can use the buffers.
    pub(super) fn stop(&mut self, queues: &mut Queues) {
        while self.under_way {
            let entry = opcode::AsyncCancel::new(ARRIVAL).build();
            // The kernel does not find an operation that is running at this moment. The loop tries again.
            // SAFETY: it names no memory.
            let _ = unsafe { queues.run(entry, |completion| self.under_way &= still_under_way(completion)) };
        }
    }
}

/// Whether `completion` leaves the operation under way.
fn still_under_way(completion: &cqueue::Entry) -> bool {
    completion.user_data() != ARRIVAL || cqueue::more(completion.flags())
}
