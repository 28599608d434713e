//! Where everything lies in the shared memory, and what the header of a slot says. Who writes what when is the
//! protocol's business.
//!
//! ```text
//! claims | closed ×2 | (consumer cursor, consumer asleep, producer asleep) ×2 | mailbox slot | slots ×2 | bulk ×2 | mailbox area
//! ```
//!
//! What is there twice is there once for each direction, or for each side.

use super::atomic::UNDER_LOOM;
use crate::side::MemorySide;

/// The unit in which caches exchange memory.
pub(super) const LINE_BYTES: usize = 64;
/// The distance between words that different endpoints write: two lines, because some processors fetch lines in
/// pairs.
pub(super) const APART_BYTES: usize = 2 * LINE_BYTES;
pub(super) const PAGE_BYTES: usize = 4096;
/// The size of a slot's header.
pub(super) const HEADER_BYTES: usize = 8;
/// What fits into a slot beside its header.
pub(super) const SLOT_BYTES: usize = LINE_BYTES - HEADER_BYTES;
/// The longest message that goes through the mailbox slot. With two lines loom sees a message of more than one. A longer
/// one is sent in several pieces, so that both endpoints copy at the same time.
pub(super) const MAILBOX_BYTES: usize = if UNDER_LOOM { 2 * LINE_BYTES - HEADER_BYTES } else { 8 << 10 };
/// The longest message that lies right behind the mailbox slot's header. A longer one begins on the next line: copies from
/// and to whole lines are faster, measured by a twentieth for 4 KiB, and by a tenth where it is read in place.
pub(super) const LONGEST_BESIDE_HEADER: usize = 2 * LINE_BYTES - HEADER_BYTES;
/// The longest message that goes through slots. A longer one goes through the bulk area.
pub(super) const LONGEST_IN_SLOTS: usize = 2 * SLOT_BYTES;
/// Where the bulk area begins in its page. Private buffers mostly begin a few bytes into a page. If the bulk area
/// began at the same place, the processor would hold back loads because they seem to depend on stores exactly one
/// page away. Measured, that makes a stream of large messages a third slower.
const BULK_IN_PAGE: usize = PAGE_BYTES / 4;

pub(super) const CLAIMS: usize = 0;
pub(super) const CLOSED: usize = CLAIMS + APART_BYTES;
const CONTROL: usize = CLOSED + 2 * APART_BYTES;
const CONTROL_BYTES: usize = 3 * APART_BYTES;
/// Not at the beginning of its page, for the same reason as the bulk area.
pub(super) const MAILBOX: usize = (CONTROL + 2 * CONTROL_BYTES).next_multiple_of(PAGE_BYTES) + BULK_IN_PAGE;
const FIRST_SLOT: usize = (MAILBOX + LINE_BYTES + MAILBOX_BYTES).next_multiple_of(PAGE_BYTES);

/// A header holds the message's sequence number above these bits. The number wraps after 2^48 messages: a month at 100
/// million messages per second. No header of the same number is then left over, because each slot is written thousands
/// of times a second at such a rate.
pub(super) const SEQUENCE_SHIFT: u32 = 16;
/// Says that the message is from the server. Without it an endpoint could take its own message in the mailbox slot
/// for the peer's.
pub(super) const FROM_SERVER: u64 = 1 << 15;
/// Says that the sender passes the token on.
pub(super) const PASSES_TOKEN: u64 = 1 << 14;
/// In the mailbox slot, which passes the token on with every message: the message begins on the line after the header's.
pub(super) const ON_NEXT_LINE: u64 = PASSES_TOKEN;
/// In a slot's second word, which says the length of a piece: the piece is in the mailbox area.
pub(super) const IN_MAILBOX_AREA: u64 = 1 << 63;
/// How many bytes are in the slot or the mailbox slot. Zero when the piece is in the bulk area or the mailbox area.
pub(super) const LENGTH: u64 = PASSES_TOKEN - 1;
const _: () = assert!(MAILBOX_BYTES as u64 <= LENGTH && SLOT_BYTES <= MAILBOX_BYTES);

