//! A floor: two processes on one CPU hand a token over and back, each asleep while the other runs.
//!
//! A futex is the least with which the kernel puts one to sleep and wakes the other: no descriptor,
//! no copy, no file. An iteration is four system calls and two switches.

use crate::cache_line::{MEMORY_BYTES, pack, probe_token, unpack};
use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::{Params, Workload};
use rustix::thread::futex;
use std::sync::atomic::Ordering;
use sys::shared_memory::SharedMemory;
use sys::{Errno, Failure};

/// futex(2), `FUTEX_WAIT` and `FUTEX_WAKE`.
#[derive(Debug)]
pub struct ContextSwitch;

/// Where the futex word is; the token lies before it in the same line.
const WORD: usize = 4;

/// An end that sleeps on the word.
#[derive(Debug)]
pub struct ContextSwitchEnd {
    memory: SharedMemory,
    /// How often the token was handed over, by either end.
    hand_overs: u32,
}

impl Mechanism for ContextSwitch {
    const CARD: Card = Card {
        name: "context-switch",
        kind: CardKind::Floor,
        summary: "a token handed over by sleeping and waking on one CPU",
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
        limits: "4 bytes; one CPU",
        man: &["futex(2)", "memfd_create(2)"],
    };
    type Bound = ContextSwitchEnd;
    type End = ContextSwitchEnd;

    fn probe(_: &Params) -> Support {
        probe_token()
    }

    fn bind(_: &Trial<'_>) -> Result<(ContextSwitchEnd, Ticket), Failure> {
        let (memory, fd) = SharedMemory::create("ipcmark-context-switch", MEMORY_BYTES)?;
        Ok((ContextSwitchEnd { memory, hand_overs: 0 }, Ticket { address: Vec::new(), fds: vec![fd] }))
    }

    fn accept(bound: ContextSwitchEnd) -> Result<ContextSwitchEnd, Failure> {
        Ok(bound)
    }

    fn connect(_: &Trial<'_>, ticket: Ticket) -> Result<ContextSwitchEnd, Failure> {
        let [fd] = ticket.descriptors("context-switch")?;
        Ok(ContextSwitchEnd { memory: SharedMemory::open(fd, MEMORY_BYTES)?, hand_overs: 0 })
    }
}

impl Endpoint for ContextSwitchEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.hand_overs = self.hand_overs.wrapping_add(1);
        self.memory.u32_at(0).store(pack(bytes)?, Ordering::Relaxed);
        let word = self.memory.u32_at(WORD);
        word.store(self.hand_overs, Ordering::Release);
        futex::wake(word, futex::Flags::empty(), 1)?;
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.hand_overs = self.hand_overs.wrapping_add(1);
        let word = self.memory.u32_at(WORD);
        loop {
            let seen = word.load(Ordering::Acquire);
            if seen == self.hand_overs {
                return Ok(unpack(self.memory.u32_at(0).load(Ordering::Relaxed), into));
            }
            match futex::wait(word, futex::Flags::empty(), seen, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}
