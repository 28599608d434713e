//! What the ring promises, over memory on the heap and over real shared memory.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::atomic::Ordering;
use super::endpoint::RingEndpoint;
use super::layout::{
    HEADER_BYTES, IN_MAILBOX_AREA, LENGTH, MAILBOX, MAILBOX_BYTES, PAGE_BYTES, RingGeometry,
};
use super::mapping::Region;
use super::memory::Memory;
use super::protocol::Engine;
use super::wait::{FutexWait, SpinWait, WaitStrategy};
use crate::Errno;
use crate::shared_memory::SharedMemory;
use crate::side::MemorySide;
use proptest::prelude::*;
use std::ptr::NonNull;
use std::sync::Arc;

/// Lines on the heap, so that Miri can watch.
struct Heap {
    base: NonNull<u8>,
    layout: std::alloc::Layout,
}

// SAFETY: it is an address. Who accesses what is the business of the engines.
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
type Small<W = SpinWait> = Engine<Region<Arc<Heap>>, W, SMALL>;

fn geometry(bulk_bytes: usize) -> RingGeometry {
    RingGeometry { slots: SMALL, bulk_bytes, piece_bytes: bulk_bytes / 4 }
}

fn claim<W: WaitStrategy + Default>(
    heap: &Arc<Heap>,
    geometry: RingGeometry,
    side: MemorySide,
) -> Option<Small<W>> {
    assert_eq!(heap.layout.size(), geometry.memory_bytes());
    // SAFETY: aligned, of the length, and alive as long as the region.
    let region = unsafe { Region::new(heap.base, heap.layout.size(), heap.clone()) };
    // SAFETY: the size is right, the memory was zero, and only engines use it.
    unsafe { Engine::claim(region, geometry, side, W::default()) }
}

fn pair<W: WaitStrategy + Default>(bulk_bytes: usize) -> (Small<W>, Small<W>) {
    let geometry = geometry(bulk_bytes);
    let heap = Heap::new(geometry.memory_bytes());
    (claim(&heap, geometry, MemorySide::Client).unwrap(), claim(&heap, geometry, MemorySide::Server).unwrap())
}

fn content(number: usize, len_bytes: usize) -> Vec<u8> {
    (0..len_bytes).map(|at| (at.wrapping_mul(31) ^ number.wrapping_mul(131) ^ (at >> 8)) as u8).collect()
}

fn send_all<M: Memory, W: WaitStrategy, const S: usize>(endpoint: &mut Engine<M, W, S>, bytes: &[u8]) {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += endpoint.send(&bytes[sent..]).unwrap();
    }
}

fn receive_all<M: Memory, W: WaitStrategy, const S: usize>(
    endpoint: &mut Engine<M, W, S>,
    len_bytes: usize,
    step_bytes: usize,
) -> Vec<u8> {
    let mut into = vec![0xEE; len_bytes];
    let mut received = 0;
    while received < len_bytes {
        let end_at = len_bytes.min(received + step_bytes);
        let count = endpoint.receive(&mut into[received..end_at]).unwrap();
        assert!(count > 0);
        received += count;
    }
    into
}

