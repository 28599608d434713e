//! Every interleaving of the protocol, over memory in which loom looks for races on every byte.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::atomic::{AtomicU32, AtomicU64, Ordering};
use super::layout::{APART_BYTES, CLAIMS, CLOSED, HEADER_BYTES, LINE_BYTES, Lane, MAILBOX, RingGeometry};
use super::memory::Memory;
use super::protocol::Engine;
use super::wait::{FutexWait, SpinWait, WaitStrategy};
use crate::Errno;
use crate::side::MemorySide;
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
    fn new(geometry: &RingGeometry) -> Self {
        let line = |at: usize| at / LINE_BYTES;
        let mut numbers = vec![line(CLAIMS), line(CLOSED), line(CLOSED + APART_BYTES)];
        // The mailbox slot: its header's line, and two for a message.
        numbers.extend((0..3).map(|at| line(MAILBOX) + at));
        numbers.extend(
            (0..geometry.mailbox_area_bytes() / LINE_BYTES).map(|at| line(geometry.mailbox_area_at()) + at),
        );
        for side in [MemorySide::Client, MemorySide::Server] {
            let lane = Lane::new(side, geometry);
            numbers.extend([lane.consumer_cursor, lane.consumer_asleep, lane.producer_asleep].map(line));
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
        &self.line(at).words[at % LINE_BYTES / HEADER_BYTES]
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

    unsafe fn dirty_lines(&self, at: usize, length_bytes: usize) {
        for line in (at.next_multiple_of(LINE_BYTES)..at + length_bytes).step_by(LINE_BYTES) {
            // SAFETY: loom checks it.
            unsafe { self.write(line, &[0]) };
        }
    }

    unsafe fn fetch_lines(&self, _: usize, _: usize) {}

    // As in the kernel, the comparison and falling asleep are one step under the lock that the waker takes. A lost
    // wake-up is a deadlock, which loom reports.
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

/// A few slots, a bulk area of two lines, pieces of one line. With more slots than pieces fit into the bulk area,
/// that is full first, so that its own cursor alone orders the producer after the consumer.
fn pair<W: Both, const SLOTS: usize>() -> (Tiny<W, SLOTS>, Tiny<W, SLOTS>) {
    pair_of_pieces::<W, SLOTS>(1)
}

/// A pair with pieces of `piece_lines` lines, two of which fill the bulk area, and two the mailbox area.
fn pair_of_pieces<W: Both, const SLOTS: usize>(piece_lines: usize) -> (Tiny<W, SLOTS>, Tiny<W, SLOTS>) {
    let piece_bytes = piece_lines * LINE_BYTES;
    let geometry = RingGeometry { slots: SLOTS, bulk_bytes: 2 * piece_bytes, piece_bytes };
    let cells = Cells::new(&geometry);
    let [client, server] = W::both();
    // SAFETY: the cells are new, and loom checks the rest.
    let claim = |side, wait| unsafe { Engine::claim(cells.clone(), geometry, side, wait) }.unwrap();
    (claim(MemorySide::Client, client), claim(MemorySide::Server, server))
}

/// How both endpoints of a pair wait.
trait Both: WaitStrategy + Sized + 'static {
    fn both() -> [Self; 2];
}

impl Both for SpinWait {
    fn both() -> [Self; 2] {
        [SpinWait; 2]
    }
}

impl Both for FutexWait {
    fn both() -> [Self; 2] {
        [FutexWait; 2]
    }
}

/// A count of wake-ups, which stay until they are taken, as in a semaphore.
type Count = Arc<(Mutex<u32>, Condvar)>;

/// An endpoint that sleeps on its own count, after one more poll.
struct Counting {
    own: Count,
    peers: Count,
}

impl WaitStrategy for Counting {
    const SLEEPS: bool = true;

    fn polls(&self) -> u32 {
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

fn send_all<W: WaitStrategy, const SLOTS: usize>(
    endpoint: &mut Tiny<W, SLOTS>,
    number: u8,
    len_bytes: usize,
) {
    let bytes = content(number, len_bytes);
    let mut sent = 0;
    while sent < bytes.len() {
        sent += endpoint.send(&bytes[sent..]).unwrap();
    }
}

fn receive_all<W: WaitStrategy, const SLOTS: usize>(
    endpoint: &mut Tiny<W, SLOTS>,
    number: u8,
    len_bytes: usize,
) {
    let mut into = vec![0; len_bytes];
    let mut received = 0;
    while received < len_bytes {
        received += endpoint.receive(&mut into[received..]).unwrap();
    }
    assert_eq!(into, content(number, len_bytes));
}

/// The client sends messages of `sizes`, the server receives them.
fn stream<W: Both, const SLOTS: usize>(sizes: &'static [usize]) {
    model(move || {
        let (mut client, mut server) = pair::<W, SLOTS>();
        let consumer = loom::thread::spawn(move || {
            for (number, size) in sizes.iter().enumerate() {
                receive_all(&mut server, number as u8, *size);
            }
            server
        });
        for (number, size) in sizes.iter().enumerate() {
            send_all(&mut client, number as u8, *size);
        }
        let server = consumer.join().unwrap();
        drop((client, server));
    });
}

/// The client sends a request of each of `sizes`, the server replies with as much.
fn round_trips<W: Both, const SLOTS: usize>(sizes: &'static [usize]) {
    round_trips_of_pieces::<W, SLOTS>(1, sizes);
}

/// As [`round_trips`], over a pair with pieces of `piece_lines` lines.
fn round_trips_of_pieces<W: Both, const SLOTS: usize>(piece_lines: usize, sizes: &'static [usize]) {
    model(move || {
        let (mut client, mut server) = pair_of_pieces::<W, SLOTS>(piece_lines);
        let replying = loom::thread::spawn(move || {
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
        drop((client, replying.join().unwrap()));
    });
}

/// Slow: loom tries every interleaving.
#[test]
fn of_slots_over_laps() {
    // The first goes through the mailbox slot; then two laps and a half.
    stream::<SpinWait, 2>(&[1, 2, 3, 56, 1, 2]);
}

/// Slow: loom tries every interleaving.
#[test]
fn of_bulk_over_laps() {
    // The rest of 64 bytes goes through slots.
    stream::<SpinWait, 8>(&[320]);
}

#[test]
fn mixes_slots_and_bulk() {
    stream::<SpinWait, 2>(&[1, 130, 1]);
}

#[test]
fn mailbox_slot_in_round_trips() {
    round_trips::<SpinWait, 2>(&[1, 2, 3]);
}

#[test]
fn mailbox_slot_of_two_lines() {
    round_trips::<SpinWait, 2>(&[1, 100]);
}

#[test]
fn mailbox_area_in_round_trips() {
    // Two pieces of two lines each, which fill it; then one piece, whose rest goes through the mailbox slot.
    round_trips_of_pieces::<SpinWait, 2>(2, &[256, 130]);
}

#[test]
fn wakes_sleepers_of_the_mailbox_area() {
    round_trips_of_pieces::<FutexWait, 2>(2, &[256]);
}

#[test]
fn passes_the_token_with_bulk() {
    round_trips::<SpinWait, 2>(&[130, 1]);
}

/// The client sends messages of `sizes`, the server receives them, both in place.
fn stream_in_place<const SLOTS: usize>(sizes: &'static [usize]) {
    model(move || {
        let (mut client, mut server) = pair::<SpinWait, SLOTS>();
        let consumer = loom::thread::spawn(move || {
            for (number, size) in sizes.iter().enumerate() {
                let mut into = vec![0; *size];
                let mut received = 0;
                while received < *size {
                    let (at, length_bytes) = server.peek_place().unwrap();
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
                let (at, length_bytes) = client.reserve_place(*size - sent).unwrap();
                // SAFETY: loom checks it.
                unsafe { client.memory.write(at, &bytes[sent..sent + length_bytes]) };
                client.commit(length_bytes).unwrap();
                sent += length_bytes;
            }
        }
        let server = consumer.join().unwrap();
        drop((client, server));
    });
}

#[test]
fn in_place_through_slots() {
    stream_in_place::<2>(&[1, 2, 3, 56, 1]);
}

/// Slow: loom tries every interleaving.
#[test]
fn in_place_through_bulk() {
    stream_in_place::<8>(&[320]);
}

#[test]
fn wakes_sleepers_of_slots() {
    stream::<FutexWait, 2>(&[1, 2, 3, 4]);
}

#[test]
fn wakes_sleepers_of_bulk() {
    stream::<FutexWait, 8>(&[256]);
}

#[test]
fn wakes_sleepers_in_round_trips() {
    round_trips::<FutexWait, 2>(&[1, 2]);
}

#[test]
fn wakes_who_counts_wake_ups() {
    stream::<Counting, 2>(&[1, 2, 3]);
}

#[test]
fn wakes_who_counts_wake_ups_in_round_trips() {
    round_trips::<Counting, 2>(&[1, 2]);
}

#[test]
fn that_closes_wakes_the_consumer() {
    closing_wakes::<FutexWait>();
}

#[test]
fn that_closes_wakes_who_counts_wake_ups() {
    closing_wakes::<Counting>();
}

fn closing_wakes<W: Both>() {
    model(|| {
        let (mut client, mut server) = pair::<W, 2>();
        let consumer = loom::thread::spawn(move || {
            receive_all(&mut server, 0, 1);
            assert_eq!(server.receive(&mut [0]), Err(Errno::PIPE));
        });
        send_all(&mut client, 0, 1);
        drop(client);
        consumer.join().unwrap();
    });
}
