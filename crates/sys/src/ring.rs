//! A pair of single-producer, single-consumer rings in shared memory: one for each direction.
//!
//! Bytes go in order and unframed. It is not a queue for more than one writer or reader a direction,
//! and it does not survive a peer that dies in the middle: the other end then waits, as its
//! [`Wait`] says.
//!
//! # Layout
//!
//! ```text
//! door | claims | closed ×2 | progress, reader asleep, writer asleep ×2 | slots ×2 | bulk ×2
//! ```
//!
//! - A **slot** is one cache line: a tag and up to 56 bytes. The reader polls the tag of its next
//!   slot, so that a small message costs the transfer of one line. A tag holds the message's sequence
//!   number: a slot of an earlier lap cannot be mistaken for a new one, and no handshake clears it.
//! - Longer messages go in **pieces** through the bulk area, in order and never across its end; the
//!   slot then holds the length alone. Both ends know where the next piece lies.
//! - The **door** is one more slot that both directions share. One end holds it, as one holds the
//!   right to speak, and passes it on with whatever it sends next; so two ends that take turns hand
//!   one and the same line to and fro, which costs half of what two lines cost.
//! - **Progress** is what the reader has taken, told to the writer every sixteenth of a ring and always
//!   before the reader waits. The writer looks only when the ring seems full.
//! - The reader **soils** what it has read: it writes a byte into each line. The line is then in the
//!   reader's cache alone, and the writer takes it from there whole. Were it left shared, every store
//!   of the writer would have to win it over anew: measured, that is three to ten times as slow.
//!
//! # Orderings
//!
//! - Payload, then tag: `Release`; tag, then payload: `Acquire`. So a reader that sees the tag sees the payload.
//! - Reading and soiling, then progress: `Release`; progress, then overwriting: `Acquire`. So a writer
//!   never overwrites what is still being read.
//! - The door's holder has received the peer's last use of it by an `Acquire` of a tag that the peer
//!   released after reading the door itself. So there is one writer of the door at a time.
//! - Falling asleep: flag, fence, look again; waking: publish, fence, look at the flag. Both fences
//!   are `SeqCst`, so that one of the two sees the other, and a wake-up is never lost. A spinning pair
//!   has neither flag nor fence on its path.

use crate::Errno;
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(loom))]
pub use mapped::End;

/// The unit in which caches hand memory over.
const LINE_BYTES: usize = 64;
/// Between words that different ends write: two lines, because some processors fetch lines in pairs.
const APART_BYTES: usize = 2 * LINE_BYTES;
const PAGE_BYTES: usize = 4096;
const TAG_BYTES: usize = 8;
/// What fits beside the tag.
const SLOT_BYTES: usize = LINE_BYTES - TAG_BYTES;
/// The longest message that goes through the door. Two lines suffice for loom to see more than one.
const DOOR_BYTES: usize = if cfg!(loom) { 2 * LINE_BYTES } else { 1024 } - TAG_BYTES;
/// The longest message that goes through slots; a longer one goes in bulk.
const LONGEST_IN_SLOTS: usize = 2 * SLOT_BYTES;
/// Where bulk begins in its page. Private buffers mostly begin a few bytes into a page. Were bulk at the
/// same place, a processor would take loads for ones that depend on stores exactly a page away, and
/// hold them back: measured, a stream of large messages is a third slower.
const BULK_IN_PAGE: usize = PAGE_BYTES / 4;

const DOOR: usize = 0;
const CLAIMS: usize = (DOOR + TAG_BYTES + DOOR_BYTES).next_multiple_of(APART_BYTES);
const CLOSED: usize = CLAIMS + APART_BYTES;
const CONTROL: usize = CLOSED + 2 * APART_BYTES;
const CONTROL_BYTES: usize = 3 * APART_BYTES;
const FIRST_SLOT: usize = (CONTROL + 2 * CONTROL_BYTES).next_multiple_of(PAGE_BYTES);

/// A tag is the sequence number above these bits. It wraps after 2^52 messages: a year at 100 million
/// a second.
const TAG_BITS: u32 = 12;
/// In the door, whose message it is: without it an end could take its own for the peer's.
const FROM_SERVER: u64 = 1 << 11;
/// The sender passes the door on.
const PASSES_DOOR: u64 = 1 << 10;
/// How many bytes are in the slot or the door; none when the piece is in bulk.
const LENGTH: u64 = PASSES_DOOR - 1;
const _: () = assert!(DOOR_BYTES as u64 <= LENGTH && SLOT_BYTES <= DOOR_BYTES);

/// Which of the two ends. Client holds the door at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that made the memory.
    Client,
    /// The end that opened it.
    Server,
}

impl Side {
    pub(crate) fn index(self) -> usize {
        match self {
            Side::Client => 0,
            Side::Server => 1,
        }
    }

    pub(crate) fn peer(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// How large the rings are. Both ends must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    slots: usize,
    bulk_bytes: usize,
    piece_bytes: usize,
}

impl Geometry {
    const SLOTS: usize = 1024;
    const LEAST_BULK_BYTES: usize = PAGE_BYTES;
    const MOST_BULK_BYTES: usize = 1 << 30;
    /// Smaller pieces let both ends copy sooner at the same time; larger ones need fewer hand-overs.
    const MOST_PIECE_BYTES: usize = 8 << 10;

    /// Rings that hold at least `bulk_bytes` of long messages in each direction: rounded up to a
    /// power of two between 4 KiB and 1 GiB.
    pub fn with_bulk(bulk_bytes: usize) -> Self {
        let bulk_bytes = bulk_bytes.clamp(Self::LEAST_BULK_BYTES, Self::MOST_BULK_BYTES).next_power_of_two();
        // At least four pieces, so that both ends can copy at the same time.
        Self { slots: Self::SLOTS, bulk_bytes, piece_bytes: Self::MOST_PIECE_BYTES.min(bulk_bytes / 4) }
    }

    /// How many small messages fit into one direction.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// How many bytes of long messages fit into one direction.
    pub fn bulk_bytes(&self) -> usize {
        self.bulk_bytes
    }

    /// The largest part of a long message that is handed over at once.
    pub fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// The memory that the pair needs.
    pub fn memory_bytes(&self) -> usize {
        self.bulk_at(2).next_multiple_of(PAGE_BYTES)
    }

    fn slots_at(&self, direction: usize) -> usize {
        FIRST_SLOT + direction * self.slots * LINE_BYTES
    }

    fn bulk_at(&self, direction: usize) -> usize {
        self.slots_at(2).next_multiple_of(PAGE_BYTES) + BULK_IN_PAGE + direction * self.bulk_bytes
    }
}

/// How an end waits for its peer.
///
/// An end has two flags in shared memory that say that it sleeps, or is about to: one as a reader and one as a
/// writer. It sleeps on the flag itself, unless [`sleep`](Self::sleep) and [`wake`](Self::wake) are of another
/// kind: then on one thing of its own, on which its peer wakes it, whichever flag is set.
pub trait Wait {
    /// Whether it sleeps in the kernel, so that the peer must look whether to wake it.
    const SLEEPS: bool;

    /// How often it looks again before it sleeps.
    #[inline(always)]
    fn looks(&self) -> u32 {
        0
    }

    /// Sleeps until the peer wakes this end; `on_flag` sleeps on the flag in shared memory.
    ///
    /// It may return early, for its caller looks again. A wake-up that comes before it must end it: what is not
    /// a flag must keep a wake-up until one sleeps. An error says that the peer will never wake this end.
    #[inline(always)]
    fn sleep(&self, on_flag: impl FnOnce()) -> Result<(), Errno> {
        on_flag();
        Ok(())
    }

    /// Wakes the peer, which sleeps, is about to, or has just gone; `on_flag` wakes it on the flag.
    #[inline(always)]
    fn wake(&self, on_flag: impl FnOnce()) {
        on_flag();
    }
}

/// Looks again and again, and never enters the kernel. Both ends must spin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spin;

impl Wait for Spin {
    const SLEEPS: bool = false;
}

/// Looks once, then sleeps on a futex until the peer wakes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Futex;

impl Wait for Futex {
    const SLEEPS: bool = true;
}

/// Memory that both ends share, zero at first: mapped; on the heap and in loom's cells for tests.
///
/// Offsets are from its beginning. Words and flags are at the beginnings of lines, and one more word
/// 8 bytes above.
trait Memory {
    /// The word at `at`.
    ///
    /// # Safety
    ///
    /// `at` is a multiple of 8 and inside.
    unsafe fn word(&self, at: usize) -> &AtomicU64;

    /// The flag at `at`, which is 0 or 1 and can be slept on.
    ///
    /// # Safety
    ///
    /// `at` is a multiple of 4 and inside.
    unsafe fn flag(&self, at: usize) -> &AtomicU32;

    /// Copies `from` to `at`.
    ///
    /// # Safety
    ///
    /// All is inside, and no other access to these bytes happens at the same time.
    unsafe fn write(&self, at: usize, from: &[u8]);

    /// Copies what is at `at` to `into`.
    ///
    /// # Safety
    ///
    /// All is inside, and no write to these bytes happens at the same time.
    unsafe fn read(&self, at: usize, into: &mut [u8]);

    /// Writes into each line that begins within the `length_bytes` at `at`.
    ///
    /// # Safety
    ///
    /// As [`write`](Self::write).
    unsafe fn soil(&self, at: usize, length_bytes: usize);

    /// Sleeps while the flag at `at` is 1, though at most for a moment.
    ///
    /// # Safety
    ///
    /// As [`flag`](Self::flag).
    unsafe fn sleep(&self, at: usize);

