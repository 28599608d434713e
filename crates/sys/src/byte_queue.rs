//! A pair of bounded byte queues in shared memory, one for each direction: two positions that only grow, and the
//! bytes.
//!
//! It is the plain form that programs write for themselves, and it is not fast: [`crate::ring`] is. It neither locks
//! nor waits. For users that do, it has flags that say who sleeps and who has closed.
//!
//! With one producer and one consumer for each direction it is sound without a lock. The producer writes bytes, then
//! its position (`Release`); the consumer reads that position (`Acquire`), then the bytes. The same holds the other
//! way round for bytes that are taken and room that is free again.

use crate::shared_memory::SharedMemory;
use crate::side::MemorySide;
use crate::{Errno, Failure};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The distance between words that different endpoints write: two lines, because some processors fetch lines in
/// pairs.
const APART_BYTES: usize = 128;
const PAGE_BYTES: usize = 4096;

const CLAIMS: usize = 0;
const CLOSED: usize = CLAIMS + APART_BYTES;
const CONTROL: usize = CLOSED + 2 * APART_BYTES;
const CONTROL_BYTES: usize = 4 * APART_BYTES;
const BYTES: usize = PAGE_BYTES;
const _: () = assert!(CONTROL + 2 * CONTROL_BYTES <= BYTES);

/// One endpoint of the pair: the producer of one queue and the consumer of the other.
#[derive(Debug)]
pub struct ByteQueueEndpoint {
    memory: SharedMemory,
    capacity_bytes: usize,
    side: MemorySide,
    /// Bytes put so far.
    put: u64,
    /// Bytes taken so far.
    taken: u64,
}

/// What an endpoint does with one of its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOperation {
    /// It puts bytes into the queue to its peer.
    Put,
    /// It takes bytes from the queue to itself.
    Take,
}

/// Where one queue lies in the memory.
#[derive(Debug, Clone, Copy)]
struct Lane {
    put: usize,
    taken: usize,
    producer_asleep: usize,
    consumer_asleep: usize,
    bytes: usize,
}

impl ByteQueueEndpoint {
    /// The size of the memory that a pair of queues of `capacity_bytes` each needs.
    pub fn memory_bytes(capacity_bytes: usize) -> usize {
        (BYTES + 2 * capacity_bytes).next_multiple_of(PAGE_BYTES)
    }

    /// Takes `side` of the pair of queues of `capacity_bytes`, at least 1, in fresh `memory`. The peer takes the
    /// other.
    pub fn claim(memory: SharedMemory, capacity_bytes: usize, side: MemorySide) -> Result<Self, Failure> {
        let refuse = |why: &str| {
            Failure::new("claim", format!("the {side:?} side of a queue"), why, "make new memory")
        };
        if capacity_bytes == 0 || memory.len_bytes() != Self::memory_bytes(capacity_bytes) {
            return Err(refuse("the memory is not of the queues' size"));
        }
        let claim = memory.u32_at(CLAIMS + side.index() * size_of::<u32>());
        if claim.swap(1, Ordering::AcqRel) != 0 {
            return Err(refuse("it is taken"));
        }
        Ok(Self { memory, capacity_bytes, side, put: 0, taken: 0 })
    }

    /// The number of the queue with which this endpoint does `operation`: 0 or 1, the same for both endpoints.
    #[inline(always)]
    pub fn queue(&self, operation: QueueOperation) -> usize {
        match operation {
            QueueOperation::Put => self.side.index(),
            QueueOperation::Take => self.side.peer().index(),
        }
    }

    #[inline(always)]
    fn lane(&self, operation: QueueOperation) -> Lane {
        let queue = self.queue(operation);
        let control = CONTROL + queue * CONTROL_BYTES;
        Lane {
            put: control,
            taken: control + APART_BYTES,
            producer_asleep: control + 2 * APART_BYTES,
            consumer_asleep: control + 3 * APART_BYTES,
            bytes: BYTES + queue * self.capacity_bytes,
        }
    }

