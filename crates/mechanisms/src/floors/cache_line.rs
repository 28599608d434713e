//! A floor: one cache line that two CPUs pass to each other, and nothing else.
//!
//! Both directions use the same word: the endpoint that sends writes it, the other reads it again and again. The line
//! then travels once in each direction; with one line for each direction it would travel twice.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::FLOOR;
use crate::support::token::{MEMORY_BYTES, pack, probe_token, unpack};
use model::Params;
use model::card::{Card, Support};
use std::sync::atomic::Ordering;
use sys::shared_memory::SharedMemory;
use sys::{Errno, Failure};

/// A word in shared memory, and endpoints that spin.
#[derive(Debug)]
pub(crate) struct CacheLine;

/// An endpoint that spins on the word.
#[derive(Debug)]
pub(crate) struct CacheLineEndpoint {
    memory: SharedMemory,
    /// How often the word was passed on, by either endpoint.
    hand_overs: u32,
}

impl Mechanism for CacheLine {
    const CARD: Card = Card {
        name: "cache-line",
        summary: "one cache line that two CPUs pass to each other",
        params: &[],
        limits: "4 bytes; two CPUs; both endpoints spin",
        man: &["memfd_create(2)", "mmap(2)"],
        ..FLOOR
    };
    type Bound = CacheLineEndpoint;
    type End = CacheLineEndpoint;

    fn probe(_: &Params) -> Support {
        probe_token()
    }

    fn bind(_: &TrialContext<'_>) -> Result<(CacheLineEndpoint, Ticket), Failure> {
        let (memory, fd) = SharedMemory::create("ipcmark-cache-line", MEMORY_BYTES)?;
        Ok((CacheLineEndpoint { memory, hand_overs: 0 }, Ticket { address: Vec::new(), fds: vec![fd] }))
    }

    fn accept(bound: CacheLineEndpoint) -> Result<CacheLineEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(_: &TrialContext<'_>, ticket: Ticket) -> Result<CacheLineEndpoint, Failure> {
        let [fd] = ticket.descriptors("cache-line")?;
        Ok(CacheLineEndpoint { memory: SharedMemory::open(fd, MEMORY_BYTES)?, hand_overs: 0 })
    }
}

impl Endpoint for CacheLineEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.hand_overs = self.hand_overs.wrapping_add(1);
        let word = u64::from(self.hand_overs) << 32 | u64::from(pack(bytes)?);
        self.memory.u64_at(0).store(word, Ordering::Release);
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.hand_overs = self.hand_overs.wrapping_add(1);
        let word = self.memory.u64_at(0);
        loop {
            let seen = word.load(Ordering::Acquire);
            if (seen >> 32) as u32 == self.hand_overs {
                return Ok(unpack(seen as u32, into));
            }
            std::hint::spin_loop();
        }
    }
}