    /// Wakes who sleeps on the flag at `at`.
    ///
    /// # Safety
    ///
    /// As [`flag`](Self::flag).
    unsafe fn wake(&self, at: usize);
}

/// Where one direction's things are.
#[derive(Debug, Clone, Copy)]
struct Lane {
    progress: usize,
    reader_asleep: usize,
    writer_asleep: usize,
    slots: usize,
    bulk: usize,
}

impl Lane {
    /// The lane on which `side` sends.
    fn of(side: Side, geometry: &Geometry) -> Self {
        let direction = side.index();
        let control = CONTROL + direction * CONTROL_BYTES;
        Self {
            progress: control,
            reader_asleep: control + APART_BYTES,
            writer_asleep: control + 2 * APART_BYTES,
            slots: geometry.slots_at(direction),
            bulk: geometry.bulk_at(direction),
        }
    }
}

/// What the writer of a lane knows. Counts only grow.
#[derive(Debug)]
struct Outgoing {
    lane: Lane,
    /// The tag of the next message, without length.
    tag: u64,
    slots: u64,
    /// The count at which there is no free slot, as far as is known.
    slots_limit: u64,
    bulk: u64,
    bulk_freed: u64,
    lent: Lent,
}

/// What the writer lent last, to be written in place. It is lent no more once anything is sent, which changes the tag.
#[derive(Debug, Clone, Copy)]
struct Lent {
    tag: u64,
    place: Place,
    length_bytes: usize,
}

/// What the reader of a lane knows. Counts only grow.
#[derive(Debug)]
struct Incoming {
    lane: Lane,
    /// The tag of the next message, without length.
    tag: u64,
    slots: u64,
    slots_told: u64,
    /// The count when this end last had to wait.
    slots_at_wait: u64,
    bulk: u64,
    bulk_told: u64,
    /// The piece that is being read, or was read last.
    piece: Piece,
    /// Whether pieces in bulk are soiled when they were read: unless this end does not touch them.
    soils: bool,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    place: Place,
    at: usize,
    length_bytes: usize,
    read_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// There was none yet, or it is done with.
    Nowhere,
    Slot,
    Door,
    Bulk,
}

/// One end of the pair: the algorithm, over any memory, with `SLOTS` slots a direction.
#[derive(Debug)]
struct Engine<M: Memory, W: Wait, const SLOTS: usize> {
    memory: M,
    geometry: Geometry,
    side: Side,
    outgoing: Outgoing,
    incoming: Incoming,
    holds_door: bool,
    wait: W,
}

impl<M: Memory, W: Wait, const SLOTS: usize> Engine<M, W, SLOTS> {
    /// After how many slots the reader tells the writer of its progress.
    const BATCH: u64 = if SLOTS < 64 { 1 } else { SLOTS as u64 / 16 };
    /// How far ahead a reader of a stream lets its writer get.
    const LEAD: u64 = SLOTS as u64 / 8;

    /// Takes `side`; `None` if it is taken, or if the peer has claimed with another geometry or wait.
    ///
    /// # Safety
    ///
    /// `memory` is of `geometry.memory_bytes()`, was zero before the first claim, and is used by engines alone.
    unsafe fn claim(memory: M, geometry: Geometry, side: Side, wait: W) -> Option<Self> {
        assert!(SLOTS.is_power_of_two() && SLOTS == geometry.slots && geometry.bulk_bytes.is_power_of_two());
        // Never zero, because bulk is at least a line, and the lowest bit is free.
        let claim = geometry.bulk_bytes as u64 | u64::from(W::SLEEPS);
        // SAFETY: the claims are below the slots, which are inside by the caller's word.
        let claim_of = |side: Side| unsafe { memory.word(CLAIMS + side.index() * TAG_BYTES) };
        claim_of(side).compare_exchange(0, claim, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        if ![0, claim].contains(&claim_of(side.peer()).load(Ordering::Acquire)) {
            return None;
        }
        let first_tag = |side: Side| (1 << TAG_BITS) | if side == Side::Server { FROM_SERVER } else { 0 };
        Some(Self {
            outgoing: Outgoing {
                lane: Lane::of(side, &geometry),
                tag: first_tag(side),
                slots: 0,
                slots_limit: SLOTS as u64,
                bulk: 0,
                bulk_freed: 0,
                // No message has this tag.
                lent: Lent { tag: 0, place: Place::Nowhere, length_bytes: 0 },
            },
            incoming: Incoming {
                lane: Lane::of(side.peer(), &geometry),
                tag: first_tag(side.peer()),
                slots: 0,
                slots_told: 0,
                slots_at_wait: 0,
                bulk: 0,
                bulk_told: 0,
                piece: Piece { place: Place::Nowhere, at: 0, length_bytes: 0, read_bytes: 0 },
                soils: true,
            },
            holds_door: side == Side::Client,
            memory,
            geometry,
            side,
            wait,
        })
    }

    /// Hands over a first part of `bytes` and returns its length.
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.len() > SLOT_BYTES || bytes.is_empty() {
            return self.send_long(bytes);
        }
        let at = if self.holds_door { DOOR } else { self.take_slot()? };
        // SAFETY: inside, by the length; the door is this end's, and so is the slot, by `take_slot`.
        unsafe { self.memory.write(at + TAG_BYTES, bytes) };
        self.publish(at, bytes.len() as u64);
        Ok(bytes.len())
    }

    #[inline(never)]
    fn send_long(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.holds_door && bytes.len() <= DOOR_BYTES {
            // SAFETY: inside, by the length; while this end holds the door, the peer does not touch it.
            unsafe { self.memory.write(DOOR + TAG_BYTES, bytes) };
            self.publish(DOOR, bytes.len() as u64);
            return Ok(bytes.len());
        }
        let passes_door = if self.holds_door { PASSES_DOOR } else { 0 };
        if bytes.len() <= LONGEST_IN_SLOTS {
            let slot = self.take_slot()?;
            // SAFETY: inside, by the length; the slot is this end's.
            unsafe { self.memory.write(slot + TAG_BYTES, &bytes[..SLOT_BYTES]) };
            self.publish(slot, SLOT_BYTES as u64 | passes_door);
            return Ok(SLOT_BYTES);
        }
        self.send_piece(bytes, passes_door)
    }

    /// The next slot, for this end to write and publish.
    #[inline(always)]
    fn take_slot(&mut self) -> Result<usize, Errno> {
        let slot = self.next_slot()?;
        self.outgoing.slots += 1;
        Ok(slot)
    }

    /// Where the next slot is; waits until it is free.
    #[inline(always)]
    fn next_slot(&mut self) -> Result<usize, Errno> {
        if self.outgoing.slots == self.outgoing.slots_limit {
            self.await_slot()?;
        }
        Ok(self.outgoing.lane.slots + self.slot_offset(self.outgoing.slots))
    }

    /// Sends a first piece of `bytes` in bulk.
    fn send_piece(&mut self, bytes: &[u8], passes_door: u64) -> Result<usize, Errno> {
        let (at, length_bytes) = self.find_room(bytes.len())?;
        let slot = self.take_slot()?;
        // SAFETY: inside, because the piece ends before the end of bulk; the peer has told that it is done with it.
        unsafe { self.memory.write(at, &bytes[..length_bytes]) };
        self.publish_piece(slot, length_bytes, passes_door);
        Ok(length_bytes)
    }

    /// Where the next piece in bulk goes, of at most `most_bytes`, and its length; waits until there is room.
    #[inline(always)]
    fn find_room(&mut self, most_bytes: usize) -> Result<(usize, usize), Errno> {
        let offset = self.bulk_offset(self.outgoing.bulk);
        let to_end = self.geometry.bulk_bytes - offset;
        let length_bytes = most_bytes.min(self.geometry.piece_bytes).min(to_end);
        let room_bytes = length_bytes.next_multiple_of(LINE_BYTES) as u64;
        let used_bytes = self.outgoing.bulk - self.outgoing.bulk_freed;
        if self.geometry.bulk_bytes as u64 - used_bytes < room_bytes {
            self.await_bulk(room_bytes)?;
        }
        Ok((self.outgoing.lane.bulk + offset, length_bytes))
    }

    /// Shows the peer the next piece in bulk, by `slot`.
    #[inline(always)]
    fn publish_piece(&mut self, slot: usize, length_bytes: usize, passes_door: u64) {
        // SAFETY: the slot's second word is inside.
        unsafe { self.memory.word(slot + TAG_BYTES) }.store(length_bytes as u64, Ordering::Relaxed);
        self.outgoing.bulk += length_bytes.next_multiple_of(LINE_BYTES) as u64;
        self.publish(slot, passes_door);
    }

    /// Finds where a next part of at most `most_bytes` may be written, and its length: waits until it is this
    /// end's alone, which it stays until this end sends. Places are chosen as for bytes that are copied.
    #[inline(never)]
    fn room_for_writer(&mut self, most_bytes: usize) -> Result<(usize, usize), Errno> {
        let (place, at, length_bytes) = if self.holds_door && most_bytes <= DOOR_BYTES {
            (Place::Door, DOOR + TAG_BYTES, most_bytes)
        } else if most_bytes <= LONGEST_IN_SLOTS {
            let slot = self.next_slot()?;
            (Place::Slot, slot + TAG_BYTES, most_bytes.min(SLOT_BYTES))
        } else {
            let (at, length_bytes) = self.find_room(most_bytes)?;
            // So that handing over need not wait.
            self.next_slot()?;
            (Place::Bulk, at, length_bytes)
        };
        self.outgoing.lent = Lent { tag: self.outgoing.tag, place, length_bytes };
        Ok((at, length_bytes))
    }