    /// Puts a first part of `bytes`, as much as there is room for, and returns its length: 0 when the queue is full.
    ///
    /// `Errno::BADMSG` when the peer has written what no endpoint writes.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let lane = self.lane(QueueOperation::Put);
        let used = self.between(self.word(lane.taken).load(Ordering::Acquire), self.put)?;
        let count = bytes.len().min(self.capacity_bytes - used);
        let (at, to_end) = self.place(self.put);
        let (first, rest) = bytes[..count].split_at(count.min(to_end));
        // SAFETY: inside, because `at` is below the capacity, the first part ends at the queue's end at the latest,
        // and both together are no longer than the queue. The peer alone reads these bytes, and its position says
        // that it is done with what was there.
        unsafe {
            self.memory.write(lane.bytes + at, first);
            self.memory.write(lane.bytes, rest);
        }
        self.put += count as u64;
        self.word(lane.put).store(self.put, Ordering::Release);
        Ok(count)
    }

    /// Takes what there is, at most as much as `into` holds, and returns its length: 0 when the queue is empty.
    ///
    /// `Errno::BADMSG` as in [`put`](Self::put).
    #[inline(always)]
    pub fn take(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let lane = self.lane(QueueOperation::Take);
        let there = self.between(self.taken, self.word(lane.put).load(Ordering::Acquire))?;
        let count = into.len().min(there);
        let (at, to_end) = self.place(self.taken);
        let (first, rest) = into[..count].split_at_mut(count.min(to_end));
        // SAFETY: inside, as in `put`. The peer alone writes these bytes, and its position says that they are there.
        unsafe {
            self.memory.read(lane.bytes + at, first);
            self.memory.read(lane.bytes, rest);
        }
        self.taken += count as u64;
        self.word(lane.taken).store(self.taken, Ordering::Release);
        Ok(count)
    }

    /// How many bytes are in a queue of these positions. Refuses more than it holds. No queue lives for 2^64 bytes,
    /// so that positions never wrap.
    #[inline(always)]
    fn between(&self, taken: u64, put: u64) -> Result<usize, Errno> {
        let there = put.checked_sub(taken).filter(|there| *there <= self.capacity_bytes as u64);
        there.map(|there| there as usize).ok_or(Errno::BADMSG)
    }

    /// Where the byte at `position` lies, and how many bytes there are from it to the end of the memory.
    #[inline(always)]
    fn place(&self, position: u64) -> (usize, usize) {
        let at = (position % self.capacity_bytes as u64) as usize;
        (at, self.capacity_bytes - at)
    }

    /// Says that this endpoint is about to sleep until it can do `operation`. It must try once more before it sleeps:
    /// either it sees what the peer has done, or the peer sees this announcement.
    pub fn announce_sleep(&self, operation: QueueOperation) {
        self.own_flag(operation).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that this endpoint does not sleep after all.
    pub fn revoke_sleep(&self, operation: QueueOperation) {
        self.own_flag(operation).store(0, Ordering::Relaxed);
    }

    /// Whether the peer sleeps, or is about to, until this endpoint has done `operation`, which it has by now. If so,
    /// the caller must wake it, because the announcement is cleared.
    #[inline(always)]
    pub fn peer_sleeps(&self, operation: QueueOperation) -> bool {
        let lane = self.lane(operation);
        let flag = self.flag(if operation == QueueOperation::Put {
            lane.consumer_asleep
        } else {
            lane.producer_asleep
        });
        fence(Ordering::SeqCst);
        let sleeps = flag.load(Ordering::Relaxed) != 0;
        if sleeps {
            flag.store(0, Ordering::Relaxed);
        }
        sleeps
    }

    /// Says that this endpoint does nothing more. The caller must wake the peer.
    pub fn close(&self) {
        self.flag(CLOSED + self.side.index() * APART_BYTES).store(1, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Whether the peer has closed. What it put before that can be taken now.
    pub fn peer_has_closed(&self) -> bool {
        self.flag(CLOSED + self.side.peer().index() * APART_BYTES).load(Ordering::Acquire) != 0
    }

    fn own_flag(&self, operation: QueueOperation) -> &AtomicU32 {
        let lane = self.lane(operation);
        self.flag(if operation == QueueOperation::Put { lane.producer_asleep } else { lane.consumer_asleep })
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        self.memory.u64_at(at)
    }

    #[inline(always)]
    fn flag(&self, at: usize) -> &AtomicU32 {
        self.memory.u32_at(at)
    }
}

#[cfg(all(test, not(miri)))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn endpoints(capacity_bytes: usize) -> (ByteQueueEndpoint, ByteQueueEndpoint) {
        let memory_bytes = ByteQueueEndpoint::memory_bytes(capacity_bytes);
        let (memory, fd) = SharedMemory::create("test", memory_bytes).unwrap();
        let client = ByteQueueEndpoint::claim(memory, capacity_bytes, MemorySide::Client).unwrap();
        let memory = SharedMemory::open(&fd, memory_bytes).unwrap();
        (client, ByteQueueEndpoint::claim(memory, capacity_bytes, MemorySide::Server).unwrap())
    }

    #[test]
    fn a_queue_holds_its_capacity_and_is_then_full() {
        let (mut client, mut server) = endpoints(10);
        assert_eq!([client.put(b"0123456"), client.put(b"789abc"), client.put(b"x")], [Ok(7), Ok(3), Ok(0)]);
        let mut into = [0; 8];
        assert_eq!((server.take(&mut into), &into), (Ok(8), b"01234567"));
        // This one wraps at the end of the memory.
        assert_eq!(client.put(b"abcdefghij"), Ok(8));
        assert_eq!((server.take(&mut into), &into), (Ok(8), b"89abcdef"));
        assert_eq!((server.take(&mut into), &into[..2]), (Ok(2), &b"gh"[..]));
        assert_eq!(
            [server.take(&mut into), server.put(b"back"), client.take(&mut into)],
            [Ok(0), Ok(4), Ok(4)]
        );
    }

    #[test]
    fn a_side_is_claimed_once_and_only_with_one_size() {
        let (memory, fd) = SharedMemory::create("test", ByteQueueEndpoint::memory_bytes(10)).unwrap();
        let _client = ByteQueueEndpoint::claim(memory, 10, MemorySide::Client).unwrap();
        let again = || SharedMemory::open(&fd, ByteQueueEndpoint::memory_bytes(10)).unwrap();
        assert!(ByteQueueEndpoint::claim(again(), 10, MemorySide::Client).is_err());
        assert!(ByteQueueEndpoint::claim(again(), 100_000, MemorySide::Server).is_err());
        assert!(ByteQueueEndpoint::claim(again(), 10, MemorySide::Server).is_ok());
    }

    #[test]
    fn positions_that_no_endpoint_writes_are_refused() {
        for hostile in [11, u64::MAX, 1 << 63] {
            let (mut client, mut server) = endpoints(10);
            client.word(client.lane(QueueOperation::Put).put).store(hostile, Ordering::Relaxed);
            assert_eq!(server.take(&mut [0; 100]), Err(Errno::BADMSG), "{hostile}");
            server.word(server.lane(QueueOperation::Take).taken).store(hostile, Ordering::Relaxed);
            assert_eq!(client.put(&[0; 100]), Err(Errno::BADMSG), "{hostile}");
        }
    }

    #[test]
    fn a_sleep_is_announced_to_the_operation_that_ends_it() {
        let (client, server) = endpoints(10);
        client.announce_sleep(QueueOperation::Take);
        assert!(!server.peer_sleeps(QueueOperation::Take), "the client sleeps for bytes, not for room");
        assert!(server.peer_sleeps(QueueOperation::Put));
        assert!(!server.peer_sleeps(QueueOperation::Put), "the announcement was not cleared");
        client.announce_sleep(QueueOperation::Put);
        client.revoke_sleep(QueueOperation::Put);
        assert!(!server.peer_sleeps(QueueOperation::Take));
        assert!(!server.peer_has_closed());
        client.close();
        assert!(server.peer_has_closed() && !client.peer_has_closed());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn any_parts_pass_any_queue_in_order(
            parts in proptest::collection::vec((1..300_usize, 1..300_usize), 1..100),
            capacity in 1..200_usize,
        ) {
            let (mut client, mut server) = endpoints(capacity);
            let bytes: Vec<u8> = (0..30_000_usize).map(|at| (at ^ (at >> 8)) as u8).collect();
            let (mut put, mut taken) = (0, 0);
            for (puts, takes) in parts {
                put += client.put(&bytes[put..put + puts]).unwrap();
                let mut into = vec![0; takes];
                let count = server.take(&mut into).unwrap();
                prop_assert_eq!(&into[..count], &bytes[taken..taken + count]);
                taken += count;
                prop_assert!(put - taken <= capacity && taken <= put);
            }
        }

        /// Slow: two threads pass megabytes, each spinning.
        #[test]
        fn two_threads_pass_bytes_in_order(capacity in 100..5000_usize, part in 1..6000_usize) {
            let (mut client, mut server) = endpoints(capacity);
            let bytes: Vec<u8> = (0..100_000_usize).map(|at| (at ^ (at >> 8)) as u8).collect();
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    let mut put = 0;
                    while put < bytes.len() {
                        put += client.put(&bytes[put..(put + part).min(bytes.len())]).unwrap();
                        std::thread::yield_now();
                    }
                });
                let (mut taken, mut into) = (0, vec![0; part]);
                while taken < bytes.len() {
                    let count = server.take(&mut into).unwrap();
                    assert_eq!(&into[..count], &bytes[taken..taken + count]);
                    taken += count;
                    std::thread::yield_now();
                }
            });
        }
    }
}