/// Sends messages of `sizes` one way in order, then one byte back. The consumer's buffer holds `step_bytes`.
fn stream<W: WaitStrategy + Default + Send>(bulk_bytes: usize, sizes: &[usize], step_bytes: usize) {
    let (mut client, mut server) = pair::<W>(bulk_bytes);
    std::thread::scope(|threads| {
        threads.spawn(move || {
            for (number, size) in sizes.iter().enumerate() {
                assert_eq!(receive_all(&mut server, *size, step_bytes), content(number, *size));
            }
            send_all(&mut server, &[7]);
            // The client must have received the reply before this endpoint closes.
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
    let got = |asked| RingGeometry::with_bulk(asked).bulk_bytes();
    assert_eq!([1, 4096, 4097, 5000, 1 << 20].map(got), [4096, 4096, 8192, 8192, 1 << 20]);
    assert_eq!(got(usize::MAX), 1 << 30);
    assert_eq!(RingGeometry::with_bulk(4096).piece_bytes(), 1024);
    assert_eq!(RingGeometry::with_bulk(1 << 20).piece_bytes(), 65_536);
}

#[test]
fn every_class_of_size_passes_over_many_laps() {
    let laps = if cfg!(miri) { 1 } else { 8 };
    let sizes =
        [1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 55, 56, 57, 64, 112, 113, 255, 256, 257, 1000, 8192, 8193];
    let sizes: Vec<usize> = sizes.into_iter().cycle().take(sizes.len() * laps).collect();
    stream::<SpinWait>(256, &sizes, usize::MAX / 2);
    stream::<SpinWait>(256, &sizes, 5);
    if !cfg!(miri) {
        stream::<FutexWait>(256, &sizes, usize::MAX / 2);
        stream::<FutexWait>(256, &sizes, 5);
    }
}

#[test]
fn requests_and_replies_use_the_mailbox_slot_alone() {
    let (mut client, mut server) = pair::<SpinWait>(256);
    for iteration in 0..20 {
        let request = content(iteration, [1, 56, 57, MAILBOX_BYTES][iteration % 4]);
        send_all(&mut client, &request);
        assert_eq!(receive_all(&mut server, request.len(), 600), request);
        send_all(&mut server, &request);
        assert_eq!(receive_all(&mut client, request.len(), 600), request);
    }
    assert_eq!([client.outgoing.slots, server.outgoing.slots], [0, 0]);
}

#[test]
fn the_token_is_passed_on_with_messages_that_do_not_fit_the_mailbox_slot() {
    let (mut client, mut server) = pair::<SpinWait>(32_768);
    send_all(&mut client, &content(0, 9000));
    assert!(!client.holds_token);
    assert_eq!(receive_all(&mut server, 9000, 9000), content(0, 9000));
    assert!(server.holds_token);
    send_all(&mut server, &[9]);
    assert_eq!(server.outgoing.slots, 0, "the reply went through a slot");
    assert_eq!(receive_all(&mut client, 1, 1), [9]);
    assert!(client.holds_token);
}

#[test]
fn a_message_that_is_awaited_goes_in_smaller_pieces_than_a_stream() {
    let (mut client, mut server) = pair::<SpinWait>(131_072);
    let message = content(0, 40_000);
    let pieces = |endpoint: &mut Small, bytes: &[u8]| -> Vec<usize> {
        let mut sent = 0;
        std::iter::from_fn(|| {
            let count = endpoint.send(&bytes[sent..]).unwrap();
            sent += count;
            (count > 0).then_some(count)
        })
        .collect()
    };
    // The first passes the token; the second belongs to a stream.
    assert_eq!(pieces(&mut client, &message), [16_384, 16_384, 7232]);
    assert_eq!(receive_all(&mut server, 40_000, 40_000), message);
    assert_eq!(pieces(&mut client, &message), [32_768, 7232]);
    assert_eq!(receive_all(&mut server, 40_000, 40_000), message);
    assert_eq!(pieces(&mut server, &message[..20_000]), [16_384, 3616]);
}

#[test]
fn long_requests_and_replies_use_the_mailbox_area_alone() {
    let (mut client, mut server) = pair::<SpinWait>(131_072);
    for iteration in 0..if cfg!(miri) { 1 } else { 20 } {
        // The longest that fits, and ends that are a piece, a part of one, and short enough for the mailbox slot.
        let size = [32_768, 131_072, 31_000, 17_000, 16_385][iteration % 5];
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let request = receive_all(&mut server, size, 600);
                assert_eq!(request, content(iteration, size));
                send_all(&mut server, &request);
            });
            send_all(&mut client, &content(iteration, size));
            assert_eq!(receive_all(&mut client, size, usize::MAX / 2), content(iteration, size));
        });
    }
    assert_eq!([client.outgoing.bulk, server.outgoing.bulk], [0, 0]);
}