    /// Sends the first `bytes` of what was reserved, which are written by now.
    #[inline(never)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        let Lent { tag, place, length_bytes } = self.outgoing.lent;
        if tag != self.outgoing.tag || !(1..=length_bytes).contains(&bytes) {
            return Err(Errno::INVAL);
        }
        if place == Place::Door {
            self.publish(DOOR, bytes as u64);
            return Ok(());
        }
        // It may have come since.
        let passes_door = if self.holds_door { PASSES_DOOR } else { 0 };
        let slot = self.take_slot()?;
        if place == Place::Slot {
            self.publish(slot, bytes as u64 | passes_door);
        } else {
            self.publish_piece(slot, bytes, passes_door);
        }
        Ok(())
    }

    /// Shows the peer what was written at `at`, and wakes it where it may sleep.
    #[inline(always)]
    fn publish(&mut self, at: usize, low_bits: u64) {
        // SAFETY: slots and the door are inside.
        unsafe { self.memory.word(at) }.store(self.outgoing.tag | low_bits, Ordering::Release);
        self.outgoing.tag = self.outgoing.tag.wrapping_add(1 << TAG_BITS);
        self.holds_door = false;
        self.rouse(self.outgoing.lane.reader_asleep);
    }

    /// Receives at least 1 byte of one piece.
    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        if self.incoming.piece.place == Place::Nowhere {
            let slot = self.incoming.lane.slots + self.slot_offset(self.incoming.slots);
            // SAFETY: slots are inside.
            let tag = unsafe { self.memory.word(slot) }.load(Ordering::Acquire);
            // One comparison for all: it is the next message, is not in bulk, does not pass the door, and fits.
            let length = tag ^ self.incoming.tag;
            if length.wrapping_sub(1) < into.len().min(SLOT_BYTES) as u64 {
                let into = &mut into[..length as usize];
                // SAFETY: inside, by the length; the peer does not touch the slot before it is told.
                unsafe { self.memory.read(slot + TAG_BYTES, into) };
                self.incoming.tag = self.incoming.tag.wrapping_add(1 << TAG_BITS);
                self.close_slot(slot, true);
                return Ok(into.len());
            }
        }
        self.receive_any(into)
    }

    #[inline(never)]
    fn receive_any(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        if into.is_empty() {
            return Ok(0);
        }
        let (at, length_bytes) = self.find_bytes()?;
        let count = into.len().min(length_bytes);
        // SAFETY: `open` has checked that the piece is inside, whatever the peer wrote; the peer does
        // not touch it before this end has told that it is done with it.
        unsafe { self.memory.read(at, &mut into[..count]) };
        self.pass_over(count);
        Ok(count)
    }

    /// Where the bytes of the piece that were not read yet are, and how many; of the next piece when all were.
    #[inline(always)]
    fn find_bytes(&mut self) -> Result<(usize, usize), Errno> {
        if self.incoming.piece.read_bytes == self.incoming.piece.length_bytes {
            self.close_piece();
            let (at, tag) = match self.look() {
                Some(found) => found,
                None => self.await_message()?,
            };
            self.open(at, tag)?;
        }
        let Piece { at, length_bytes, read_bytes, .. } = self.incoming.piece;
        Ok((at + read_bytes, length_bytes - read_bytes))
    }

    /// Is done with the next `count` bytes, which are at least 1 and inside of the piece.
    #[inline(always)]
    fn pass_over(&mut self, count: usize) {
        let piece = &mut self.incoming.piece;
        piece.read_bytes += count;
        if piece.read_bytes == piece.length_bytes && piece.place != Place::Bulk {
            let place = std::mem::replace(&mut piece.place, Place::Nowhere);
            if place == Place::Door {
                self.holds_door = true;
            } else {
                self.close_slot(self.incoming.lane.slots + self.slot_offset(self.incoming.slots), true);
            }
        }
    }

    /// As [`find_bytes`](Self::find_bytes), for a reader in place.
    #[inline(never)]
    fn next_bytes(&mut self) -> Result<(usize, usize), Errno> {
        self.find_bytes()
    }

    /// As [`pass_over`](Self::pass_over), for a reader in place, who may be wrong.
    #[inline(never)]
    fn release(&mut self, bytes: usize) -> Result<(), Errno> {
        let Piece { length_bytes, read_bytes, .. } = self.incoming.piece;
        if !(1..=length_bytes - read_bytes).contains(&bytes) {
            return Err(Errno::INVAL);
        }
        self.pass_over(bytes);
        Ok(())
    }

    /// Where the next message is and its tag, if it is there.
    #[inline(always)]
    fn look(&self) -> Option<(usize, u64)> {
        let is_next = |tag: u64| (tag ^ self.incoming.tag) & !(PASSES_DOOR | LENGTH) == 0;
        let slot = self.incoming.lane.slots + self.slot_offset(self.incoming.slots);
        // SAFETY: slots and the door are inside.
        unsafe {
            let tag = self.memory.word(slot).load(Ordering::Acquire);
            if is_next(tag) {
                return Some((slot, tag));
            }
            let tag = self.memory.word(DOOR).load(Ordering::Acquire);
            if is_next(tag) {
                return Some((DOOR, tag));
            }
        }
        None
    }

    /// Finds the bytes of the message at `at`. Trusts nothing of what the peer wrote.
    #[inline(always)]
    fn open(&mut self, at: usize, tag: u64) -> Result<(), Errno> {
        let length_bytes = (tag & LENGTH) as usize;
        let (place, at, length_bytes, most_bytes) = if at == DOOR {
            (Place::Door, DOOR + TAG_BYTES, length_bytes, DOOR_BYTES)
        } else if length_bytes != 0 {
            (Place::Slot, at + TAG_BYTES, length_bytes, SLOT_BYTES)
        } else {
            // SAFETY: the slot's second word is inside.
            let length = unsafe { self.memory.word(at + TAG_BYTES) }.load(Ordering::Relaxed);
            let offset = self.bulk_offset(self.incoming.bulk);
            let most_bytes = self.geometry.piece_bytes.min(self.geometry.bulk_bytes - offset);
            let length_bytes = usize::try_from(length).unwrap_or(usize::MAX);
            (Place::Bulk, self.incoming.lane.bulk + offset, length_bytes, most_bytes)
        };
        if !(1..=most_bytes).contains(&length_bytes) {
            return Err(Errno::BADMSG);
        }
        self.incoming.tag = self.incoming.tag.wrapping_add(1 << TAG_BITS);
        self.holds_door |= tag & PASSES_DOOR != 0;
        self.incoming.piece = Piece { place, at, length_bytes, read_bytes: 0 };
        Ok(())
    }

    /// Is done with the next slot, which is at `slot`.
    #[inline(always)]
    fn close_slot(&mut self, slot: usize, is_small: bool) {
        // Soils it. The peer overwrites the tag only after it was told.
        // SAFETY: slots are inside.
        unsafe { self.memory.word(slot) }.store(0, Ordering::Relaxed);
        self.incoming.slots += 1;
        if self.incoming.slots & (Self::BATCH - 1) == 0 {
            self.tell();
            if is_small {
                self.let_writer_lead();
            }
        }
    }

    /// In a stream of small messages, keeps away from the writer for a while.
    ///
    /// A reader at the writer's heels takes each line away while the writer is still at it, and both
    /// crawl at the pace of hand-overs: measured, five to twenty times as slow. So a spinning reader
    /// that has had a run of messages without waiting pauses, a few microseconds at most, until the writer
    /// is well ahead. An end that takes turns, or whose messages come singly, has no such run.
    #[inline(never)]
    fn let_writer_lead(&mut self) {
        const RUN: u64 = 16;
        const LOOKS: u32 = 8;
        const PAUSES_PER_LOOK: u32 = 32;
        if W::SLEEPS || cfg!(loom) || self.incoming.slots - self.incoming.slots_at_wait < RUN {
            return;
        }
        let slot = self.incoming.lane.slots + self.slot_offset(self.incoming.slots + Self::LEAD - 1);
        for _ in 0..LOOKS {
            // SAFETY: slots are inside.
            let tag = unsafe { self.memory.word(slot) }.load(Ordering::Relaxed);
            // Messages through the door take tags but no slots, so that a greater tag tells as much.
            // A tag of an earlier lap is smaller, and so is one that was soiled.
            if tag.wrapping_sub(self.incoming.tag) >> 63 == 0 {
                return;
            }
            for _ in 0..PAUSES_PER_LOOK {
                relax();
            }
        }
    }

    /// Is done with a piece in bulk that was read to its end: soils it.
    ///
    /// This happens when the next piece is asked for, not when the last byte is read: between the two
    /// this end may answer, and stores become visible in order, so that the answer would have to
    /// wait until every soiled line is won.
    fn close_piece(&mut self) {
        let Piece { place, at, length_bytes, read_bytes } = self.incoming.piece;
        if place != Place::Bulk || read_bytes < length_bytes {
            return;
        }
        self.incoming.piece.place = Place::Nowhere;
        if self.incoming.soils {
            // SAFETY: `open` has checked that the piece is inside; the peer does not touch it before it is told.
            unsafe { self.memory.soil(at, length_bytes) };
        }
        self.incoming.bulk += length_bytes.next_multiple_of(LINE_BYTES) as u64;
        // A longer piece keeps both ends busy enough: the reader is not at the writer's heels.
        let is_small = length_bytes < 2048;
        self.close_slot(self.incoming.lane.slots + self.slot_offset(self.incoming.slots), is_small);
        if self.incoming.bulk - self.incoming.bulk_told >= self.geometry.bulk_bytes as u64 / 4 {
            self.tell();
        }
    }

    /// Tells the peer what it may overwrite, and wakes it where it may sleep.
    fn tell(&mut self) {
        let Incoming { lane, slots, slots_told, bulk, bulk_told, .. } = self.incoming;
        if slots == slots_told {
            // Every piece in bulk has a slot, so that there is nothing to tell of bulk either.
            return;
        }
        // SAFETY: progress is inside.
        unsafe {
            if bulk != bulk_told {
                self.memory.word(lane.progress + TAG_BYTES).store(bulk, Ordering::Release);
            }
            self.memory.word(lane.progress).store(slots, Ordering::Release);
        }
        self.incoming.slots_told = slots;
        self.incoming.bulk_told = bulk;
        self.rouse(lane.writer_asleep);
    }

    #[cold]
    #[inline(never)]
    fn await_message(&mut self) -> Result<(usize, u64), Errno> {
        // The peer may wait for room before it can send what this end waits for.
        self.tell();
        self.let_writer_lead();
        let found = self.wait(self.incoming.lane.reader_asleep, Self::look);
        self.incoming.slots_at_wait = self.incoming.slots;
        found
    }

    #[cold]
    #[inline(never)]
    fn await_slot(&mut self) -> Result<(), Errno> {
        self.close_piece();
        self.tell();
        let (lane, written, freed) =
            (self.outgoing.lane, self.outgoing.slots, self.outgoing.slots_limit - SLOTS as u64);
        let full = SLOTS as u64;
        let told = self.wait(lane.writer_asleep, |engine| {
            // SAFETY: progress is inside.
            let told = unsafe { engine.memory.word(lane.progress) }.load(Ordering::Acquire);
            (written.wrapping_sub(told) < full || told > written).then_some(told)
        })?;
        if !(freed..=written).contains(&told) {
            return Err(Errno::BADMSG);
        }
        self.outgoing.slots_limit = told + SLOTS as u64;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn await_bulk(&mut self, room_bytes: u64) -> Result<(), Errno> {
        self.close_piece();
        self.tell();
        let (lane, written, freed) = (self.outgoing.lane, self.outgoing.bulk, self.outgoing.bulk_freed);
        let most = self.geometry.bulk_bytes as u64 - room_bytes;
        let told = self.wait(lane.writer_asleep, |engine| {
            // SAFETY: progress is inside.
            let told = unsafe { engine.memory.word(lane.progress + TAG_BYTES) }.load(Ordering::Acquire);
            (written.wrapping_sub(told) <= most || told > written).then_some(told)
        })?;
        if !(freed..=written).contains(&told) {
            return Err(Errno::BADMSG);
        }
        self.outgoing.bulk_freed = told;
        Ok(())
    }

    /// Waits until `ready`; `Errno::PIPE` when the peer has closed and it is not.
    #[inline(always)]
    fn wait<T>(&self, asleep: usize, ready: impl Fn(&Self) -> Option<T>) -> Result<T, Errno> {
        if W::SLEEPS { self.wait_asleep(asleep, ready) } else { self.wait_awake(ready) }
    }

    #[inline(always)]
    fn wait_awake<T>(&self, ready: impl Fn(&Self) -> Option<T>) -> Result<T, Errno> {
        // Rarely, because closing is not on the path of any message.
        const LOOKS_BETWEEN_CLOSED: u32 = if cfg!(loom) { 1 } else { 1024 };
        loop {
            for _ in 0..LOOKS_BETWEEN_CLOSED {
                if let Some(found) = ready(self) {
                    return Ok(found);
                }
                relax();
            }
            if self.peer_has_closed() {
                // What it sent before it closed is seen now.
                return ready(self).ok_or(Errno::PIPE);
            }
        }
    }

    #[inline(always)]
    fn wait_asleep<T>(&self, asleep: usize, ready: impl Fn(&Self) -> Option<T>) -> Result<T, Errno> {
        // SAFETY: the flags are inside.
        let flag = unsafe { self.memory.flag(asleep) };
        for _ in 0..self.wait.looks() {
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
    fn rouse(&self, asleep: usize) {
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
    fn slot_offset(&self, count: u64) -> usize {
        (count as usize & (SLOTS - 1)) * LINE_BYTES
    }

    #[inline(always)]
    fn bulk_offset(&self, count: u64) -> usize {
        count as usize & (self.geometry.bulk_bytes - 1)
    }
}

impl<M: Memory, W: Wait, const SLOTS: usize> Drop for Engine<M, W, SLOTS> {
    fn drop(&mut self) {
        self.close_piece();
        self.tell();
        // SAFETY: the flags are inside.
        let closed = unsafe { self.memory.flag(CLOSED + self.side.index() * APART_BYTES) };
        closed.store(1, Ordering::Release);
        if W::SLEEPS {
            fence(Ordering::SeqCst);
            self.wake(self.outgoing.lane.reader_asleep);
            self.wake(self.incoming.lane.writer_asleep);
        }
    }
}

/// A pause between two looks. On x86 it also keeps the loads of the next looks from being started
/// ahead of time, which would be thrown away, at a cost, when the line arrives.
#[inline(always)]
fn relax() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}

#[cfg(not(loom))]
mod mapped {
    //! The engine over memory that has an address.

    use super::{Engine, Futex, Geometry, LINE_BYTES, Memory, Side, Wait};
    use crate::shared_memory::SharedMemory;
    use crate::{Errno, Failure};
    use rustix::thread::futex;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, AtomicU64};

    /// Addressable memory, alive as long as its owner.
    #[derive(Debug)]
    pub(super) struct Region<O> {
        base: NonNull<u8>,
        len_bytes: usize,
        _owner: O,
    }

    // SAFETY: a region is moved with its owner, and no thread is special to memory.
    unsafe impl<O: Send> Send for Region<O> {}

    impl<O> Region<O> {
        /// # Safety
        ///
        /// `base` is aligned to a line and valid for `len_bytes` of reads and writes while `owner` lives, and
        /// all access while it does follows the contract of [`Memory`].
        pub(super) unsafe fn new(base: NonNull<u8>, len_bytes: usize, owner: O) -> Self {
            Self { base, len_bytes, _owner: owner }
        }

        #[inline(always)]
        fn at(&self, at: usize, len_bytes: usize) -> *mut u8 {
            debug_assert!(at + len_bytes <= self.len_bytes);
            // SAFETY: callers keep to the contract of `Memory`, so that `at` is inside.
            unsafe { self.base.as_ptr().add(at) }
        }

        /// The `length_bytes` at `at`, to be read where they are.
        ///
        /// # Safety
        ///
        /// As [`Memory::read`], as long as they are lent.
        unsafe fn reserve(&self, at: usize, length_bytes: usize) -> &[u8] {
            // SAFETY: inside by contract, valid while the owner lives, and zero at first.
            unsafe { std::slice::from_raw_parts(self.at(at, length_bytes), length_bytes) }
        }

        /// The `length_bytes` at `at`, to be written where they are.
        ///
        /// # Safety
        ///
        /// As [`Memory::write`], as long as they are lent.
        unsafe fn lend_mut(&mut self, at: usize, length_bytes: usize) -> &mut [u8] {
            // SAFETY: inside by contract, valid while the owner lives, and zero at first.
            unsafe { std::slice::from_raw_parts_mut(self.at(at, length_bytes), length_bytes) }
        }
    }

    impl<O, W: Wait, const SLOTS: usize> Engine<Region<O>, W, SLOTS> {
        #[inline(always)]
        pub(super) fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
            let (at, length_bytes) = self.room_for_writer(most_bytes)?;
            // SAFETY: `reserve` has found a place that is inside and that the peer is done with; this end sends
            // nothing while it is lent, because it is borrowed. See `End::reserve` on a peer that breaks that.
            Ok(unsafe { self.memory.lend_mut(at, length_bytes) })
        }

        #[inline(always)]
        pub(super) fn peek(&mut self, most_bytes: usize) -> Result<&[u8], Errno> {
            let (at, length_bytes) = self.next_bytes()?;
            // SAFETY: `open` has checked that the piece is inside, whatever the peer wrote; the peer does not
            // touch it before it is told, which this end does not while it is borrowed. See `End::peek`.
            Ok(unsafe { self.memory.reserve(at, length_bytes.min(most_bytes)) })
        }
    }

    impl<O> Memory for Region<O> {
        #[inline(always)]
        unsafe fn word(&self, at: usize) -> &AtomicU64 {
            // SAFETY: inside and aligned by contract, valid while the owner lives.
            unsafe { AtomicU64::from_ptr(self.at(at, 8).cast()) }
        }

        #[inline(always)]
        unsafe fn flag(&self, at: usize) -> &AtomicU32 {
            // SAFETY: inside and aligned by contract, valid while the owner lives.
            unsafe { AtomicU32::from_ptr(self.at(at, 4).cast()) }
        }

        #[inline(always)]
        unsafe fn write(&self, at: usize, from: &[u8]) {
            // SAFETY: inside and without a race by contract; `from` is private, so that they cannot overlap.
            unsafe { copy(from.as_ptr(), self.at(at, from.len()), from.len()) }
        }

        #[inline(always)]
        unsafe fn read(&self, at: usize, into: &mut [u8]) {
            // SAFETY: inside and without a race by contract; `into` is private, so that they cannot overlap.
            unsafe { copy(self.at(at, into.len()), into.as_mut_ptr(), into.len()) }
        }

        #[inline(always)]
        unsafe fn soil(&self, at: usize, length_bytes: usize) {
            for line in (at.next_multiple_of(LINE_BYTES)..at + length_bytes).step_by(LINE_BYTES) {
                // SAFETY: inside and without a race by contract.
                unsafe { self.at(line, 1).write_volatile(0) };
            }
        }

        unsafe fn sleep(&self, at: usize) {
            /// A peer that died without closing is noticed by nobody here; one that closed, at the
            /// latest after this.
            const AT_MOST: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            // Woken, timed out, interrupted or too late: in every case the caller looks again.
            // SAFETY: by contract.
            let _ = futex::wait(unsafe { self.flag(at) }, futex::Flags::empty(), 1, Some(&AT_MOST));
        }

        unsafe fn wake(&self, at: usize) {
            // The address is mapped, so that this cannot fail.
            // SAFETY: by contract.
            let woken = futex::wake(unsafe { self.flag(at) }, futex::Flags::empty(), 1);
            debug_assert!(woken.is_ok());
        }
    }

    /// Copies `count` bytes, a line or less without a call.
    ///
    /// # Safety
    ///
    /// As of `copy_nonoverlapping`.
    #[inline(always)]
    unsafe fn copy(from: *const u8, to: *mut u8, count: usize) {
        /// Copies the first and the last bytes, as many as `T` has; they may overlap. The last go
        /// first: a slot's tag follows in its first half, and a processor joins stores to one half.
        ///
        /// # Safety
        ///
        /// As of `copy_nonoverlapping`; `count` is from the size of `T` to twice that, and `T` is plain data.
        #[inline(always)]
        unsafe fn both_ends<T>(from: *const u8, to: *mut u8, count: usize) {
            let last = count - size_of::<T>();
            // SAFETY: by contract; no alignment is asked for.
            unsafe {
                let head = from.cast::<T>().read_unaligned();
                let tail = from.add(last).cast::<T>().read_unaligned();
                to.add(last).cast::<T>().write_unaligned(tail);
                to.cast::<T>().write_unaligned(head);
            }
        }
        /// Half of what the smallest line-wide move carries, in registers.
        #[cfg(target_arch = "x86_64")]
        type Wide = std::arch::x86_64::__m128i;
        #[cfg(not(target_arch = "x86_64"))]
        type Wide = u128;
        // SAFETY: by contract, and by the ranges.
        unsafe {
            match count {
                32..=64 => {
                    let (from, to) = (from.cast::<Wide>(), to.cast::<Wide>());
                    let (a, b) = (from.read_unaligned(), from.add(1).read_unaligned());
                    let c = from.byte_add(count - 32).read_unaligned();
                    let d = from.byte_add(count - 16).read_unaligned();
                    to.byte_add(count - 32).write_unaligned(c);
                    to.byte_add(count - 16).write_unaligned(d);
                    to.write_unaligned(a);
                    to.add(1).write_unaligned(b);
                }
                16..32 => both_ends::<Wide>(from, to, count),
                8..16 => both_ends::<u64>(from, to, count),
                4..8 => both_ends::<u32>(from, to, count),
                2..4 => both_ends::<u16>(from, to, count),
                1 => to.write(from.read()),
                _ => std::ptr::copy_nonoverlapping(from, to, count),
            }
        }
    }

    /// One end of a pair of rings between two processes.
    #[derive(Debug)]
    pub struct End<W: Wait = Futex>(Engine<Region<SharedMemory>, W, { Geometry::SLOTS }>);

    impl<W: Wait> End<W> {
        /// Takes `side` of the pair of `geometry` in `memory`, to wait as `wait` does. The peer takes the other
        /// side with the same geometry and way of waiting.
        pub fn claim(memory: SharedMemory, geometry: Geometry, side: Side, wait: W) -> Result<Self, Failure> {
            let refuse = |why: &str| {
                Err(Failure::new(
                    "claim",
                    format!("the {side:?} end of a ring"),
                    why,
                    "make new shared memory",
                ))
            };
            if memory.len_bytes() != geometry.memory_bytes() {
                return refuse("the memory is not of the ring's size");
            }
            let (base, len_bytes) = (memory.base(), memory.len_bytes());
            // SAFETY: the mapping lives as long as `memory`, is aligned to a page, and is used by nobody else,
            // because it is moved in here; what the peer maps is used through this type too.
            let region = unsafe { Region::new(base, len_bytes, memory) };
            // SAFETY: the size is checked; the memory is as created, which is zero, but for a peer of the
            // same geometry and way of waiting.
            match unsafe { Engine::claim(region, geometry, side, wait) } {
                Some(engine) => Ok(Self(engine)),
                None => refuse("it is taken"),
            }
        }

        /// Hands over a first part of `bytes` and returns its length; waits while there is no room.
        ///
        /// `Errno::PIPE` when there is no room and the peer has closed; `Errno::BADMSG` when the peer
        /// has written what no end of a ring writes.
        #[inline(always)]
        pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
            self.0.send(bytes)
        }

        /// Receives at least 1 byte into `into`, and at most one piece; waits until there is one.
        ///
        /// `Errno::PIPE` when there is none and the peer has closed; `Errno::BADMSG` as in
        /// [`send`](Self::send).
        #[inline(always)]
        pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
            self.0.receive(into)
        }

        /// An end whose messages are received in place and not touched there: it does not soil them either, so
        /// that their lines stay in the cache in which they were written.
        pub fn untouched(mut self) -> Self {
            self.0.incoming.soils = false;
            self
        }

        /// Where a next part of a message is to be made: 1 to `most_bytes` bytes, of whatever content, which
        /// [`commit`](Self::commit) sends. Waits while there is no room, and fails as [`send`](Self::send).
        ///
        /// Where they lie is this end's own knowledge, and an end of a ring does not touch them until they are
        /// handed over; that is all that makes the reference exclusive. A peer that breaks the protocol, or
        /// whoever else maps the memory, can change these bytes under it, which no process can be kept from
        /// and the language does not provide for. So nothing that must be right may hang on their values.
        #[inline(always)]
        pub fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
            self.0.reserve(most_bytes)
        }

        /// Sends the first `bytes` of what [`reserve`](Self::reserve) lent last; `Errno::INVAL` when it has lent
        /// less, or when anything was sent since.
        #[inline(always)]
        pub fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
            self.0.commit(bytes)
        }

        /// The next bytes, where they lie: 1 to `most_bytes` of one piece. Waits until there are any, and fails as
        /// [`receive`](Self::receive). Until they are released the same bytes are lent again.
        ///
        /// Where they lie and how many there are is checked, whatever the peer wrote. That they do not change
        /// under the reference hangs on the peer, as in [`reserve`](Self::reserve).
        #[inline(always)]
        pub fn peek(&mut self, most_bytes: usize) -> Result<&[u8], Errno> {
            self.0.peek(most_bytes)
        }

        /// Gives back the next `bytes`; `Errno::INVAL` when [`peek`](Self::peek) could not lend so many.
        #[inline(always)]
        pub fn release(&mut self, bytes: usize) -> Result<(), Errno> {
            self.0.release(bytes)
        }
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::mapped::Region;
    use super::*;
    use crate::shared_memory::SharedMemory;
    use proptest::prelude::*;
    use std::ptr::NonNull;
    use std::sync::Arc;

    /// Lines on the heap, so that Miri can watch.
    struct Heap {
        base: NonNull<u8>,
        layout: std::alloc::Layout,
    }

    // SAFETY: it is an address; who uses it how is for the engines to say.
    unsafe impl Send for Heap {}
    // SAFETY: as above.
    unsafe impl Sync for Heap {}

    impl Heap {
        fn new(len_bytes: usize) -> Arc<Self> {
            let layout = std::alloc::Layout::from_size_align(len_bytes, PAGE_BYTES).unwrap();
            // SAFETY: the layout is not empty.
            let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).unwrap();
            Arc::new(Self { base, layout })
        }
    }

    impl Drop for Heap {
        fn drop(&mut self) {
            // SAFETY: it was allocated with this layout.
            unsafe { std::alloc::dealloc(self.base.as_ptr(), self.layout) }
        }
    }

    const SMALL: usize = 4;
    type Small<W = Spin> = Engine<Region<Arc<Heap>>, W, SMALL>;

    fn geometry(bulk_bytes: usize) -> Geometry {
        Geometry { slots: SMALL, bulk_bytes, piece_bytes: bulk_bytes / 4 }
    }

    fn claim<W: Wait + Default>(heap: &Arc<Heap>, geometry: Geometry, side: Side) -> Option<Small<W>> {
        assert_eq!(heap.layout.size(), geometry.memory_bytes());
        // SAFETY: aligned, of the length, and alive as long as the region.
        let region = unsafe { Region::new(heap.base, heap.layout.size(), heap.clone()) };
        // SAFETY: the size is right, the memory was zero, and engines alone use it.
        unsafe { Engine::claim(region, geometry, side, W::default()) }
    }

    fn pair<W: Wait + Default>(bulk_bytes: usize) -> (Small<W>, Small<W>) {
        let geometry = geometry(bulk_bytes);
        let heap = Heap::new(geometry.memory_bytes());
        (claim(&heap, geometry, Side::Client).unwrap(), claim(&heap, geometry, Side::Server).unwrap())
    }

    fn content(number: usize, len_bytes: usize) -> Vec<u8> {
        (0..len_bytes).map(|at| (at.wrapping_mul(31) ^ number.wrapping_mul(131) ^ (at >> 8)) as u8).collect()
    }

    fn send_all<M: Memory, W: Wait, const S: usize>(end: &mut Engine<M, W, S>, bytes: &[u8]) {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += end.send(&bytes[sent..]).unwrap();
        }
    }

    fn receive_all<M: Memory, W: Wait, const S: usize>(
        end: &mut Engine<M, W, S>,
        len_bytes: usize,
        step_bytes: usize,
    ) -> Vec<u8> {
        let mut into = vec![0xEE; len_bytes];
        let mut received = 0;
        while received < len_bytes {
            let end_at = len_bytes.min(received + step_bytes);
            let count = end.receive(&mut into[received..end_at]).unwrap();
            assert!(count > 0);
            received += count;
        }
        into
    }

    /// `sizes` one way in order, then one byte back; the reader's buffer holds `step_bytes`.
    fn stream<W: Wait + Default + Send>(bulk_bytes: usize, sizes: &[usize], step_bytes: usize) {
        let (mut client, mut server) = pair::<W>(bulk_bytes);
        std::thread::scope(|threads| {
            threads.spawn(move || {
                for (number, size) in sizes.iter().enumerate() {
                    assert_eq!(receive_all(&mut server, *size, step_bytes), content(number, *size));
                }
                send_all(&mut server, &[7]);
                // Client must have heard before this end closes.
                receive_all(&mut server, 1, 1);
            });
            for (number, size) in sizes.iter().enumerate() {
                send_all(&mut client, &content(number, *size));
            }
            assert_eq!(receive_all(&mut client, 1, 1), [7]);
            send_all(&mut client, &[8]);
        });
    }

    #[test]
    fn capacities_are_rounded_up_to_powers_of_two() {
        let got = |asked| Geometry::with_bulk(asked).bulk_bytes();
        assert_eq!([1, 4096, 4097, 5000, 1 << 20].map(got), [4096, 4096, 8192, 8192, 1 << 20]);
        assert_eq!(got(usize::MAX), 1 << 30);
        assert_eq!(Geometry::with_bulk(4096).piece_bytes(), 1024);
        assert_eq!(Geometry::with_bulk(1 << 20).piece_bytes(), 8192);
    }

    #[test]
    fn every_class_of_size_passes_over_many_laps() {
        let laps = if cfg!(miri) { 1 } else { 8 };
        let sizes = [
            1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 55, 56, 57, 64, 112, 113, 255, 256, 257, 1000, 1016,
            1017,
        ];
        let sizes: Vec<usize> = sizes.into_iter().cycle().take(sizes.len() * laps).collect();
        stream::<Spin>(256, &sizes, usize::MAX / 2);
        stream::<Spin>(256, &sizes, 5);
        if !cfg!(miri) {
            stream::<Futex>(256, &sizes, usize::MAX / 2);
            stream::<Futex>(256, &sizes, 5);
        }
    }

    #[test]
    fn ends_that_take_turns_use_the_door_alone() {
        let (mut client, mut server) = pair::<Spin>(256);
        for iteration in 0..20 {
            let question = content(iteration, [1, 56, 57, 1016][iteration % 4]);
            send_all(&mut client, &question);
            assert_eq!(receive_all(&mut server, question.len(), 600), question);
            send_all(&mut server, &question);
            assert_eq!(receive_all(&mut client, question.len(), 600), question);
        }
        assert_eq!([client.outgoing.slots, server.outgoing.slots], [0, 0]);
    }

    #[test]
    fn the_door_is_passed_on_with_messages_that_do_not_fit_it() {
        let (mut client, mut server) = pair::<Spin>(4096);
        send_all(&mut client, &content(0, 2000));
        assert!(!client.holds_door);
        assert_eq!(receive_all(&mut server, 2000, 2000), content(0, 2000));
        assert!(server.holds_door);
        send_all(&mut server, &[9]);
        assert_eq!(server.outgoing.slots, 0, "the answer went through a slot");
        assert_eq!(receive_all(&mut client, 1, 1), [9]);
        assert!(client.holds_door);
    }

    #[test]
    fn a_door_that_is_half_read_is_not_written() {
        let (mut client, mut server) = pair::<Spin>(256);
        send_all(&mut client, b"question");
        assert_eq!(receive_all(&mut server, 4, 4), b"ques");
        send_all(&mut server, b"answer");
        assert_eq!(server.outgoing.slots, 1, "the answer went through the door");
        assert_eq!(receive_all(&mut server, 4, 4), b"tion");
        assert_eq!(receive_all(&mut client, 6, 6), b"answer");
    }

    #[test]
    fn messages_of_both_ends_with_equal_numbers_are_told_apart() {
        let (mut client, mut server) = pair::<Spin>(256);
        // Client's first is in the door; server's first must not be taken for it, nor client's for server's.
        send_all(&mut client, b"n1");
        send_all(&mut server, b"f1");
        assert_eq!(receive_all(&mut client, 2, 2), b"f1");
        assert_eq!(receive_all(&mut server, 2, 2), b"n1");
    }

    #[test]
    fn a_piece_that_is_half_read_is_not_freed() {
        let (mut client, mut server) = pair::<Spin>(256);
        std::thread::scope(|threads| {
            // More than the ring holds: client stays blocked until server reads on.
            let sender = threads.spawn(move || {
                send_all(&mut client, &content(1, 600));
                client
            });
            assert_eq!(receive_all(&mut server, 5, 5), content(1, 600)[..5]);
            // As server does before it waits for room: none of what it has not read may be told.
            server.close_piece();
            server.tell();
            assert_eq!(receive_all(&mut server, 595, 10), content(1, 600)[5..]);
            sender.join().unwrap();
        });
    }

    /// `sizes` one way in order, made and read in place, in parts of at most `step_bytes` that are given back
    /// `release_bytes` at a time.
    fn stream_in_place<W: Wait + Default + Send>(sizes: &[usize], step_bytes: usize, release_bytes: usize) {
        let (mut client, mut server) = pair::<W>(256);
        std::thread::scope(|threads| {
            threads.spawn(move || {
                for (number, size) in sizes.iter().enumerate() {
                    let bytes = content(number, *size);
                    let mut sent = 0;
                    while sent < bytes.len() {
                        let part = client.reserve((bytes.len() - sent).min(step_bytes)).unwrap();
                        let count = part.len();
                        part.copy_from_slice(&bytes[sent..sent + count]);
                        client.commit(count).unwrap();
                        sent += count;
                    }
                }
            });
            for (number, size) in sizes.iter().enumerate() {
                let mut bytes = Vec::new();
                while bytes.len() < *size {
                    let part = server.peek((*size - bytes.len()).min(step_bytes)).unwrap();
                    let count = part.len().min(release_bytes);
                    bytes.extend_from_slice(&part[..count]);
                    server.release(count).unwrap();
                }
                assert_eq!(bytes, content(number, *size), "message {number}");
            }
        });
    }

    #[test]
    fn every_class_of_size_passes_in_place() {
        let sizes = [1, 8, 55, 56, 57, 64, 112, 113, 200, 256, 257, 1000, 1016, 1017, 2000];
        let sizes: Vec<usize> = sizes.into_iter().cycle().take(if cfg!(miri) { 15 } else { 150 }).collect();
        stream_in_place::<Spin>(&sizes, usize::MAX, usize::MAX);
        stream_in_place::<Spin>(&sizes, 100, 7);
        if !cfg!(miri) {
            stream_in_place::<Futex>(&sizes, usize::MAX, 7);
        }
    }

    #[test]
    fn in_place_and_copied_messages_mix() {
        let (mut client, mut server) = pair::<Spin>(256);
        server.incoming.soils = false;
        for size in [1, 57, 200, 64, 3] {
            client.reserve(size).unwrap()[0] = 5;
            client.commit(1).unwrap();
            assert_eq!(receive_all(&mut server, 1, 1), [5]);
            // Server holds the door: this goes in bulk and, its end, through a slot.
            send_all(&mut client, &content(size, 200));
            let part = server.peek(1000).unwrap();
            assert_eq!(part, &content(size, 200)[..64]);
            server.release(64).unwrap();
            assert_eq!(receive_all(&mut server, 136, 100), content(size, 200)[64..]);
            send_all(&mut server, &[1]);
            assert_eq!(receive_all(&mut client, 1, 1), [1]);
        }
    }

    #[test]
    fn the_door_that_comes_after_a_slot_was_lent_is_passed_on() {
        let (mut client, mut server) = pair::<Spin>(256);
        server.reserve(3).unwrap().copy_from_slice(b"abc");
        send_all(&mut client, b"door");
        assert_eq!(receive_all(&mut server, 4, 4), b"door");
        server.commit(3).unwrap();
        assert_eq!(receive_all(&mut client, 3, 3), b"abc");
        assert_eq!([client.holds_door, server.holds_door], [true, false]);
    }

    #[test]
    fn more_than_was_lent_is_neither_handed_over_nor_released() {
        let (mut client, mut server) = pair::<Spin>(256);
        assert_eq!(client.commit(1), Err(Errno::INVAL), "nothing was lent");
        for size in [3, 200, 2000] {
            let lent = client.reserve(size).unwrap().len();
            assert_eq!([client.commit(0), client.commit(lent + 1)], [Err(Errno::INVAL); 2]);
            send_all(&mut client, b"else");
            assert_eq!(client.commit(1), Err(Errno::INVAL), "what was lent went with something else");
            assert_eq!([server.release(1), server.release(0)], [Err(Errno::INVAL); 2]);
            let lent = server.peek(100).unwrap().len();
            assert_eq!([server.release(0), server.release(lent + 1)], [Err(Errno::INVAL); 2]);
            server.release(lent).unwrap();
            assert_eq!(server.release(1), Err(Errno::INVAL));
        }
    }

    #[test]
    fn what_was_sent_before_closing_arrives_and_then_the_end() {
        for client_closes in [true, false] {
            let (mut client, mut server) = pair::<Spin>(256);
            let (mut closing, mut left) = if client_closes { (client, server) } else { (server, client) };
            send_all(&mut closing, b"last words");
            drop(closing);
            assert_eq!(receive_all(&mut left, 10, 10), b"last words");
            assert_eq!(left.receive(&mut [0]), Err(Errno::PIPE));
            assert_eq!(left.receive(&mut [0]), Err(Errno::PIPE));
            (client, server) = pair::<Spin>(256);
            drop((client, server));
        }
    }

    #[test]
    fn a_full_ring_whose_reader_has_closed_refuses() {
        let (mut client, server) = pair::<Spin>(256);
        drop(server);
        let refused = (0..1000).find_map(|_| client.send(&[1]).err());
        assert_eq!(refused, Some(Errno::PIPE));
        let (mut client, server) = pair::<Spin>(256);
        drop(server);
        let refused = (0..1000).find_map(|_| client.send(&[1; 2000]).err());
        assert_eq!(refused, Some(Errno::PIPE));
    }

    #[test]
    fn nothing_is_sent_and_received_of_nothing() {
        let (mut client, mut server) = pair::<Spin>(256);
        assert_eq!(client.send(&[]), Ok(0));
        assert_eq!(server.receive(&mut []), Ok(0));
        send_all(&mut client, &[1]);
        assert_eq!(server.receive(&mut []), Ok(0));
        assert_eq!(receive_all(&mut server, 1, 1), [1]);
    }

    #[test]
    fn a_side_is_claimed_once_and_only_by_its_own_kind() {
        let heap = Heap::new(geometry(256).memory_bytes());
        let _client = claim::<Spin>(&heap, geometry(256), Side::Client).unwrap();
        assert!(claim::<Spin>(&heap, geometry(256), Side::Client).is_none());
        assert!(claim::<Futex>(&heap, geometry(256), Side::Server).is_none());
    }

    /// Every value that a hostile peer may put into the words that this end reads.
    #[test]
    fn lengths_and_progress_that_no_end_writes_are_refused() {
        let hostile = [1017, 1023, LENGTH];
        for length in hostile {
            for at_door in [true, false] {
                let (client, mut server) = pair::<Spin>(256);
                let at = if at_door { DOOR } else { client.outgoing.lane.slots };
                // SAFETY: slots and the door are inside.
                unsafe { client.memory.word(at) }.store(client.outgoing.tag | length, Ordering::Release);
                assert_eq!(server.receive(&mut [0; 4096]), Err(Errno::BADMSG), "{length} at {at}");
            }
        }
        for length in [57, 63, 64, 1016] {
            let (client, mut server) = pair::<Spin>(256);
            // SAFETY: slots are inside.
            unsafe { client.memory.word(client.outgoing.lane.slots) }
                .store(client.outgoing.tag | length, Ordering::Release);
            assert_eq!(server.receive(&mut [0; 4096]), Err(Errno::BADMSG), "{length}");
        }
        for length in [0, 65, 256, 257, u64::MAX] {
            let (client, mut server) = pair::<Spin>(256);
            // SAFETY: slots and their second words are inside.
            unsafe {
                client.memory.word(client.outgoing.lane.slots + TAG_BYTES).store(length, Ordering::Relaxed);
                client.memory.word(client.outgoing.lane.slots).store(client.outgoing.tag, Ordering::Release);
            }
            assert_eq!(server.receive(&mut [0; 4096]), Err(Errno::BADMSG), "{length} in bulk");
        }
        for progress in [u64::MAX, 100, 1 << 63] {
            let (mut client, server) = pair::<Spin>(256);
            // SAFETY: progress is inside.
            unsafe { server.memory.word(server.incoming.lane.progress) }.store(progress, Ordering::Release);
            let refused = (0..1000).find_map(|_| client.send(&[1]).err());
            assert_eq!(refused, Some(Errno::BADMSG), "{progress}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 48 }, ..ProptestConfig::default() })]

        #[test]
        fn any_sizes_pass_any_ring_in_order(
            sizes in proptest::collection::vec(
                prop_oneof![1..70_usize, 1..300_usize, 1..3000_usize],
                1..(if cfg!(miri) { 6 } else { 60 }),
            ),
            bulk_exponent in 8..13_u32,
            step_bytes in prop_oneof![1..100_usize, Just(1 << 20)],
        ) {
            stream::<Spin>(1 << bulk_exponent, &sizes, step_bytes);
            if !cfg!(miri) {
                stream::<Futex>(1 << bulk_exponent, &sizes, step_bytes);
            }
        }
    }

    #[cfg(not(miri))]
    mod mapped_memory {
        use super::*;

        fn ends<W: Wait + Default>(geometry: Geometry) -> (End<W>, End<W>) {
            let (memory, fd) = SharedMemory::create("test", geometry.memory_bytes()).unwrap();
            let client = End::claim(memory, geometry, Side::Client, W::default()).unwrap();
            let memory = SharedMemory::open(&fd, geometry.memory_bytes()).unwrap();
            (client, End::claim(memory, geometry, Side::Server, W::default()).unwrap())
        }

        fn pass<W: Wait + Default + Send>(geometry: Geometry, sizes: &[usize], step_bytes: usize) {
            let (mut client, mut server) = ends::<W>(geometry);
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    for (number, size) in sizes.iter().enumerate() {
                        let mut sent = 0;
                        let bytes = content(number, *size);
                        while sent < bytes.len() {
                            sent += client.send(&bytes[sent..]).unwrap();
                        }
                    }
                });
                for (number, size) in sizes.iter().enumerate() {
                    let mut bytes = vec![0; *size];
                    let mut received = 0;
                    while received < *size {
                        let end = (received + step_bytes).min(*size);
                        received += server.receive(&mut bytes[received..end]).unwrap();
                    }
                    assert!(bytes == content(number, *size), "message {number} of {size} bytes");
                }
            });
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

            #[test]
            fn any_sizes_pass_mapped_rings_of_any_capacity(
                sizes in proptest::collection::vec(prop_oneof![1..64_usize, 1..2000_usize, 1..100_000_usize], 1..200),
                capacity in 1..300_000_usize,
                step_bytes in prop_oneof![1000..9000_usize, Just(1 << 20)],
            ) {
                pass::<Spin>(Geometry::with_bulk(capacity), &sizes, step_bytes);
                pass::<Futex>(Geometry::with_bulk(capacity), &sizes, step_bytes);
            }
        }

        #[test]
        fn memory_of_another_size_is_refused() {
            let (memory, _fd) = SharedMemory::create("test", 8192).unwrap();
            assert!(End::claim(memory, Geometry::with_bulk(4096), Side::Client, Spin).is_err());
        }

        #[test]
        fn a_sleeping_reader_is_woken_when_the_peer_closes() {
            let (client, mut server) = ends::<Futex>(Geometry::with_bulk(4096));
            std::thread::scope(|threads| {
                let reader = threads.spawn(move || server.receive(&mut [0]));
                std::thread::sleep(std::time::Duration::from_millis(20));
                drop(client);
                assert_eq!(reader.join().unwrap(), Err(Errno::PIPE));
            });
        }
    }
}

