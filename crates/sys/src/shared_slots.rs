//! Messages in memory that two endpoints share, each with one hand-over: the sender writes the message where its peer
//! will read it, and one store says that it is there.
//!
//! It is the least that moves bytes between two CPUs, and no queue for programs: endpoints alternate, or one of them
//! streams and its peer answers at the end; both spin; neither learns that its peer has gone; messages have one size.
//!
//! Messages of both endpoints are numbered together, because the endpoints alternate. Message k lies in slot k modulo
//! the number of slots. The word that hands it over lies behind its bytes, so that it needs no line of its own unless
//! the bytes fill theirs. A short answer to long messages lies in a line of its own.

use crate::shared_memory::SharedMemory;
use crate::side::MemorySide;
use crate::{Errno, Failure};
use std::sync::atomic::{AtomicU64, Ordering};

const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = size_of::<u64>();
/// The distance between words that different endpoints write: two lines, because some processors fetch lines in
/// pairs.
const APART_BYTES: usize = 128;

/// The longest message that shares one cache line with the word that hands it over.
pub const LONGEST_IN_LINE: usize = LINE_BYTES - WORD_BYTES;

const CLAIMS: usize = 0;
const CONSUMED: usize = CLAIMS + APART_BYTES;
const SHORT: usize = CONSUMED + 2 * APART_BYTES;
const SLOTS: usize = PAGE_BYTES;

/// Where messages lie. Both endpoints have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotGeometry {
    size_bytes: usize,
    stride_bytes: usize,
    slots: usize,
}

impl SlotGeometry {
    /// One slot for messages of `size_bytes`, for endpoints that alternate: each writes where the other wrote before
    /// it, so that the fewest lines are in use.
    pub fn alternating(size_bytes: usize) -> Self {
        Self::new(size_bytes, 1)
    }

    /// As many slots as an endpoint that streams messages of `size_bytes` needs so as not to wait for its peer: 2 to
    /// 256, in about 256 KiB.
    pub fn of_stream(size_bytes: usize) -> Self {
        const AREA_BYTES: usize = 256 << 10;
        let fitting = AREA_BYTES / Self::new(size_bytes, 1).stride_bytes;
        Self::new(size_bytes, fitting.clamp(2, 256))
    }

    fn new(size_bytes: usize, slots: usize) -> Self {
        let align = if size_bytes < PAGE_BYTES { LINE_BYTES } else { PAGE_BYTES };
        let stride_bytes = (Self::word_offset(size_bytes) + WORD_BYTES).next_multiple_of(align);
        Self { size_bytes, stride_bytes, slots }
    }

    /// Where the word of a message of at most `size_bytes` lies, from its first byte.
    #[inline(always)]
    fn word_offset(size_bytes: usize) -> usize {
        size_bytes.next_multiple_of(WORD_BYTES).max(LONGEST_IN_LINE)
    }

    /// The size of the memory that such slots need.
    pub fn memory_bytes(self) -> usize {
        (SLOTS + self.slots * self.stride_bytes).next_multiple_of(PAGE_BYTES)
    }

    /// Where message `number` begins and where its word is, if it has at most `most_bytes`.
    #[inline(always)]
    fn place(self, number: u64, most_bytes: usize) -> (usize, usize) {
        if most_bytes <= LONGEST_IN_LINE && self.size_bytes > LONGEST_IN_LINE {
            return (SHORT, SHORT + LONGEST_IN_LINE);
        }
        let slot = if self.slots == 1 { 0 } else { (number % self.slots as u64) as usize };
        let at = SLOTS + slot * self.stride_bytes;
        (at, at + Self::word_offset(self.size_bytes))
    }
}

/// One endpoint.
#[derive(Debug)]
pub struct SlotEndpoint {
    memory: SharedMemory,
    geometry: SlotGeometry,
    side: MemorySide,
    /// The number of the next message, of either endpoint.
    next: u64,
    /// The peer reads no message below this number any more.
    freed: u64,
    /// How many bytes were reserved for the next message.
    reserved_bytes: Option<usize>,
}

impl SlotEndpoint {
    /// Takes `side` of `geometry` in fresh `memory`. The peer takes the other.
    pub fn claim(memory: SharedMemory, geometry: SlotGeometry, side: MemorySide) -> Result<Self, Failure> {
        let refuse =
            |why: &str| Failure::new("claim", format!("the {side:?} side of slots"), why, "make new memory");
        if memory.len_bytes() != geometry.memory_bytes() {
            return Err(refuse("the memory is not of the slots' size"));
        }
        let claim = memory.u64_at(CLAIMS + side.index() * WORD_BYTES);
        if claim.swap(1, Ordering::AcqRel) != 0 {
            return Err(refuse("it is taken"));
        }
        Ok(Self { memory, geometry, side, next: 0, freed: 0, reserved_bytes: None })
    }

