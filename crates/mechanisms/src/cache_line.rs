//! A floor: one cache line handed over and back between two CPUs, and nothing else.
//!
//! Both directions use the same word: the end whose turn it is writes, the other one looks. The line
//! then travels once each way; two lines, one for each direction, would travel twice.

use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use crate::descriptor::supported;
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::{Params, Workload};
use std::sync::atomic::Ordering;
use sys::shared_memory::SharedMemory;
use sys::{Errno, Failure};

/// A word in shared memory, by spinning.
#[derive(Debug)]
pub struct CacheLine;

/// The shared memory of the two floors that hand over a word: one page.
pub(crate) const MEMORY_BYTES: usize = 4096;
/// The most payload of a hand-over.
pub(crate) const TOKEN_BYTES: usize = 4;

/// An end that spins on the word.
#[derive(Debug)]
pub struct CacheLineEnd {
    memory: SharedMemory,
    /// How often the word was handed over, by either end.
    hand_overs: u32,
}

impl Mechanism for CacheLine {
    const CARD: Card = Card {
        name: "cache-line",
        kind: CardKind::Floor,
        summary: "one cache line handed over between two CPUs",
        framing: Framing::Token,
        reach: Reach::Related,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        polled: false,
        one_endpoint: false,
        empty: false,
        params: &[],
        workloads: &[Workload::Latency],
        sized: true,
        limits: "4 bytes; two CPUs; both ends spin",
        man: &["memfd_create(2)", "mmap(2)"],
    };
    type Bound = CacheLineEnd;
    type End = CacheLineEnd;

    fn probe(_: &Params) -> Support {
        probe_token()
    }

    fn bind(_: &Trial<'_>) -> Result<(CacheLineEnd, Ticket), Failure> {
        let (memory, fd) = SharedMemory::create("ipcmark-cache-line", MEMORY_BYTES)?;
        Ok((CacheLineEnd { memory, hand_overs: 0 }, Ticket { address: Vec::new(), fds: vec![fd] }))
    }

    fn accept(bound: CacheLineEnd) -> Result<CacheLineEnd, Failure> {
        Ok(bound)
    }

    fn connect(_: &Trial<'_>, ticket: Ticket) -> Result<CacheLineEnd, Failure> {
        let [fd] = ticket.descriptors("cache-line")?;
        Ok(CacheLineEnd { memory: SharedMemory::open(fd, MEMORY_BYTES)?, hand_overs: 0 })
    }
}

/// Whether shared memory can be had, and that a hand-over holds no more than a token.
pub(crate) fn probe_token() -> Support {
    match SharedMemory::create("ipcmark-probe", MEMORY_BYTES) {
        Ok(_) => Support::Yes { largest_bytes: Some(TOKEN_BYTES as u64) },
        failed => supported(failed),
    }
}

/// `bytes`, at most four, as a number.
#[inline(always)]
pub(crate) fn pack(bytes: &[u8]) -> Result<u32, Errno> {
    if bytes.len() > TOKEN_BYTES {
        return Err(Errno::MSGSIZE);
    }
    Ok(bytes.iter().rev().fold(0, |token, byte| token << 8 | u32::from(*byte)))
}

/// The first bytes of `token` into `into`; how many.
#[inline(always)]
pub(crate) fn unpack(token: u32, into: &mut [u8]) -> usize {
    for (at, byte) in into.iter_mut().take(TOKEN_BYTES).enumerate() {
        *byte = (token >> (8 * at)) as u8;
    }
    into.len().min(TOKEN_BYTES)
}

impl Endpoint for CacheLineEnd {
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
