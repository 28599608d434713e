//! Sending: by a copy, or by reserve and commit in place. Where a message goes depends on its length and on the
//! token.

use super::atomic::Ordering;
use super::layout::{
    HEADER_BYTES, IN_MAILBOX_AREA, LINE_BYTES, LONGEST_BESIDE_HEADER, LONGEST_IN_SLOTS, MAILBOX,
    MAILBOX_BYTES, ON_NEXT_LINE, PASSES_TOKEN, SEQUENCE_SHIFT, SLOT_BYTES,
};
use super::memory::Memory;
use super::protocol::{Engine, Place, Reservation};
use super::wait::WaitStrategy;
use crate::Errno;

impl<M: Memory, W: WaitStrategy, const SLOTS: usize> Engine<M, W, SLOTS> {
    /// Sends a first part of `bytes` and returns its length.
    #[inline(always)]
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.len() > SLOT_BYTES || bytes.is_empty() {
            return self.send_long(bytes);
        }
        let at = if self.holds_token { MAILBOX } else { self.take_slot()? };
        // SAFETY: inside, by the length. The mailbox slot is this endpoint's, by the token; so is the slot, by
        // `take_slot`.
        unsafe { self.memory.write(at + HEADER_BYTES, bytes) };
        self.publish(at, bytes.len() as u64);
        Ok(bytes.len())
    }

    #[inline(never)]
    fn send_long(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.holds_token && bytes.len() <= MAILBOX_BYTES {
            let (at, place_bit) = Self::place_in_mailbox(bytes.len());
            // SAFETY: inside, by the length. While this endpoint holds the token, the peer does not touch the mailbox
            // slot.
            unsafe { self.memory.write(at, bytes) };
            self.publish(MAILBOX, bytes.len() as u64 | place_bit);
            return Ok(bytes.len());
        }
        if self.fits_mailbox_area(bytes.len()) {
            let (at, length_bytes, is_last) = self.find_mailbox_area(bytes.len());
            let slot = self.take_slot()?;
            // SAFETY: inside, as `fits_mailbox_area` has checked. While this endpoint holds the token, the peer does not
            // touch the mailbox area.
            unsafe { self.memory.write(at, &bytes[..length_bytes]) };
            self.publish_in_mailbox_area(slot, length_bytes, is_last);
            return Ok(length_bytes);
        }
        let passes_token = if self.holds_token { PASSES_TOKEN } else { 0 };
        if bytes.len() <= LONGEST_IN_SLOTS {
            let slot = self.take_slot()?;
            // SAFETY: inside, by the length. The slot is this endpoint's.
            unsafe { self.memory.write(slot + HEADER_BYTES, &bytes[..SLOT_BYTES]) };
            self.publish(slot, SLOT_BYTES as u64 | passes_token);
            return Ok(SLOT_BYTES);
        }
        self.send_piece(bytes, passes_token)
    }

    /// Where a message of `length_bytes` begins in the mailbox slot, and the bit of the header that says so.
    #[inline(always)]
    fn place_in_mailbox(length_bytes: usize) -> (usize, u64) {
        if length_bytes > LONGEST_BESIDE_HEADER {
            (MAILBOX + LINE_BYTES, ON_NEXT_LINE)
        } else {
            (MAILBOX + HEADER_BYTES, 0)
        }
    }

    /// Whether this endpoint may send a rest of `length_bytes` through the mailbox area, to its end.
    #[inline(always)]
    fn fits_mailbox_area(&self, length_bytes: usize) -> bool {
        self.holds_token && length_bytes <= self.geometry.mailbox_area_bytes() - self.mailbox_area_used
    }

    /// Where the next piece of a rest of `rest_bytes` goes in the mailbox area, its length, and whether it is the last.
    #[inline(always)]
    fn find_mailbox_area(&self, rest_bytes: usize) -> (usize, usize, bool) {
        let length_bytes = rest_bytes.min(self.geometry.awaited_piece_bytes());
        let at = self.geometry.mailbox_area_at() + self.mailbox_area_used;
        (at, length_bytes, length_bytes == rest_bytes)
    }

    /// Publishes the next piece in the mailbox area, by `slot`. The last passes the token on.
    #[inline(always)]
    fn publish_in_mailbox_area(&mut self, slot: usize, length_bytes: usize, is_last: bool) {
        // SAFETY: the slot's second word is inside.
        unsafe { self.memory.word(slot + HEADER_BYTES) }
            .store(length_bytes as u64 | IN_MAILBOX_AREA, Ordering::Relaxed);
        let used = self.mailbox_area_used + length_bytes.next_multiple_of(LINE_BYTES);
        self.publish(slot, if is_last { PASSES_TOKEN } else { 0 });
        if !is_last {
            self.holds_token = true;
            self.mailbox_area_used = used;
        }
    }

    /// Takes the next slot, for this endpoint to write and publish.
    #[inline(always)]
    fn take_slot(&mut self) -> Result<usize, Errno> {
        let slot = self.next_slot()?;
        self.outgoing.slots += 1;
        Ok(slot)
    }

    /// Where the next slot is. Waits until it is free.
    #[inline(always)]
    fn next_slot(&mut self) -> Result<usize, Errno> {
        if self.outgoing.slots == self.outgoing.slots_limit {
            self.await_slot()?;
        }
        Ok(self.outgoing.lane.slots + self.slot_offset(self.outgoing.slots))
    }

    /// Sends a first piece of `bytes` through the bulk area.
    fn send_piece(&mut self, bytes: &[u8], passes_token: u64) -> Result<usize, Errno> {
        let (at, length_bytes) = self.find_room(bytes.len())?;
        let slot = self.take_slot()?;
        // SAFETY: inside, because the piece ends before the end of the bulk area. The peer's cursor says that it is
        // done with these bytes.
        unsafe { self.memory.write(at, &bytes[..length_bytes]) };
        self.publish_piece(slot, length_bytes, passes_token);
        Ok(length_bytes)
    }

    /// Where the next piece of at most `most_bytes` goes in the bulk area, and its length. Waits until there is room.
    #[inline(always)]
    fn find_room(&mut self, most_bytes: usize) -> Result<(usize, usize), Errno> {
        let offset = self.bulk_offset(self.outgoing.bulk);
        let to_end = self.geometry.bulk_bytes - offset;
        self.outgoing.is_awaited |= self.holds_token;
        let piece_bytes = if self.outgoing.is_awaited {
            self.geometry.awaited_piece_bytes()
        } else {
            self.geometry.piece_bytes
        };
        let length_bytes = most_bytes.min(piece_bytes).min(to_end);
        // This piece is the last one if it holds all that is left.
        self.outgoing.is_awaited &= length_bytes < most_bytes;
        let room_bytes = length_bytes.next_multiple_of(LINE_BYTES) as u64;
        let used_bytes = self.outgoing.bulk - self.outgoing.bulk_freed;
        if self.geometry.bulk_bytes as u64 - used_bytes < room_bytes {
            self.await_bulk(room_bytes)?;
        }
        Ok((self.outgoing.lane.bulk + offset, length_bytes))
    }

    /// Publishes the next piece in the bulk area, by `slot`.
    #[inline(always)]
    fn publish_piece(&mut self, slot: usize, length_bytes: usize, passes_token: u64) {
        // SAFETY: the slot's second word is inside.
        unsafe { self.memory.word(slot + HEADER_BYTES) }.store(length_bytes as u64, Ordering::Relaxed);
        self.outgoing.bulk += length_bytes.next_multiple_of(LINE_BYTES) as u64;
        self.publish(slot, passes_token);
    }

    /// Where a next part of at most `most_bytes` may be written, and its length. Waits until the place is this
    /// endpoint's alone, which it stays until this endpoint sends. Places are chosen as for bytes that are copied.
    #[inline(always)]
    pub(super) fn reserve_place(&mut self, most_bytes: usize) -> Result<(usize, usize), Errno> {
        let (place, at, length_bytes) = if self.holds_token && most_bytes <= MAILBOX_BYTES {
            (Place::Mailbox, Self::place_in_mailbox(most_bytes).0, most_bytes)
        } else if self.fits_mailbox_area(most_bytes) {
            // So that the commit need not wait for a slot.
            self.next_slot()?;
            let (at, length_bytes, is_last) = self.find_mailbox_area(most_bytes);
            (Place::MailboxArea { is_last }, at, length_bytes)
        } else if most_bytes <= LONGEST_IN_SLOTS {
            let slot = self.next_slot()?;
            (Place::Slot, slot + HEADER_BYTES, most_bytes.min(SLOT_BYTES))
        } else {
            let (at, length_bytes) = self.find_room(most_bytes)?;
            // So that the commit need not wait for a slot.
            self.next_slot()?;
            (Place::Bulk, at, length_bytes)
        };
        self.outgoing.reservation = Reservation { header: self.outgoing.header, place, at, length_bytes };
        Ok((at, length_bytes))
    }

    /// Sends the first `bytes` of what was reserved, which are written by now.
    #[inline(always)]
    pub(super) fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        let Reservation { header, place, at, length_bytes } = self.outgoing.reservation;
        if header != self.outgoing.header || !(1..=length_bytes).contains(&bytes) {
            return Err(Errno::INVAL);
        }
        if place == Place::Mailbox {
            let place_bit = if at == MAILBOX + LINE_BYTES { ON_NEXT_LINE } else { 0 };
            self.publish(MAILBOX, bytes as u64 | place_bit);
            return Ok(());
        }
        // The token may have come since the reservation.
        let passes_token = if self.holds_token { PASSES_TOKEN } else { 0 };
        let slot = self.take_slot()?;
        match place {
            Place::Slot => self.publish(slot, bytes as u64 | passes_token),
            // If less was committed than was reserved, the rest of the message follows.
            Place::MailboxArea { is_last } => {
                self.publish_in_mailbox_area(slot, bytes, is_last && bytes == length_bytes);
            }
            _ => self.publish_piece(slot, bytes, passes_token),
        }
        Ok(())
    }

    /// Publishes what was written at `at`, and wakes the peer if it may sleep.
    #[inline(always)]
    fn publish(&mut self, at: usize, low_bits: u64) {
        // SAFETY: slots and the mailbox slot are inside.
        unsafe { self.memory.word(at) }.store(self.outgoing.header | low_bits, Ordering::Release);
        self.outgoing.header = self.outgoing.header.wrapping_add(1 << SEQUENCE_SHIFT);
        if self.holds_token {
            self.holds_token = false;
            self.mailbox_area_used = 0;
        }
        self.notify(self.outgoing.lane.consumer_asleep);
    }

    #[cold]
    #[inline(never)]
    fn await_slot(&mut self) -> Result<(), Errno> {
        self.free_bulk_piece();
        self.publish_cursor();
        let (lane, written, freed) =
            (self.outgoing.lane, self.outgoing.slots, self.outgoing.slots_limit - SLOTS as u64);
        let full = SLOTS as u64;
        let cursor = self.wait(lane.producer_asleep, |engine| {
            // SAFETY: the cursor is inside.
            let cursor = unsafe { engine.memory.word(lane.consumer_cursor) }.load(Ordering::Acquire);
            (written.wrapping_sub(cursor) < full || cursor > written).then_some(cursor)
        })?;
        if !(freed..=written).contains(&cursor) {
            return Err(Errno::BADMSG);
        }
        self.outgoing.slots_limit = cursor + SLOTS as u64;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn await_bulk(&mut self, room_bytes: u64) -> Result<(), Errno> {
        self.free_bulk_piece();
        self.publish_cursor();
        let (lane, written, freed) = (self.outgoing.lane, self.outgoing.bulk, self.outgoing.bulk_freed);
        let most = self.geometry.bulk_bytes as u64 - room_bytes;
        let cursor = self.wait(lane.producer_asleep, |engine| {
            // SAFETY: the cursor's second word is inside.
            let cursor =
                unsafe { engine.memory.word(lane.consumer_cursor + HEADER_BYTES) }.load(Ordering::Acquire);
            (written.wrapping_sub(cursor) <= most || cursor > written).then_some(cursor)
        })?;
        if !(freed..=written).contains(&cursor) {
            return Err(Errno::BADMSG);
        }
        self.outgoing.bulk_freed = cursor;
        Ok(())
    }
}
