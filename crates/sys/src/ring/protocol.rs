//! One endpoint of a pair of rings: its state, how it joins, waits, notifies its peer and leaves. Sending is in
//! `producer`, receiving in `consumer`.
//!
//! All of it is generic over the memory and the way of waiting, so that loom and Miri run the same code as a real
//! pair.
//!
//! # Orderings
//!
//! - The producer writes the payload, then the header (`Release`). The consumer reads the header (`Acquire`), then
//!   the payload. So a consumer that sees the header sees the payload.
//! - The consumer reads and dirties a slot, then stores its cursor (`Release`). The producer loads the cursor
//!   (`Acquire`), then overwrites the slot. So the producer never overwrites what the consumer still reads.
//! - The holder of the token has received it in a header (`Acquire`) that the peer released after its own last use of
//!   the mailbox slot and the mailbox area. So at any time one endpoint alone writes these.
//! - To sleep, an endpoint sets its flag, fences and polls again. To wake its peer, an endpoint publishes, fences and
//!   checks the flag. Both fences are `SeqCst`, so that one of the two sees the other and no wake-up is lost. A
//!   spinning pair has neither flag nor fence on its path.

use super::atomic::{Ordering, UNDER_LOOM, fence, relax};
use super::layout::{
    APART_BYTES, CLAIMS, CLOSED, HEADER_BYTES, LINE_BYTES, Lane, RingGeometry, first_header,
};
use super::memory::Memory;
use super::wait::WaitStrategy;
use crate::Errno;
use crate::side::MemorySide;

/// What the producer of a lane knows. Counts only grow.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) lane: Lane,
    /// The header of the next message, without length.
    pub(super) header: u64,
    /// How many slots this endpoint has sent.
    pub(super) slots: u64,
    /// The count of slots at which none is free, as far as is known.
    pub(super) slots_limit: u64,
    /// How many bytes of the bulk area this endpoint has sent.
    pub(super) bulk: u64,
    /// How many of them are free again, as far as is known.
    pub(super) bulk_freed: u64,
    pub(super) reservation: Reservation,
    /// Whether the message that is being sent began with the token: it is a request or a reply, and somebody waits for
    /// its end. Without the token it belongs to a stream.
    pub(super) is_awaited: bool,
}

/// What was reserved last. It ends when anything is sent, which changes the header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reservation {
    pub(super) header: u64,
    pub(super) place: Place,
    pub(super) at: usize,
    pub(super) length_bytes: usize,
}

/// What the consumer of a lane knows. Counts only grow.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) lane: Lane,
    /// The header of the next message, without length.
    pub(super) header: u64,
    /// How many slots this endpoint has freed.
    pub(super) slots: u64,
    /// How many of them the cursor in memory says.
    pub(super) slots_published: u64,
    /// How many slots this endpoint had freed when it last had to wait.
    pub(super) slots_at_wait: u64,
    /// How many bytes of the bulk area this endpoint has freed.
    pub(super) bulk: u64,
    /// How many of them the cursor in memory says.
    pub(super) bulk_published: u64,
    /// The piece that is being read, or was read last.
    pub(super) piece: Piece,
    /// Whether this endpoint dirties the lines of pieces in the bulk area when it has read them.
    pub(super) dirties: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) place: Place,
    pub(super) at: usize,
    pub(super) length_bytes: usize,
    pub(super) read_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// There was none yet, or it is finished.
    Nowhere,
    Slot,
    Mailbox,
    /// The mailbox area. `is_last` says that the piece passes the token on.
    MailboxArea {
        is_last: bool,
    },
    Bulk,
}

/// One endpoint of the pair, over any memory, with `SLOTS` slots in each direction.
#[derive(Debug)]
pub(super) struct Engine<M: Memory, W: WaitStrategy, const SLOTS: usize> {
    pub(super) memory: M,
    pub(super) geometry: RingGeometry,
    side: MemorySide,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Whether this endpoint may write the mailbox slot and the mailbox area.
    pub(super) holds_token: bool,
    /// How much of the mailbox area the holder of the token has used since it got the token.
    pub(super) mailbox_area_used: usize,
    wait: W,
}

