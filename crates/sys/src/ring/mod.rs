//! A pair of single-producer, single-consumer rings in shared memory: one for each direction.
//!
//! Bytes arrive in order; message boundaries are not kept. There is one producer and one consumer for each direction.
//! The ring does not survive a peer that dies in the middle: the other endpoint then waits for ever, because only an
//! endpoint that closes says so.
//!
//! # How it works
//!
//! - A **slot** is one cache line: a header and up to 56 bytes. The consumer polls the header of its next slot, so
//!   that a small message costs the transfer of one line. A header holds the message's sequence number. So nobody
//!   takes a slot of an earlier lap for a new one, and no handshake is needed to clear it.
//! - Longer messages go in **pieces** through the bulk area, in order and never across its end. Pieces of a stream are
//!   large, those of a request or a reply small. The slot then holds
//!   the length alone. Both endpoints know where the next piece lies.
//! - The **mailbox slot** is one more slot, a longer one, that both directions share. The endpoint that holds the
//!   **token** may write it, and passes the token on with whatever it sends next; the client holds it at first. So a
//!   request and its reply move one and the same line to and fro, which costs half of what two lines cost.
//! - The **mailbox area** is the same for requests and replies of more than the mailbox slot holds. They lie there in pieces,
//!   each with a slot that says its length, and the last piece passes the token on. So the endpoint that replies writes
//!   where it has just read, and nobody waits for room. A message that does not fit goes through the bulk area.
//! - The **consumer cursor** says what the consumer has freed. The consumer publishes it after every sixteenth of a
//!   ring, and always before it waits. The producer loads it only when the ring seems full.
//! - The consumer **dirties** what it has read: it writes a byte into each line. The line is then in the consumer's
//!   cache alone, and the producer takes it from there in one transfer. If the line stayed shared, every store of the
//!   producer would first have to invalidate the other copy. Measured, that is three to ten times as slow. Pieces of more
//!   than 8 KiB are not dirtied: large copies take whole lines without waiting for each.
//! - An endpoint that may sleep has a flag in the memory. Its peer checks the flag after it has published anything,
//!   and **notifies** it, that is wakes it, only when the flag is set.
//!
//! # Files
//!
//! `layout` says where everything lies, `protocol` who writes what when, with `producer` and `consumer` for the two
//! directions. `mapping` is the real shared memory. `under_loom` checks the protocol in every interleaving.

mod atomic;
mod consumer;
mod endpoint;
mod layout;
mod mapping;
mod memory;
mod producer;
mod protocol;
#[cfg(test)]
mod tests;
#[cfg(all(test, not(miri)))]
mod under_loom;
mod wait;

pub use endpoint::RingEndpoint;
pub use layout::RingGeometry;
pub use wait::{FutexWait, SpinWait, WaitStrategy};
