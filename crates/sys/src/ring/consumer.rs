//! Receiving: by a copy, or by peek and release in place. Trusts nothing of what the peer wrote.

use super::atomic::{Ordering, UNDER_LOOM, relax};
use super::layout::{
    HEADER_BYTES, IN_MAILBOX_AREA, LENGTH, LINE_BYTES, MAILBOX, MAILBOX_BYTES, ON_NEXT_LINE, PASSES_TOKEN,
    SEQUENCE_SHIFT, SLOT_BYTES,
};
use super::memory::Memory;
use super::protocol::{Engine, Incoming, Piece, Place};
use super::wait::WaitStrategy;
use crate::Errno;

/// The longest piece whose lines are dirtied when it was read. Longer ones come in streams of large messages, and are
/// written by copies that take whole lines without waiting for each. Measured, dirtying them makes such a stream a fifth
/// to a third slower.
const LONGEST_DIRTIED: usize = 8 << 10;

impl<M: Memory, W: WaitStrategy, const SLOTS: usize> Engine<M, W, SLOTS> {
    /// After how many freed slots the consumer publishes its cursor.
    const BATCH: u64 = if SLOTS < 64 { 1 } else { SLOTS as u64 / 16 };
    /// How far ahead the consumer of a stream lets its producer get.
    const LEAD: u64 = SLOTS as u64 / 8;

