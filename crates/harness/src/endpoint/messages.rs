//! The memory from which an endpoint sends and into which it receives, where it copies. What messages hold is in `payload`.

use std::ops::Range;
use sys::Errno;

const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
/// The number of a message is written and read as a whole, also where less of it is sent: there is always room for it.
const NUMBER_BYTES: usize = 8;

/// A message to send and one that is received.
///
/// Both begin on a cache line, and where one is as large as a page on a page: their alignment changes the speed of a copy by
/// some percent, and would else be left to the allocator. Small ones lie in this value, so that an iteration touches no page
/// for them alone.
pub(crate) struct Messages {
    small: Small,
    /// Empty where messages are small.
    large: Vec<u8>,
    /// The message to send.
    outgoing: Range<usize>,
    /// The message that is received. Of an empty one, there is room for its number behind it.
    incoming: Range<usize>,
}

/// The memory in which the message to send is made.
pub(super) struct Outgoing<'a> {
    bytes: &'a mut [u8],
    /// The size of the message.
    pub(super) size_bytes: usize,
}

impl Outgoing<'_> {
    /// Writes `number` at the start of the message, or as much of it as the message holds.
    #[inline(always)]
    pub(super) fn set_number(&mut self, number: u64) {
        // `copy_from_slice` would be a call, and the copy itself another.
        if let Some(bytes) = self.bytes.first_chunk_mut() {
            *bytes = number.to_le_bytes();
        }
    }

    /// The message from its byte `sent` on.
    #[inline(always)]
    pub(super) fn after(&mut self, sent: usize) -> &mut [u8] {
        &mut self.bytes[sent..self.size_bytes]
    }
}

/// The memory into which a message is received.
pub(super) struct Room<'a> {
    bytes: &'a mut [u8],
    /// The size of the message.
    pub(super) size_bytes: usize,
}

impl Room<'_> {
    /// Where its bytes from `received` on come to lie. It ends with the message, unless that is empty: then there is room for one
    /// byte, for a call that is given none may return at once, and a message that is not empty would not be noticed.
    #[inline(always)]
    pub(super) fn after(&mut self, received: usize) -> &mut [u8] {
        &mut self.bytes[received..self.size_bytes.max(1)]
    }

    /// What stands where the number of the message does.
    #[inline(always)]
    pub(super) fn number(&self) -> u64 {
        self.bytes.first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
    }

    /// The message that was received.
    #[inline(always)]
    pub(super) fn message(&self) -> &[u8] {
        &self.bytes[..self.size_bytes]
    }
}

/// Two cache lines.
#[repr(align(64))]
struct Small([u8; 2 * LINE_BYTES]);

impl Messages {
    /// Room for messages of `sends_bytes` to send and of `receives_bytes` to receive.
    pub(super) fn new(sends_bytes: usize, receives_bytes: usize) -> Self {
        let largest = sends_bytes.max(receives_bytes);
        let align = if largest < PAGE_BYTES { LINE_BYTES } else { PAGE_BYTES };
        let incoming_offset = sends_bytes.max(NUMBER_BYTES).next_multiple_of(align);
        let len = incoming_offset + receives_bytes.max(NUMBER_BYTES);
        // Written, not just reserved, so that no page is first touched inside an iteration.
        let large = if largest <= LINE_BYTES { Vec::new() } else { vec![0xa5; align + len] };
        let start = if large.is_empty() { 0 } else { large.as_ptr().align_offset(align) };
        let incoming_start = start + incoming_offset;
        Self {
            small: Small([0xa5; 2 * LINE_BYTES]),
            large,
            outgoing: start..start + sends_bytes,
            incoming: incoming_start..incoming_start + receives_bytes,
        }
    }

    /// The size of the message that is received.
    pub(super) fn incoming_bytes(&self) -> usize {
        self.incoming.len()
    }

    fn bytes(&self) -> &[u8] {
        if self.large.is_empty() { &self.small.0 } else { &self.large }
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        if self.large.is_empty() { &mut self.small.0 } else { &mut self.large }
    }

    /// Where the message to send is made, and where a message is received.
    #[inline(always)]
    pub(super) fn both(&mut self) -> (Outgoing<'_>, Room<'_>) {
        let (outgoing, incoming) = (self.outgoing.clone(), self.incoming.clone());
        let (before, after) = self.bytes_mut().split_at_mut(incoming.start);
        (
            Outgoing { bytes: &mut before[outgoing.start..], size_bytes: outgoing.len() },
            Room { bytes: after, size_bytes: incoming.len() },
        )
    }

    /// Gives the memory back to the kernel, so that it is touched for the first time again. Small messages lie in one page with
    /// the endpoint, which stays.
    pub(super) fn cool(&mut self) -> Result<(), Errno> {
        sys::cold::discard(&mut self.large)
    }

    /// Where the memory lies.
    pub(super) fn addresses(&self) -> Range<u64> {
        let start = self.bytes().as_ptr().addr() as u64;
        start..start + self.bytes().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_sizes_lie_apart_and_aligned_with_room_for_their_numbers() {
        for sends in [0, 1, 7, 8, 64, 65, 4095, 4096, 100_000] {
            for receives in [0, 1, 8, 64, 65, 4096, 100_000] {
                let mut messages = Messages::new(sends, receives);
                let (outgoing, incoming) = (messages.outgoing.clone(), messages.incoming.clone());
                assert_eq!((outgoing.len(), incoming.len()), (sends, receives));
                assert_eq!(messages.both().1.after(0).len(), receives.max(1));
                assert!(outgoing.end.max(outgoing.start + NUMBER_BYTES) <= incoming.start);
                let align = if sends.max(receives) < PAGE_BYTES { LINE_BYTES } else { PAGE_BYTES };
                for start in [outgoing.start, incoming.start] {
                    assert!(messages.bytes()[start..].as_ptr().addr().is_multiple_of(align));
                }
                messages.bytes_mut()[incoming.start..incoming.start + NUMBER_BYTES].fill(7);
                let (mut outgoing, room) = messages.both();
                outgoing.set_number(u64::MAX);
                assert_eq!(outgoing.after(0).len(), sends);
                assert_eq!(room.number(), 0x0707_0707_0707_0707, "{sends} {receives}");
            }
        }
    }
}