    /// Room for a message of `size_bytes`, of any content, which [`commit`](Self::commit) sends. Spins while the peer
    /// still reads what was there. `Errno::MSGSIZE` when messages are not as long as that.
    ///
    /// The protocol alone makes the reference exclusive: an endpoint does not touch a slot before it is handed over. A
    /// process that breaks the protocol can change the bytes, so nothing that must be right may depend on them.
    #[inline(always)]
    pub fn reserve(&mut self, size_bytes: usize) -> Result<&mut [u8], Errno> {
        if size_bytes > self.geometry.size_bytes.max(LONGEST_IN_LINE) {
            return Err(Errno::MSGSIZE);
        }
        if self.next - self.freed >= self.geometry.slots as u64 {
            self.await_slot()?;
        }
        self.reserved_bytes = Some(size_bytes);
        let (at, _) = self.geometry.place(self.next, size_bytes);
        // SAFETY: inside, because places are inside memory of the geometry's size and hold `size_bytes` before their
        // word. The peer has released what was in this place, and reads it again only when it is handed over.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.memory.base().as_ptr().add(at), size_bytes) })
    }

    /// Hands over the message of `size_bytes` that was reserved. `Errno::INVAL` when none of that length was.
    #[inline(always)]
    pub fn commit(&mut self, size_bytes: usize) -> Result<(), Errno> {
        if self.reserved_bytes.take() != Some(size_bytes) {
            return Err(Errno::INVAL);
        }
        let (_, word) = self.geometry.place(self.next, size_bytes);
        self.word(word).store(handed_over(self.next) | size_bytes as u64, Ordering::Release);
        self.next += 1;
        Ok(())
    }

    /// The next message, of at most `most_bytes`, where it lies. Spins until it is there. Until it is released, the next
    /// peek returns the same. `Errno::BADMSG` when the peer has written what no endpoint writes.
    #[inline(always)]
    pub fn peek(&mut self, most_bytes: usize) -> Result<&[u8], Errno> {
        let (at, size_bytes) = self.await_message(most_bytes)?;
        // SAFETY: inside, because the length was checked against the room that the place has. The peer writes there
        // again only after this endpoint has released the message, for which it needs this reference's end.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.base().as_ptr().add(at), size_bytes) })
    }

    /// Gives back the memory of the message that [`peek`](Self::peek) returned.
    #[inline(always)]
    pub fn release(&mut self) {
        self.next += 1;
        // The peer sent this message when it had read all before.
        self.freed = self.next;
        // A streaming peer reads this word when it has filled every slot: half of them at a time are enough.
        if self.next.is_multiple_of((self.geometry.slots as u64).div_ceil(2)) {
            self.word(CONSUMED + self.side.index() * APART_BYTES).store(self.next, Ordering::Release);
        }
    }

    #[inline(always)]
    fn await_message(&self, most_bytes: usize) -> Result<(usize, usize), Errno> {
        let (at, word) = self.geometry.place(self.next, most_bytes);
        let word = self.word(word);
        if word.load(Ordering::Acquire) & !LENGTH_MASK != handed_over(self.next) {
            self.let_peer_get_ahead(most_bytes);
        }
        loop {
            let seen = word.load(Ordering::Acquire);
            if seen & !LENGTH_MASK == handed_over(self.next) {
                let size_bytes = (seen & LENGTH_MASK) as usize;
                let is_sound =
                    size_bytes <= most_bytes && size_bytes <= self.geometry.size_bytes.max(LONGEST_IN_LINE);
                return if is_sound { Ok((at, size_bytes)) } else { Err(Errno::BADMSG) };
            }
            std::hint::spin_loop();
        }
    }

    /// Waits some microseconds at most until a streaming peer is well ahead. An endpoint that polls each slot while it is
    /// written takes the line from its writer, message after message; one that finds many messages there does not.
    #[inline(never)]
    fn let_peer_get_ahead(&self, most_bytes: usize) {
        const PAUSES_PER_POLL: u32 = 32;
        const POLLS: u32 = 8;
        /// With fewer slots, to wait for some of them would stop the writer.
        const FEWEST_SLOTS: usize = 8;
        if self.geometry.slots < FEWEST_SLOTS {
            return;
        }
        let later = self.next + self.geometry.slots as u64 / 4;
        let (_, word) = self.geometry.place(later, most_bytes);
        for _ in 0..POLLS {
            if self.word(word).load(Ordering::Relaxed) & !LENGTH_MASK == handed_over(later) {
                return;
            }
            (0..PAUSES_PER_POLL).for_each(|_| std::hint::spin_loop());
        }
    }