#[test]
fn a_mailbox_area_that_is_half_read_is_not_written() {
    let (mut client, mut server) = pair::<SpinWait>(131_072);
    send_all(&mut client, &content(0, 32_768));
    assert_eq!(receive_all(&mut server, 32_767, usize::MAX / 2), content(0, 32_768)[..32_767]);
    assert!(!client.holds_token && !server.holds_token);
    send_all(&mut server, &content(1, 20_000));
    assert_eq!(server.outgoing.bulk, 20_032, "the reply went through the mailbox area");
    assert_eq!(receive_all(&mut server, 1, 1), content(0, 32_768)[32_767..]);
    assert!(server.holds_token);
    assert_eq!(receive_all(&mut client, 20_000, 20_000), content(1, 20_000));
}

#[test]
fn what_an_endpoint_sends_meanwhile_does_not_move_the_mailbox_area() {
    let (mut client, mut server) = pair::<SpinWait>(131_072);
    // The first piece of a message of three, and no more for now.
    assert_eq!(client.send(&content(0, 40_000)), Ok(16_384));
    assert_eq!(receive_all(&mut server, 16_384, 16_384), content(0, 40_000)[..16_384]);
    send_all(&mut server, b"meanwhile");
    assert_eq!(receive_all(&mut client, 9, 9), b"meanwhile");
    assert!(client.holds_token && !server.holds_token);
    send_all(&mut client, &content(0, 40_000)[16_384..]);
    assert_eq!(receive_all(&mut server, 23_616, 23_616), content(0, 40_000)[16_384..]);
    assert!(!client.holds_token && server.holds_token);
}

#[test]
fn less_than_was_reserved_in_the_mailbox_slot_or_area_is_found_where_it_lies() {
    let (mut client, mut server) = pair::<SpinWait>(131_072);
    for reserved in [8000, 16_384, 20_000] {
        client.reserve(reserved).unwrap()[..3].copy_from_slice(b"abc");
        client.commit(3).unwrap();
        assert_eq!(receive_all(&mut server, 3, 3), b"abc", "{reserved}");
        // In the mailbox area the rest is expected, and the token goes with it.
        assert_eq!(client.holds_token, reserved > MAILBOX_BYTES);
        if client.holds_token {
            send_all(&mut client, b"rest");
            assert_eq!(receive_all(&mut server, 4, 4), b"rest");
        }
        send_all(&mut server, b"reply");
        assert_eq!(receive_all(&mut client, 5, 5), b"reply");
    }
}

#[test]
fn a_mailbox_slot_that_is_half_read_is_not_written() {
    let (mut client, mut server) = pair::<SpinWait>(256);
    send_all(&mut client, b"question");
    assert_eq!(receive_all(&mut server, 4, 4), b"ques");
    send_all(&mut server, b"answer");
    assert_eq!(server.outgoing.slots, 1, "the reply went through the mailbox slot");
    assert_eq!(receive_all(&mut server, 4, 4), b"tion");
    assert_eq!(receive_all(&mut client, 6, 6), b"answer");
}

#[test]
fn messages_of_both_endpoints_with_equal_sequence_numbers_are_distinguished() {
    let (mut client, mut server) = pair::<SpinWait>(256);
    // The client's first message is in the mailbox slot. Neither endpoint may take one's first message for the
    // other's.
    send_all(&mut client, b"n1");
    send_all(&mut server, b"f1");
    assert_eq!(receive_all(&mut client, 2, 2), b"f1");
    assert_eq!(receive_all(&mut server, 2, 2), b"n1");
}

#[test]
fn a_piece_that_is_half_read_is_not_freed() {
    let (mut client, mut server) = pair::<SpinWait>(256);
    std::thread::scope(|threads| {
        // More than the ring holds: the client stays blocked until the server reads on.
        let sender = threads.spawn(move || {
            send_all(&mut client, &content(1, 600));
            client
        });
        assert_eq!(receive_all(&mut server, 5, 5), content(1, 600)[..5]);
        // As the server does before it waits for room. The cursor must not cover what it has not read.
        server.free_bulk_piece();
        server.publish_cursor();
        assert_eq!(receive_all(&mut server, 595, 10), content(1, 600)[5..]);
        sender.join().unwrap();
    });
}