impl<M: Memory, W: WaitStrategy, const SLOTS: usize> Engine<M, W, SLOTS> {
    /// Takes `side`. Returns `None` if it is taken, or if the peer has claimed with another geometry or another kind
    /// of waiting.
    ///
    /// # Safety
    ///
    /// `memory` is of `geometry.memory_bytes()`, was zero before the first claim, and is used by engines alone.
    pub(super) unsafe fn claim(memory: M, geometry: RingGeometry, side: MemorySide, wait: W) -> Option<Self> {
        assert!(SLOTS.is_power_of_two() && SLOTS == geometry.slots && geometry.bulk_bytes.is_power_of_two());
        // Never zero, because the bulk area is at least a line, and the lowest bit is free.
        let claim = geometry.bulk_bytes as u64 | u64::from(W::SLEEPS);
        // SAFETY: the claims are below the slots, which are inside by contract.
        let claim_of = |side: MemorySide| unsafe { memory.word(CLAIMS + side.index() * HEADER_BYTES) };
        claim_of(side).compare_exchange(0, claim, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        if ![0, claim].contains(&claim_of(side.peer()).load(Ordering::Acquire)) {
            return None;
        }
        Some(Self {
            outgoing: Outgoing {
                lane: Lane::new(side, &geometry),
                header: first_header(side),
                slots: 0,
                slots_limit: SLOTS as u64,
                bulk: 0,
                bulk_freed: 0,
                // No message has this header.
                reservation: Reservation { header: 0, place: Place::Nowhere, at: 0, length_bytes: 0 },
                is_awaited: false,
            },
            incoming: Incoming {
                lane: Lane::new(side.peer(), &geometry),
                header: first_header(side.peer()),
                slots: 0,
                slots_published: 0,
                slots_at_wait: 0,
                bulk: 0,
                bulk_published: 0,
                piece: Piece { place: Place::Nowhere, at: 0, length_bytes: 0, read_bytes: 0 },
                dirties: true,
            },
            holds_token: side == MemorySide::Client,
            mailbox_area_used: 0,
            memory,
            geometry,
            side,
            wait,
        })
    }

    /// Waits until `ready` finds something. `Errno::PIPE` when it does not and the peer has closed.
    #[inline(always)]
    pub(super) fn wait<T>(&self, asleep: usize, ready: impl Fn(&Self) -> Option<T>) -> Result<T, Errno> {
        if W::SLEEPS { self.wait_asleep(asleep, ready) } else { self.wait_spinning(ready) }
    }

    #[inline(always)]
    fn wait_spinning<T>(&self, ready: impl Fn(&Self) -> Option<T>) -> Result<T, Errno> {
        // The check for a closed peer is rare, because closing is not on the path of any message.
        const POLLS_PER_CHECK: u32 = if UNDER_LOOM { 1 } else { 1024 };
        loop {
            for _ in 0..POLLS_PER_CHECK {
                if let Some(found) = ready(self) {
                    return Ok(found);
                }
                relax();
            }
            if self.peer_has_closed() {
                // What the peer sent before it closed is visible now.
                return ready(self).ok_or(Errno::PIPE);
            }
        }
    }

    #[inline(always)]
    fn wait_asleep<T>(&self, asleep: usize, ready: impl Fn(&Self) -> Option<T>) -> Result<T, Errno> {
        // SAFETY: the flags are inside.
        let flag = unsafe { self.memory.flag(asleep) };
        for _ in 0..self.wait.polls() {
            if let Some(found) = ready(self) {
                return Ok(found);
            }
            relax();
        }
        loop {
            flag.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let found = match ready(self) {
                None if self.peer_has_closed() => Some(ready(self).ok_or(Errno::PIPE)),
                found => found.map(Ok),
            };
            if let Some(found) = found {
                flag.store(0, Ordering::Relaxed);
                return found;
            }
            // SAFETY: the flags are inside.
            let slept = self.wait.sleep(|| unsafe { self.memory.sleep(asleep) });
            if let Err(errno) = slept {
                return ready(self).ok_or(errno);
            }
        }
    }

    /// Wakes the peer if it sleeps, or is about to, on the flag at `asleep`.
    #[inline(always)]
    pub(super) fn notify(&self, asleep: usize) {
        if !W::SLEEPS {
            return;
        }
        fence(Ordering::SeqCst);
        // SAFETY: the flags are inside.
        if unsafe { self.memory.flag(asleep) }.load(Ordering::Relaxed) != 0 {
            self.wake(asleep);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self, asleep: usize) {
        // SAFETY: the flags are inside.
        unsafe {
            self.memory.flag(asleep).store(0, Ordering::Relaxed);
            self.wait.wake(|| self.memory.wake(asleep));
        }
    }

    fn peer_has_closed(&self) -> bool {
        // SAFETY: the flags are inside.
        let closed = unsafe { self.memory.flag(CLOSED + self.side.peer().index() * APART_BYTES) };
        closed.load(Ordering::Acquire) != 0
    }

    #[inline(always)]
    pub(super) fn slot_offset(&self, count: u64) -> usize {
        (count as usize & (SLOTS - 1)) * LINE_BYTES
    }

    #[inline(always)]
    pub(super) fn bulk_offset(&self, count: u64) -> usize {
        count as usize & (self.geometry.bulk_bytes - 1)
    }
}

impl<M: Memory, W: WaitStrategy, const SLOTS: usize> Drop for Engine<M, W, SLOTS> {
    fn drop(&mut self) {
        self.free_bulk_piece();
        self.publish_cursor();
        // SAFETY: the flags are inside.
        let closed = unsafe { self.memory.flag(CLOSED + self.side.index() * APART_BYTES) };
        closed.store(1, Ordering::Release);
        if W::SLEEPS {
            fence(Ordering::SeqCst);
            self.wake(self.outgoing.lane.consumer_asleep);
            self.wake(self.incoming.lane.producer_asleep);
        }
    }
}