    #[cold]
    #[inline(never)]
    fn await_slot(&mut self) -> Result<(), Errno> {
        let consumed = self.memory.u64_at(CONSUMED + self.side.peer().index() * APART_BYTES);
        loop {
            let freed = consumed.load(Ordering::Acquire);
            if freed > self.next {
                return Err(Errno::BADMSG);
            }
            if self.next - freed.max(self.freed) < self.geometry.slots as u64 {
                self.freed = freed.max(self.freed);
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        self.memory.u64_at(at)
    }
}

const LENGTH_MASK: u64 = u32::MAX as u64;

/// The word that hands message `number` over, without its length. It is never 0, which is what fresh memory holds, for
/// 2³² messages in one place.
#[inline(always)]
fn handed_over(number: u64) -> u64 {
    (number + 1) << 32
}

#[cfg(all(test, not(miri)))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;

    fn pair(geometry: SlotGeometry) -> (SlotEndpoint, SlotEndpoint) {
        let (memory, fd) = SharedMemory::create("test", geometry.memory_bytes()).unwrap();
        let peers = SharedMemory::open(fd, geometry.memory_bytes()).unwrap();
        let claim = |memory, side| SlotEndpoint::claim(memory, geometry, side).unwrap();
        (claim(memory, MemorySide::Client), claim(peers, MemorySide::Server))
    }

    fn send(endpoint: &mut SlotEndpoint, bytes: &[u8]) {
        endpoint.reserve(bytes.len()).unwrap().copy_from_slice(bytes);
        endpoint.commit(bytes.len()).unwrap();
    }

    fn received(endpoint: &mut SlotEndpoint, most_bytes: usize) -> Vec<u8> {
        let bytes = endpoint.peek(most_bytes).unwrap().to_vec();
        endpoint.release();
        bytes
    }

    #[test]
    fn a_message_and_its_word_share_a_line_where_they_fit() {
        for (size_bytes, lines) in [(1, 1), (56, 1), (57, 2), (64, 2), (120, 2), (121, 3), (4088, 64)] {
            let word = SlotGeometry::word_offset(size_bytes);
            assert!(word >= size_bytes && word.is_multiple_of(WORD_BYTES), "{size_bytes}");
            assert_eq!((word + WORD_BYTES).div_ceil(LINE_BYTES), lines, "{size_bytes}");
        }
        assert_eq!(SlotGeometry::alternating(4096).stride_bytes, 8192);
        assert_eq!(SlotGeometry::of_stream(1).slots, 256);
        assert_eq!(SlotGeometry::of_stream(1 << 20).slots, 2);
    }

    #[test]
    fn endpoints_alternate_in_one_slot() {
        for size_bytes in [1, 56, 57, 4096, 10_000] {
            let (mut client, mut server) = pair(SlotGeometry::alternating(size_bytes));
            for iteration in 0..5_u8 {
                send(&mut client, &vec![iteration; size_bytes]);
                assert_eq!(received(&mut server, size_bytes), vec![iteration; size_bytes]);
                // A short answer, and then one as long as the message.
                let answer = vec![iteration + 100; if iteration % 2 == 0 { 1 } else { size_bytes }];
                send(&mut server, &answer);
                assert_eq!(received(&mut client, answer.len()), answer);
            }
        }
    }

    #[test]
    fn a_stream_loses_nothing_and_is_answered() {
        for size_bytes in [8, 57, 5000] {
            let (mut client, mut server) = pair(SlotGeometry::of_stream(size_bytes));
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    (0..3000_u32).for_each(|number| send(&mut client, &vec![number as u8; size_bytes]));
                    assert_eq!(received(&mut client, 1), [7]);
                });
                for number in 0..3000_u32 {
                    assert_eq!(received(&mut server, size_bytes), vec![number as u8; size_bytes]);
                }
                send(&mut server, &[7]);
            });
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_refused() {
        let geometry = SlotGeometry::alternating(100);
        let (mut client, mut server) = pair(geometry);
        assert_eq!(client.reserve(101).unwrap_err(), Errno::MSGSIZE);
        assert_eq!(client.commit(100), Err(Errno::INVAL));
        client.reserve(100).unwrap();
        assert_eq!(client.commit(99), Err(Errno::INVAL));
        let (_, word) = geometry.place(0, 100);
        client.word(word).store(handed_over(0) | 101, Ordering::Release);
        assert_eq!(server.peek(100).unwrap_err(), Errno::BADMSG);
        let memory = SharedMemory::create("test", geometry.memory_bytes()).unwrap().0;
        assert!(SlotEndpoint::claim(memory, SlotGeometry::alternating(10_000), MemorySide::Client).is_err());
    }
}
