//! A floor: the bytes of a message, written by one CPU and read by another, with one hand-over.
//!
//! The message is written where its reader reads it: its lines move from one cache to the other, and little else is done
//! with them. The writer fills them. The reader copies short messages into memory that stays in its first-level cache,
//! which is a little faster than reading them in place. In `latency` and `transfer` both endpoints use one slot; in
//! `throughput` there are several, so that the server reads one while the client writes the next.

use crate::contract::{Endpoint, InPlace, Mechanism, Ticket, TrialContext};
use crate::support::cards::{EXCHANGES, FLOOR};
use crate::support::probe::support_of;
use model::card::{Card, Framing, Support};
use model::{Params, Workload};
use sys::shared_memory::SharedMemory;
use sys::shared_slots::{SlotEndpoint, SlotGeometry};
use sys::side::MemorySide;
use sys::{Errno, Failure};

/// Slots in shared memory, and endpoints that spin.
#[derive(Debug)]
pub(crate) struct SharedCopy;

/// An endpoint that writes messages in place, and reads those in place that are too long for the first-level cache.
#[derive(Debug)]
pub(crate) struct SharedCopyEndpoint {
    slots: SlotEndpoint,
    size_bytes: usize,
}

/// The longest message that is copied when it is read: together with what is copied it fits in the first-level cache.
const LONGEST_COPIED_BYTES: usize = 16 << 10;

impl Mechanism for SharedCopy {
    const CARD: Card = Card {
        name: "shared-copy",
        summary: "a message that one CPU writes and another reads, handed over once",
        framing: Framing::Message,
        workloads: EXCHANGES,
        limits: "any message size; two CPUs; both endpoints spin",
        man: &["memfd_create(2)", "mmap(2)"],
        ..FLOOR
    };
    type Bound = SharedCopyEndpoint;
    type End = SharedCopyEndpoint;

    fn probe(_: &Params) -> Support {
        support_of(SharedMemory::create("ipcmark-probe", SlotGeometry::alternating(1).memory_bytes()))
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(SharedCopyEndpoint, Ticket), Failure> {
        let (memory, fd) = SharedMemory::create("ipcmark-shared-copy", geometry(trial).memory_bytes())?;
        let endpoint = endpoint(memory, trial, MemorySide::Client)?;
        Ok((endpoint, Ticket { address: Vec::new(), fds: vec![fd] }))
    }

    fn accept(bound: SharedCopyEndpoint) -> Result<SharedCopyEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<SharedCopyEndpoint, Failure> {
        let [fd] = ticket.descriptors("shared-copy")?;
        let memory = SharedMemory::open(fd, geometry(trial).memory_bytes())?;
        endpoint(memory, trial, MemorySide::Server)
    }
}

fn geometry(trial: &TrialContext<'_>) -> SlotGeometry {
    let size_bytes = trial.shape.size_bytes;
    match trial.shape.workload {
        Workload::Throughput => SlotGeometry::of_stream(size_bytes),
        _ => SlotGeometry::alternating(size_bytes),
    }
}

fn endpoint(
    memory: SharedMemory,
    trial: &TrialContext<'_>,
    side: MemorySide,
) -> Result<SharedCopyEndpoint, Failure> {
    let slots = SlotEndpoint::claim(memory, geometry(trial), side)?;
    Ok(SharedCopyEndpoint { slots, size_bytes: trial.shape.size_bytes })
}

impl Endpoint for SharedCopyEndpoint {
    const IN_PLACE: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.slots.reserve(bytes.len())?.copy_from_slice(bytes);
        self.slots.commit(bytes.len())?;
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let message = self.slots.peek(into.len())?;
        let size_bytes = message.len();
        into[..size_bytes].copy_from_slice(message);
        self.slots.release();
        Ok(size_bytes)
    }

    fn in_place(&self) -> InPlace {
        InPlace { outgoing: true, incoming: self.size_bytes > LONGEST_COPIED_BYTES, touched: true }
    }

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        self.slots.reserve(most_bytes)
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        self.slots.commit(bytes)
    }

    #[inline(always)]
    fn peek(&mut self, most_bytes: usize) -> Result<&[u8], Errno> {
        self.slots.peek(most_bytes)
    }

    #[inline(always)]
    fn release(&mut self, _bytes: usize) -> Result<(), Errno> {
        self.slots.release();
        Ok(())
    }
}