#[cfg(all(test, loom))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod loom_tests {
    //! Every interleaving of the real algorithm, over memory whose every byte is watched for races.
    //!
    //! `RUSTFLAGS="--cfg loom" cargo test -p sys --release --lib ring`

    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Condvar, Mutex};
    use std::collections::BTreeMap;

    /// One line: its atomics, its bytes, and who sleeps on it.
    struct Line {
        words: [AtomicU64; 2],
        flag: AtomicU32,
        bytes: UnsafeCell<[u8; LINE_BYTES]>,
        bucket: Mutex<()>,
        woken: Condvar,
    }

    /// The lines that a small pair touches, by number.
    #[derive(Clone)]
    struct Cells(Arc<BTreeMap<usize, Line>>);

    impl Cells {
        fn new(geometry: &Geometry) -> Self {
            let line = |at: usize| at / LINE_BYTES;
            let mut numbers =
                vec![line(DOOR), line(DOOR) + 1, line(CLAIMS), line(CLOSED), line(CLOSED + APART_BYTES)];
            for side in [Side::Client, Side::Server] {
                let lane = Lane::of(side, geometry);
                numbers.extend([lane.progress, lane.reader_asleep, lane.writer_asleep].map(line));
                numbers.extend((0..geometry.slots).map(|slot| line(lane.slots) + slot));
                numbers.extend((0..geometry.bulk_bytes / LINE_BYTES).map(|bulk| line(lane.bulk) + bulk));
            }
            let new = || Line {
                words: [AtomicU64::new(0), AtomicU64::new(0)],
                flag: AtomicU32::new(0),
                bytes: UnsafeCell::new([0; LINE_BYTES]),
                bucket: Mutex::new(()),
                woken: Condvar::new(),
            };
            Self(Arc::new(numbers.into_iter().map(|number| (number, new())).collect()))
        }

        fn line(&self, at: usize) -> &Line {
            &self.0[&(at / LINE_BYTES)]
        }

        /// The parts of `at..at + len_bytes` that lie in one line each: where, and how much.
        fn parts(at: usize, len_bytes: usize) -> impl Iterator<Item = (usize, usize)> {
            let mut next = at;
            std::iter::from_fn(move || {
                let here = next;
                next = (here / LINE_BYTES * LINE_BYTES + LINE_BYTES).min(at + len_bytes);
                (here < at + len_bytes).then_some((here, next - here))
            })
        }
    }

    impl Memory for Cells {
        unsafe fn word(&self, at: usize) -> &AtomicU64 {
            &self.line(at).words[at % LINE_BYTES / TAG_BYTES]
        }

        unsafe fn flag(&self, at: usize) -> &AtomicU32 {
            &self.line(at).flag
        }

        unsafe fn write(&self, at: usize, from: &[u8]) {
            for (here, count) in Self::parts(at, from.len()) {
                let from = &from[here - at..][..count];
                self.line(here).bytes.with_mut(|bytes| {
                    // SAFETY: loom has checked that nobody else accesses the line.
                    let bytes = unsafe { &mut *bytes };
                    bytes[here % LINE_BYTES..][..count].copy_from_slice(from);
                });
            }
        }

        unsafe fn read(&self, at: usize, into: &mut [u8]) {
            for (here, count) in Self::parts(at, into.len()) {
                let into = &mut into[here - at..][..count];
                self.line(here).bytes.with(|bytes| {
                    // SAFETY: loom has checked that nobody writes the line.
                    into.copy_from_slice(&unsafe { &*bytes }[here % LINE_BYTES..][..count]);
                });
            }
        }

        unsafe fn soil(&self, at: usize, length_bytes: usize) {
            for line in (at.next_multiple_of(LINE_BYTES)..at + length_bytes).step_by(LINE_BYTES) {
                // SAFETY: loom checks it.
                unsafe { self.write(line, &[0]) };
            }
        }

        // As the kernel does: the comparison and falling asleep are one under the lock that the waker takes.
        // Nobody sleeps for a moment only: a lost wake-up is a deadlock, which loom reports.
        unsafe fn sleep(&self, at: usize) {
            let line = self.line(at);
            let bucket = line.bucket.lock().unwrap();
            if line.flag.load(Ordering::Relaxed) == 1 {
                drop(line.woken.wait(bucket).unwrap());
            }
        }

        unsafe fn wake(&self, at: usize) {
            let line = self.line(at);
            let _bucket = line.bucket.lock().unwrap();
            line.woken.notify_one();
        }
    }

    type Tiny<W, const SLOTS: usize> = Engine<Cells, W, SLOTS>;

    /// A few slots, two lines of bulk, one line a piece. With more slots than pieces fit into bulk, bulk is full
    /// first, so that its own progress alone orders the writer after the reader.
    fn pair<W: Both, const SLOTS: usize>() -> (Tiny<W, SLOTS>, Tiny<W, SLOTS>) {
        let geometry = Geometry { slots: SLOTS, bulk_bytes: 2 * LINE_BYTES, piece_bytes: LINE_BYTES };
        let cells = Cells::new(&geometry);
        let [client, server] = W::both();
        // SAFETY: the cells are new, and loom checks the rest.
        let claim = |side, wait| unsafe { Engine::claim(cells.clone(), geometry, side, wait) }.unwrap();
        (claim(Side::Client, client), claim(Side::Server, server))
    }

    /// How both ends of a pair wait.
    trait Both: Wait + Sized + 'static {
        fn both() -> [Self; 2];
    }

    impl Both for Spin {
        fn both() -> [Self; 2] {
            [Spin; 2]
        }
    }

    impl Both for Futex {
        fn both() -> [Self; 2] {
            [Futex; 2]
        }
    }

    /// A count of wake-ups, which stay until they are taken, as those of a semaphore do.
    type Count = Arc<(Mutex<u32>, Condvar)>;

    /// An end that sleeps for its own count, after one more look.
    struct Counting {
        own: Count,
        peers: Count,
    }

    impl Wait for Counting {
        const SLEEPS: bool = true;

        fn looks(&self) -> u32 {
            1
        }

        fn sleep(&self, _: impl FnOnce()) -> Result<(), Errno> {
            let (count, raised) = &*self.own;
            let mut count = count.lock().unwrap();
            while *count == 0 {
                count = raised.wait(count).unwrap();
            }
            *count -= 1;
            Ok(())
        }

        fn wake(&self, _: impl FnOnce()) {
            let (count, raised) = &*self.peers;
            *count.lock().unwrap() += 1;
            raised.notify_one();
        }
    }

    impl Both for Counting {
        fn both() -> [Self; 2] {
            let [a, b]: [Count; 2] = std::array::from_fn(|_| Arc::new((Mutex::new(0), Condvar::new())));
            [Self { own: a.clone(), peers: b.clone() }, Self { own: b, peers: a }]
        }
    }

    fn model(check: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(2);
        builder.max_branches = 100_000;
        builder.check(check);
    }

    fn content(number: u8, len_bytes: usize) -> Vec<u8> {
        (0..len_bytes).map(|at| (at as u8).wrapping_mul(31) ^ number.wrapping_mul(131)).collect()
    }

    fn send_all<W: Wait, const SLOTS: usize>(end: &mut Tiny<W, SLOTS>, number: u8, len_bytes: usize) {
        let bytes = content(number, len_bytes);
        let mut sent = 0;
        while sent < bytes.len() {
            sent += end.send(&bytes[sent..]).unwrap();
        }
    }

    fn receive_all<W: Wait, const SLOTS: usize>(end: &mut Tiny<W, SLOTS>, number: u8, len_bytes: usize) {
        let mut into = vec![0; len_bytes];
        let mut received = 0;
        while received < len_bytes {
            received += end.receive(&mut into[received..]).unwrap();
        }
        assert_eq!(into, content(number, len_bytes));
    }

    /// Client sends messages of `sizes`, server receives them.
    fn stream<W: Both, const SLOTS: usize>(sizes: &'static [usize]) {
        model(move || {
            let (mut client, mut server) = pair::<W, SLOTS>();
            let reader = loom::thread::spawn(move || {
                for (number, size) in sizes.iter().enumerate() {
                    receive_all(&mut server, number as u8, *size);
                }
                server
            });
            for (number, size) in sizes.iter().enumerate() {
                send_all(&mut client, number as u8, *size);
            }
            let server = reader.join().unwrap();
            drop((client, server));
        });
    }

    /// The ends take turns, with messages of `sizes`.
    fn iterations<W: Both, const SLOTS: usize>(sizes: &'static [usize]) {
        model(move || {
            let (mut client, mut server) = pair::<W, SLOTS>();
            let answering = loom::thread::spawn(move || {
                for (number, size) in sizes.iter().enumerate() {
                    receive_all(&mut server, number as u8, *size);
                    send_all(&mut server, number as u8 + 100, *size);
                }
                server
            });
            for (number, size) in sizes.iter().enumerate() {
                send_all(&mut client, number as u8, *size);
                receive_all(&mut client, number as u8 + 100, *size);
            }
            drop((client, answering.join().unwrap()));
        });
    }

    #[test]
    fn ring_of_slots_over_laps() {
        // The first goes through the door; then two laps and a half.
        stream::<Spin, 2>(&[1, 2, 3, 56, 1, 2]);
    }

    #[test]
    fn ring_of_bulk_over_laps() {
        // The rest of 64 bytes goes through slots.
        stream::<Spin, 8>(&[320]);
    }

    #[test]
    fn ring_mixes_slots_and_bulk() {
        stream::<Spin, 2>(&[1, 130, 1]);
    }

    #[test]
    fn ring_door_in_turns() {
        iterations::<Spin, 2>(&[1, 2, 3]);
    }

    #[test]
    fn ring_door_of_two_lines() {
        iterations::<Spin, 2>(&[1, 100]);
    }

    #[test]
    fn ring_passes_the_door_with_bulk() {
        iterations::<Spin, 2>(&[130, 1]);
    }

    /// Client sends messages of `sizes`, server receives them, both in place.
    fn stream_in_place<const SLOTS: usize>(sizes: &'static [usize]) {
        model(move || {
            let (mut client, mut server) = pair::<Spin, SLOTS>();
            let reader = loom::thread::spawn(move || {
                for (number, size) in sizes.iter().enumerate() {
                    let mut into = vec![0; *size];
                    let mut received = 0;
                    while received < *size {
                        let (at, length_bytes) = server.next_bytes().unwrap();
                        // SAFETY: loom checks it.
                        unsafe { server.memory.read(at, &mut into[received..received + length_bytes]) };
                        server.release(length_bytes).unwrap();
                        received += length_bytes;
                    }
                    assert_eq!(into, content(number as u8, *size));
                }
                server
            });
            for (number, size) in sizes.iter().enumerate() {
                let bytes = content(number as u8, *size);
                let mut sent = 0;
                while sent < *size {
                    let (at, length_bytes) = client.reserve(*size - sent).unwrap();
                    // SAFETY: loom checks it.
                    unsafe { client.memory.write(at, &bytes[sent..sent + length_bytes]) };
                    client.commit(length_bytes).unwrap();
                    sent += length_bytes;
                }
            }
            let server = reader.join().unwrap();
            drop((client, server));
        });
    }

    #[test]
    fn ring_in_place_through_slots() {
        stream_in_place::<2>(&[1, 2, 3, 56, 1]);
    }

    #[test]
    fn ring_in_place_through_bulk() {
        stream_in_place::<8>(&[320]);
    }

    #[test]
    fn ring_wakes_sleepers_of_slots() {
        stream::<Futex, 2>(&[1, 2, 3, 4]);
    }

    #[test]
    fn ring_wakes_sleepers_of_bulk() {
        stream::<Futex, 8>(&[256]);
    }

    #[test]
    fn ring_wakes_sleepers_in_turns() {
        iterations::<Futex, 2>(&[1, 2]);
    }

    #[test]
    fn ring_wakes_who_counts_wake_ups() {
        stream::<Counting, 2>(&[1, 2, 3]);
    }

    #[test]
    fn ring_wakes_who_counts_wake_ups_in_turns() {
        iterations::<Counting, 2>(&[1, 2]);
    }

    #[test]
    fn ring_that_closes_wakes_the_reader() {
        closing_wakes::<Futex>();
    }

    #[test]
    fn ring_that_closes_wakes_who_counts_wake_ups() {
        closing_wakes::<Counting>();
    }

    fn closing_wakes<W: Both>() {
        model(|| {
            let (mut client, mut server) = pair::<W, 2>();
            let reader = loom::thread::spawn(move || {
                receive_all(&mut server, 0, 1);
                assert_eq!(server.receive(&mut [0]), Err(Errno::PIPE));
            });
            send_all(&mut client, 0, 1);
            drop(client);
            reader.join().unwrap();
        });
    }
}
