//! A floor: two processes on one CPU pass a token to each other, each asleep while the other runs.
//!
//! A futex is the least by which the kernel puts one process to sleep and wakes the other: no descriptor, no copy, no
//! file. An iteration is four system calls and two switches.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::FLOOR;
use crate::support::token::{MEMORY_BYTES, pack, probe_token, unpack};
use model::Params;
use model::card::{Card, Support};
use rustix::thread::futex;
use std::sync::atomic::Ordering;
use sys::shared_memory::SharedMemory;
use sys::{Errno, Failure};

/// futex(2), `FUTEX_WAIT` and `FUTEX_WAKE`.
#[derive(Debug)]
pub(crate) struct ContextSwitch;

/// The offset of the futex word. The token lies before it in the same cache line.
const WORD: usize = 4;

/// An endpoint that sleeps on the word.
#[derive(Debug)]
pub(crate) struct ContextSwitchEndpoint {
    memory: SharedMemory,
    /// How often the token was passed on, by either endpoint.
    hand_overs: u32,
}

impl Mechanism for ContextSwitch {
    const CARD: Card = Card {
        name: "context-switch",
        summary: "a token that two processes on one CPU pass to each other, by sleeping",
        params: &[],
        limits: "4 bytes; one CPU",
        man: &["futex(2)", "memfd_create(2)"],
        ..FLOOR
    };
    type Bound = ContextSwitchEndpoint;
    type End = ContextSwitchEndpoint;

    fn probe(_: &Params) -> Support {
        probe_token()
    }

    fn bind(_: &TrialContext<'_>) -> Result<(ContextSwitchEndpoint, Ticket), Failure> {
        let (memory, fd) = SharedMemory::create("ipcmark-context-switch", MEMORY_BYTES)?;
        Ok((ContextSwitchEndpoint { memory, hand_overs: 0 }, Ticket { address: Vec::new(), fds: vec![fd] }))
    }

    fn accept(bound: ContextSwitchEndpoint) -> Result<ContextSwitchEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(_: &TrialContext<'_>, ticket: Ticket) -> Result<ContextSwitchEndpoint, Failure> {
        let [fd] = ticket.descriptors("context-switch")?;
        Ok(ContextSwitchEndpoint { memory: SharedMemory::open(fd, MEMORY_BYTES)?, hand_overs: 0 })
    }
}

impl Endpoint for ContextSwitchEndpoint {
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