    /// Receives at least 1 byte of one piece.
    #[inline(always)]
    pub(super) fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        if self.incoming.piece.place == Place::Nowhere {
            let slot = self.incoming.lane.slots + self.slot_offset(self.incoming.slots);
            // SAFETY: slots are inside.
            let header = unsafe { self.memory.word(slot) }.load(Ordering::Acquire);
            // One comparison for all: it is the next message, is not in the bulk area, does not pass the token, and
            // fits.
            let length = header ^ self.incoming.header;
            if length.wrapping_sub(1) < into.len().min(SLOT_BYTES) as u64 {
                let into = &mut into[..length as usize];
                // SAFETY: inside, by the length. The peer does not touch the slot before the cursor says so.
                unsafe { self.memory.read(slot + HEADER_BYTES, into) };
                self.incoming.header = self.incoming.header.wrapping_add(1 << SEQUENCE_SHIFT);
                self.free_slot(slot, true);
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
        // SAFETY: `open` has checked that the piece is inside, whatever the peer wrote. The peer does not touch it
        // before this endpoint's cursor says that it may.
        unsafe { self.memory.read(at, &mut into[..count]) };
        self.advance(count);
        Ok(count)
    }

    /// Where the unread bytes of the piece are, and how many. When all are read, waits for the next piece.
    #[inline(always)]
    fn find_bytes(&mut self) -> Result<(usize, usize), Errno> {
        if self.incoming.piece.read_bytes == self.incoming.piece.length_bytes {
            self.free_bulk_piece();
            let (at, header) = match self.poll() {
                Some(found) => found,
                None => self.await_message()?,
            };
            self.open(at, header)?;
        }
        let Piece { at, length_bytes, read_bytes, .. } = self.incoming.piece;
        Ok((at + read_bytes, length_bytes - read_bytes))
    }

    /// Marks the next `count` bytes as read. They are at least 1 and inside of the piece.
    #[inline(always)]
    fn advance(&mut self, count: usize) {
        let piece = &mut self.incoming.piece;
        piece.read_bytes += count;
        if piece.read_bytes == piece.length_bytes && piece.place != Place::Bulk {
            let place = std::mem::replace(&mut piece.place, Place::Nowhere);
            if matches!(place, Place::Mailbox | Place::MailboxArea { is_last: true }) {
                self.take_token();
            }
            if place != Place::Mailbox {
                let slot = self.incoming.lane.slots + self.slot_offset(self.incoming.slots);
                self.free_slot(slot, place == Place::Slot);
            }
        }
    }

    /// Takes the token that the peer has passed on.
    #[inline(always)]
    fn take_token(&mut self) {
        self.holds_token = true;
        self.mailbox_area_used = 0;
    }

    /// As [`find_bytes`](Self::find_bytes), for a caller that reads in place.
    #[inline(always)]
    pub(super) fn peek_place(&mut self) -> Result<(usize, usize), Errno> {
        self.find_bytes()
    }

    /// As [`advance`](Self::advance), for a caller that reads in place and may be wrong.
    #[inline(always)]
    pub(super) fn release(&mut self, bytes: usize) -> Result<(), Errno> {
        let Piece { length_bytes, read_bytes, .. } = self.incoming.piece;
        if !(1..=length_bytes - read_bytes).contains(&bytes) {
            return Err(Errno::INVAL);
        }
        self.advance(bytes);
        Ok(())
    }

    /// Where the next message is and its header, if it has arrived.
    #[inline(always)]
    fn poll(&self) -> Option<(usize, u64)> {
        let is_next = |header: u64| (header ^ self.incoming.header) & !(PASSES_TOKEN | LENGTH) == 0;
        let slot = self.incoming.lane.slots + self.slot_offset(self.incoming.slots);
        // SAFETY: slots and the mailbox slot are inside.
        unsafe {
            let header = self.memory.word(slot).load(Ordering::Acquire);
            if is_next(header) {
                return Some((slot, header));
            }
            let header = self.memory.word(MAILBOX).load(Ordering::Acquire);
            if is_next(header) {
                return Some((MAILBOX, header));
            }
        }
        None
    }

    /// Makes the message at `at` the current piece. Checks what the peer wrote.
    #[inline(always)]
    fn open(&mut self, at: usize, header: u64) -> Result<(), Errno> {
        let length_bytes = (header & LENGTH) as usize;
        let (place, at, length_bytes, most_bytes) = if at == MAILBOX {
            let at = MAILBOX + if header & ON_NEXT_LINE == 0 { HEADER_BYTES } else { LINE_BYTES };
            // A reply will be written to the same lines, so that they had better come to be written at once.
            if (LINE_BYTES..=MAILBOX_BYTES).contains(&length_bytes) {
                // SAFETY: inside, by the length.
                unsafe { self.memory.fetch_lines(at, length_bytes) };
            }
            (Place::Mailbox, at, length_bytes, MAILBOX_BYTES)
        } else if length_bytes != 0 {
            (Place::Slot, at + HEADER_BYTES, length_bytes, SLOT_BYTES)
        } else {
            // SAFETY: the slot's second word is inside.
            let length = unsafe { self.memory.word(at + HEADER_BYTES) }.load(Ordering::Relaxed);
            if length & IN_MAILBOX_AREA != 0 {
                return self.open_in_mailbox_area(header, length & !IN_MAILBOX_AREA);
            }
            let offset = self.bulk_offset(self.incoming.bulk);
            let most_bytes = self.geometry.piece_bytes.min(self.geometry.bulk_bytes - offset);
            let length_bytes = usize::try_from(length).unwrap_or(usize::MAX);
            (Place::Bulk, self.incoming.lane.bulk + offset, length_bytes, most_bytes)
        };
        if !(1..=most_bytes).contains(&length_bytes) {
            return Err(Errno::BADMSG);
        }
        self.incoming.header = self.incoming.header.wrapping_add(1 << SEQUENCE_SHIFT);
        if place != Place::Mailbox && header & PASSES_TOKEN != 0 {
            self.take_token();
        }
        self.incoming.piece = Piece { place, at, length_bytes, read_bytes: 0 };
        Ok(())
    }

    /// As [`open`](Self::open), of a piece in the mailbox area. This endpoint gets the token when it has read the last.
    #[inline(always)]
    fn open_in_mailbox_area(&mut self, header: u64, length: u64) -> Result<(), Errno> {
        let room_bytes = self.geometry.mailbox_area_bytes() - self.mailbox_area_used;
        let length_bytes = usize::try_from(length).unwrap_or(usize::MAX);
        // The peer does not hold the token while this endpoint does.
        if self.holds_token
            || !(1..=room_bytes.min(self.geometry.awaited_piece_bytes())).contains(&length_bytes)
        {
            return Err(Errno::BADMSG);
        }
        let at = self.geometry.mailbox_area_at() + self.mailbox_area_used;
        self.mailbox_area_used += length_bytes.next_multiple_of(LINE_BYTES);
        self.incoming.header = self.incoming.header.wrapping_add(1 << SEQUENCE_SHIFT);
        let place = Place::MailboxArea { is_last: header & PASSES_TOKEN != 0 };
        self.incoming.piece = Piece { place, at, length_bytes, read_bytes: 0 };
        Ok(())
    }

    /// Frees the next slot, which is at `slot`.
    #[inline(always)]
    fn free_slot(&mut self, slot: usize, is_small: bool) {
        // This dirties its line. The peer overwrites the header only after the cursor says that it may.
        // SAFETY: slots are inside.
        unsafe { self.memory.word(slot) }.store(0, Ordering::Relaxed);
        self.incoming.slots += 1;
        if self.incoming.slots & (Self::BATCH - 1) == 0 {
            self.publish_cursor();
            if is_small {
                self.let_producer_lead();
            }
        }
    }

    /// In a stream of small messages, keeps away from the producer for a while.
    ///
    /// A consumer right behind the producer takes each line away while the producer still writes it, and both slow
    /// down to the pace of moving lines: measured, five to twenty times as slow. So a spinning consumer that has
    /// received several messages without waiting pauses, for a few microseconds at most, until the producer is well
    /// ahead. In a request-reply exchange, or when messages come singly, there are never several without waiting.
    #[inline(never)]
    fn let_producer_lead(&mut self) {
        const SEVERAL: u64 = 16;
        const POLLS: u32 = 8;
        const PAUSES_PER_POLL: u32 = 32;
        if W::SLEEPS || UNDER_LOOM || self.incoming.slots - self.incoming.slots_at_wait < SEVERAL {
            return;
        }
        let slot = self.incoming.lane.slots + self.slot_offset(self.incoming.slots + Self::LEAD - 1);
        for _ in 0..POLLS {
            // SAFETY: slots are inside.
            let header = unsafe { self.memory.word(slot) }.load(Ordering::Relaxed);
            // Messages through the mailbox slot use sequence numbers but no slots, so that a greater header says the
            // same. A header of an earlier lap is smaller, and so is one that was cleared.
            if header.wrapping_sub(self.incoming.header) >> 63 == 0 {
                return;
            }
            for _ in 0..PAUSES_PER_POLL {
                relax();
            }
        }
    }

    /// Frees the piece in the bulk area that was read to its end, if there is one. Dirties its lines.
    ///
    /// This happens when the caller asks for the next piece, not when it reads the last byte. Between the two this
    /// endpoint may reply, and stores become visible in order: the reply would wait until every line is dirtied.
    pub(super) fn free_bulk_piece(&mut self) {
        let Piece { place, at, length_bytes, read_bytes } = self.incoming.piece;
        if place != Place::Bulk || read_bytes < length_bytes {
            return;
        }
        self.incoming.piece.place = Place::Nowhere;
        if self.incoming.dirties && length_bytes <= LONGEST_DIRTIED {
            // SAFETY: `open` has checked that the piece is inside. The peer does not touch it before the cursor says
            // so.
            unsafe { self.memory.dirty_lines(at, length_bytes) };
        }
        self.incoming.bulk += length_bytes.next_multiple_of(LINE_BYTES) as u64;
        // A longer piece keeps both endpoints busy enough: the consumer is not right behind the producer.
        let is_small = length_bytes < 2048;
        self.free_slot(self.incoming.lane.slots + self.slot_offset(self.incoming.slots), is_small);
        if self.incoming.bulk - self.incoming.bulk_published >= self.geometry.bulk_bytes as u64 / 4 {
            self.publish_cursor();
        }
    }

    /// Publishes what the peer may overwrite, and wakes the peer if it may sleep.
    pub(super) fn publish_cursor(&mut self) {
        let Incoming { lane, slots, slots_published, bulk, bulk_published, .. } = self.incoming;
        if slots == slots_published {
            // Every piece in the bulk area has a slot, so that the cursor of the bulk area is up to date too.
            return;
        }
        // SAFETY: the cursor is inside.
        unsafe {
            if bulk != bulk_published {
                self.memory.word(lane.consumer_cursor + HEADER_BYTES).store(bulk, Ordering::Release);
            }
            self.memory.word(lane.consumer_cursor).store(slots, Ordering::Release);
        }
        self.incoming.slots_published = slots;
        self.incoming.bulk_published = bulk;
        self.notify(lane.producer_asleep);
    }

    #[cold]
    #[inline(never)]
    fn await_message(&mut self) -> Result<(usize, u64), Errno> {
        // The peer may wait for room before it can send what this endpoint waits for.
        self.publish_cursor();
        self.let_producer_lead();
        let found = self.wait(self.incoming.lane.consumer_asleep, Self::poll);
        self.incoming.slots_at_wait = self.incoming.slots;
        found
    }
}