/// Sends messages of `sizes` one way in order, written and read in place, in parts of at most `step_bytes` that the
/// consumer releases `release_bytes` at a time.
fn stream_in_place<W: WaitStrategy + Default + Send>(
    sizes: &[usize],
    step_bytes: usize,
    release_bytes: usize,
) {
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
    let sizes = [1, 8, 55, 56, 57, 64, 112, 113, 200, 256, 257, 1000, MAILBOX_BYTES, 8193, 10_000];
    let sizes: Vec<usize> = sizes.into_iter().cycle().take(if cfg!(miri) { 16 } else { 160 }).collect();
    stream_in_place::<SpinWait>(&sizes, usize::MAX, usize::MAX);
    stream_in_place::<SpinWait>(&sizes, 100, 7);
    if !cfg!(miri) {
        stream_in_place::<FutexWait>(&sizes, usize::MAX, 7);
    }
}

#[test]
fn in_place_and_copied_messages_mix() {
    let (mut client, mut server) = pair::<SpinWait>(256);
    server.incoming.dirties = false;
    for size in [1, 57, 200, 64, 3] {
        client.reserve(size).unwrap()[0] = 5;
        client.commit(1).unwrap();
        assert_eq!(receive_all(&mut server, 1, 1), [5]);
        // The server holds the token: this goes through the bulk area and, the end of it, through a slot.
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
fn a_token_that_comes_after_a_slot_was_reserved_is_passed_on() {
    let (mut client, mut server) = pair::<SpinWait>(256);
    server.reserve(3).unwrap().copy_from_slice(b"abc");
    send_all(&mut client, b"move");
    assert_eq!(receive_all(&mut server, 4, 4), b"move");
    server.commit(3).unwrap();
    assert_eq!(receive_all(&mut client, 3, 3), b"abc");
    assert_eq!([client.holds_token, server.holds_token], [true, false]);
}

#[test]
fn more_than_was_reserved_or_peeked_is_neither_committed_nor_released() {
    let (mut client, mut server) = pair::<SpinWait>(256);
    assert_eq!(client.commit(1), Err(Errno::INVAL), "nothing was reserved");
    for size in [3, 200, 2000, 20_000] {
        let reserved = client.reserve(size).unwrap().len();
        assert_eq!([client.commit(0), client.commit(reserved + 1)], [Err(Errno::INVAL); 2]);
        send_all(&mut client, b"else");
        assert_eq!(client.commit(1), Err(Errno::INVAL), "a reservation outlived another send");
        assert_eq!([server.release(1), server.release(0)], [Err(Errno::INVAL); 2]);
        let peeked = server.peek(100).unwrap().len();
        assert_eq!([server.release(0), server.release(peeked + 1)], [Err(Errno::INVAL); 2]);
        server.release(peeked).unwrap();
        assert_eq!(server.release(1), Err(Errno::INVAL));
    }
}

#[test]
fn what_was_sent_before_closing_arrives_and_then_the_close() {
    for client_closes in [true, false] {
        let (mut client, mut server) = pair::<SpinWait>(256);
        let (mut closing, mut left) = if client_closes { (client, server) } else { (server, client) };
        send_all(&mut closing, b"last words");
        drop(closing);
        assert_eq!(receive_all(&mut left, 10, 10), b"last words");
        assert_eq!(left.receive(&mut [0]), Err(Errno::PIPE));
        assert_eq!(left.receive(&mut [0]), Err(Errno::PIPE));
        (client, server) = pair::<SpinWait>(256);
        drop((client, server));
    }
}

#[test]
fn a_full_ring_whose_consumer_has_closed_refuses() {
    let (mut client, server) = pair::<SpinWait>(256);
    drop(server);
    let refused = (0..1000).find_map(|_| client.send(&[1]).err());
    assert_eq!(refused, Some(Errno::PIPE));
    let (mut client, server) = pair::<SpinWait>(256);
    drop(server);
    let refused = (0..1000).find_map(|_| client.send(&[1; 2000]).err());
    assert_eq!(refused, Some(Errno::PIPE));
}

#[test]
fn empty_buffers_send_and_receive_nothing() {
    let (mut client, mut server) = pair::<SpinWait>(256);
    assert_eq!(client.send(&[]), Ok(0));
    assert_eq!(server.receive(&mut []), Ok(0));
    send_all(&mut client, &[1]);
    assert_eq!(server.receive(&mut []), Ok(0));
    assert_eq!(receive_all(&mut server, 1, 1), [1]);
}

#[test]
fn a_side_is_claimed_once_and_only_with_one_way_of_waiting() {
    let heap = Heap::new(geometry(256).memory_bytes());
    let _client = claim::<SpinWait>(&heap, geometry(256), MemorySide::Client).unwrap();
    assert!(claim::<SpinWait>(&heap, geometry(256), MemorySide::Client).is_none());
    assert!(claim::<FutexWait>(&heap, geometry(256), MemorySide::Server).is_none());
}

/// Values that a hostile peer may put into the words that this endpoint reads.
#[test]
fn lengths_and_cursors_that_no_endpoint_writes_are_refused() {
    let hostile = [8193, 8200, LENGTH];
    for length in hostile {
        for at_mailbox in [true, false] {
            let (client, mut server) = pair::<SpinWait>(256);
            let at = if at_mailbox { MAILBOX } else { client.outgoing.lane.slots };
            // SAFETY: slots and the mailbox slot are inside.
            unsafe { client.memory.word(at) }.store(client.outgoing.header | length, Ordering::Release);
            assert_eq!(server.receive(&mut [0; 4096]), Err(Errno::BADMSG), "{length} at {at}");
        }
    }
    for length in [57, 63, 64, 8192] {
        let (client, mut server) = pair::<SpinWait>(256);
        // SAFETY: slots are inside.
        unsafe { client.memory.word(client.outgoing.lane.slots) }
            .store(client.outgoing.header | length, Ordering::Release);
        assert_eq!(server.receive(&mut [0; 4096]), Err(Errno::BADMSG), "{length}");
    }
    for length in [0, 65, 256, 257, u64::MAX] {
        let (client, mut server) = pair::<SpinWait>(256);
        // SAFETY: slots and their second words are inside.
        unsafe {
            client.memory.word(client.outgoing.lane.slots + HEADER_BYTES).store(length, Ordering::Relaxed);
            client.memory.word(client.outgoing.lane.slots).store(client.outgoing.header, Ordering::Release);
        }
        assert_eq!(server.receive(&mut [0; 4096]), Err(Errno::BADMSG), "{length} in the bulk area");
    }
    for (length, holds_token) in [(0, false), (65, false), (256, false), (1 << 62, false), (64, true)] {
        let (client, mut server) = pair::<SpinWait>(256);
        server.holds_token = holds_token;
        // SAFETY: slots and their second words are inside.
        unsafe {
            let second = client.memory.word(client.outgoing.lane.slots + HEADER_BYTES);
            second.store(length | IN_MAILBOX_AREA, Ordering::Relaxed);
            client.memory.word(client.outgoing.lane.slots).store(client.outgoing.header, Ordering::Release);
        }
        assert_eq!(server.receive(&mut [0; 4096]), Err(Errno::BADMSG), "{length} in the mailbox area");
    }
    for cursor in [u64::MAX, 100, 1 << 63] {
        let (mut client, server) = pair::<SpinWait>(256);
        // SAFETY: the cursor is inside.
        unsafe { server.memory.word(server.incoming.lane.consumer_cursor) }.store(cursor, Ordering::Release);
        let refused = (0..1000).find_map(|_| client.send(&[1]).err());
        assert_eq!(refused, Some(Errno::BADMSG), "{cursor}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 48 }, ..ProptestConfig::default() })]

    /// Slow: two threads pass bytes in many ways, each spinning.
    #[test]
    fn any_sizes_pass_any_ring_in_order(
        sizes in proptest::collection::vec(
            prop_oneof![1..70_usize, 1..300_usize, 1..3000_usize],
            1..(if cfg!(miri) { 6 } else { 60 }),
        ),
        bulk_exponent in 8..13_u32,
        step_bytes in prop_oneof![1..100_usize, Just(1 << 20)],
    ) {
        stream::<SpinWait>(1 << bulk_exponent, &sizes, step_bytes);
        if !cfg!(miri) {
            stream::<FutexWait>(1 << bulk_exponent, &sizes, step_bytes);
        }
    }
}

#[cfg(not(miri))]
mod mapped_memory {
    use super::*;
    use rustix::thread::{Pid, gettid};
    use std::time::Duration;

    fn endpoints<W: WaitStrategy + Default>(geometry: RingGeometry) -> (RingEndpoint<W>, RingEndpoint<W>) {
        let (memory, fd) = SharedMemory::create("test", geometry.memory_bytes()).unwrap();
        let client = RingEndpoint::claim(memory, geometry, MemorySide::Client, W::default()).unwrap();
        let memory = SharedMemory::open(&fd, geometry.memory_bytes()).unwrap();
        (client, RingEndpoint::claim(memory, geometry, MemorySide::Server, W::default()).unwrap())
    }

    fn pass<W: WaitStrategy + Default + Send>(geometry: RingGeometry, sizes: &[usize], step_bytes: usize) {
        let (mut client, mut server) = endpoints::<W>(geometry);
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
                let (mut bytes, mut received) = (vec![0; *size], 0);
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
            pass::<SpinWait>(RingGeometry::with_bulk(capacity), &sizes, step_bytes);
            pass::<FutexWait>(RingGeometry::with_bulk(capacity), &sizes, step_bytes);
        }
    }

    #[test]
    fn memory_of_another_size_is_refused() {
        let (memory, _fd) = SharedMemory::create("test", 8192).unwrap();
        assert!(
            RingEndpoint::claim(memory, RingGeometry::with_bulk(4096), MemorySide::Client, SpinWait).is_err()
        );
    }

    /// How often the thread has slept since it began.
    fn voluntary_switches(tid: Pid) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        count.trim().parse().unwrap()
    }

    #[test]
    fn an_endpoint_sleeps_until_it_is_woken_and_no_clock_wakes_it() {
        let (mut client, mut server) = endpoints::<FutexWait>(RingGeometry::with_bulk(4096));
        let (say_tid, tid) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            let consumer = threads.spawn(move || {
                say_tid.send(gettid()).unwrap();
                server.receive(&mut [0]).unwrap();
            });
            let tid = tid.recv().unwrap();
            // What the thread waits for on its way (memory, an emulator's locks) is not the endpoint's sleep: once it sleeps
            // for good, two looks see the same count, and so does a third much later.
            let asleep = (0..200).find_map(|_| {
                let before = voluntary_switches(tid);
                std::thread::sleep(Duration::from_millis(100));
                (before > 0 && voluntary_switches(tid) == before).then_some(before)
            });
            std::thread::sleep(Duration::from_millis(550));
            let later = voluntary_switches(tid);
            client.send(&[1]).unwrap();
            consumer.join().unwrap();
            assert_eq!(asleep, Some(later), "the number of sleeps, once it slept for good and 550 ms later");
        });
    }

    #[test]
    fn a_sleeping_consumer_is_woken_when_the_peer_closes() {
        let (client, mut server) = endpoints::<FutexWait>(RingGeometry::with_bulk(4096));
        std::thread::scope(|threads| {
            let consumer = threads.spawn(move || server.receive(&mut [0]));
            std::thread::sleep(Duration::from_millis(20));
            drop(client);
            assert_eq!(consumer.join().unwrap(), Err(Errno::PIPE));
        });
    }
}