/// The header, without length, of the first message of `side`.
pub(super) fn first_header(side: MemorySide) -> u64 {
    (1 << SEQUENCE_SHIFT) | if side == MemorySide::Server { FROM_SERVER } else { 0 }
}

/// How large the rings are. Both endpoints must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingGeometry {
    pub(super) slots: usize,
    pub(super) bulk_bytes: usize,
    pub(super) piece_bytes: usize,
}

impl RingGeometry {
    pub(super) const SLOTS: usize = 1024;
    const LEAST_BULK_BYTES: usize = PAGE_BYTES;
    const MOST_BULK_BYTES: usize = 1 << 30;
    /// The largest piece of a stream. With larger pieces the endpoints synchronise less often, and the consumer is
    /// further behind the producer: measured, 64 KiB messages take two thirds of the time that they take in pieces of
    /// 8 KiB.
    const MOST_PIECE_BYTES: usize = 64 << 10;
    /// The largest piece of a message that somebody waits for. With smaller pieces both endpoints start sooner to copy
    /// at the same time.
    pub(super) const AWAITED_PIECE_BYTES: usize = 16 << 10;
    /// The longest request or reply that both directions share memory for.
    const MOST_MAILBOX_AREA_BYTES: usize = 1 << 20;

    /// Rings that hold at least `bulk_bytes` of long messages in each direction: rounded up to a power of two between
    /// 4 KiB and 1 GiB.
    pub fn with_bulk(bulk_bytes: usize) -> Self {
        let bulk_bytes = bulk_bytes.clamp(Self::LEAST_BULK_BYTES, Self::MOST_BULK_BYTES).next_power_of_two();
        // At least four pieces, so that both endpoints can copy at the same time.
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

    /// The largest piece of a long message, which is sent as one.
    pub fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// The size of the memory that the pair needs.
    pub fn memory_bytes(&self) -> usize {
        (self.mailbox_area_at() + self.mailbox_area_bytes()).next_multiple_of(PAGE_BYTES)
    }

    /// Where the memory lies in which both directions send long requests and replies.
    pub(super) fn mailbox_area_at(&self) -> usize {
        self.bulk_at(2)
    }

    pub(super) fn mailbox_area_bytes(&self) -> usize {
        self.bulk_bytes.min(Self::MOST_MAILBOX_AREA_BYTES)
    }

    /// The largest piece of a message that somebody waits for.
    pub(super) fn awaited_piece_bytes(&self) -> usize {
        self.piece_bytes.min(Self::AWAITED_PIECE_BYTES)
    }

    fn slots_at(&self, direction: usize) -> usize {
        FIRST_SLOT + direction * self.slots * LINE_BYTES
    }

    fn bulk_at(&self, direction: usize) -> usize {
        self.slots_at(2).next_multiple_of(PAGE_BYTES) + BULK_IN_PAGE + direction * self.bulk_bytes
    }
}

/// Where the ring of one direction lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    /// Two words: how many slots the consumer has freed, and how many bytes of the bulk area.
    pub(super) consumer_cursor: usize,
    pub(super) consumer_asleep: usize,
    pub(super) producer_asleep: usize,
    pub(super) slots: usize,
    pub(super) bulk: usize,
}

impl Lane {
    /// The lane on which `side` sends.
    pub(super) fn new(side: MemorySide, geometry: &RingGeometry) -> Self {
        let direction = side.index();
        let control = CONTROL + direction * CONTROL_BYTES;
        Self {
            consumer_cursor: control,
            consumer_asleep: control + APART_BYTES,
            producer_asleep: control + 2 * APART_BYTES,
            slots: geometry.slots_at(direction),
            bulk: geometry.bulk_at(direction),
        }
    }
}
