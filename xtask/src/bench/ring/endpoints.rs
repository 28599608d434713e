//! The endpoints that `bench ring` measures: the ring, its floor, and two other rings. What they do in a slice is in `loops`.
//!
//! All of them wait awake, and both endpoints of a pair are threads of one process, because rtrb has no other way. The
//! ring maps its memory once for each endpoint, as two processes would; iceoryx2 does the same. Each ring holds as
//! many messages as the others.

use super::loops::{Messenger, Outcome, Runs, Traffic};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{BackpressureStrategy, LogLevel, NodeBuilder, ServiceName, ipc, set_log_level};
use std::ops::Range;
use std::sync::atomic::Ordering;
use sys::Errno;
use sys::ring::{RingEndpoint, RingGeometry, SpinWait};
use sys::shared_memory::SharedMemory;
use sys::shared_slots::{SlotEndpoint, SlotGeometry};
use sys::side::MemorySide;

/// What makes an endpoint in the thread that will use it.
pub(super) type Maker = Box<dyn FnOnce() -> Outcome<Box<dyn Runs>> + Send>;

/// The two endpoints of a pair, the client's first.
pub(super) type Pair = [Maker; 2];

/// How many bytes each ring holds, and how many messages of the smallest sizes.
const CAPACITY_BYTES: usize = 256 << 10;
const MOST_MESSAGES: usize = 1024;

/// How many messages of `size_bytes` every ring holds at once, in each direction.
pub(super) fn capacity(size_bytes: usize) -> usize {
    (CAPACITY_BYTES / size_bytes).min(MOST_MESSAGES)
}

// ---- messages that are copied ----

/// A ring that copies whole messages in and out.
trait Copies {
    fn send(&mut self, bytes: &[u8]) -> Outcome<()>;
    fn receive(&mut self, into: &mut [u8]) -> Outcome<()>;
}

/// An endpoint with private memory for its messages.
struct Copied<R> {
    ring: R,
    memory: Vec<u8>,
    outgoing: Range<usize>,
    incoming: Range<usize>,
}

impl<R: Copies> Copied<R> {
    /// Messages lie where the endpoints of ipcmark have them: on a page if they are as large, else on a cache line.
    fn new(ring: R, size_bytes: usize) -> Self {
        let align = if size_bytes < 4096 { 64 } else { 4096 };
        let memory = vec![0xa5; align + size_bytes.next_multiple_of(align) + size_bytes];
        let start = memory.as_ptr().align_offset(align);
        let second = start + size_bytes.next_multiple_of(align);
        Self { ring, memory, outgoing: start..start + size_bytes, incoming: second..second + size_bytes }
    }
}

impl<R: Copies> Messenger for Copied<R> {
    #[inline(always)]
    fn send(&mut self, number: u64) -> Outcome<()> {
        let message = &mut self.memory[self.outgoing.clone()];
        message[..8].copy_from_slice(&number.to_le_bytes());
        self.ring.send(message)
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> Outcome<()> {
        let message = &mut self.memory[self.incoming.clone()];
        self.ring.receive(message)?;
        verify(message, number)
    }
}

#[inline(always)]
fn verify(message: &[u8], number: u64) -> Outcome<()> {
    if message[..8] == number.to_le_bytes() { Ok(()) } else { Err(wrong(number)) }
}

#[cold]
fn wrong(number: u64) -> String {
    format!("what came is not message {number}")
}

#[cold]
fn refused(errno: Errno) -> String {
    format!("the ring: {errno}")
}

// ---- the ring ----

impl Copies for RingEndpoint<SpinWait> {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += RingEndpoint::send(self, &bytes[sent..]).map_err(refused)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Outcome<()> {
        let mut received = 0;
        while received < into.len() {
            received += RingEndpoint::receive(self, &mut into[received..]).map_err(refused)?;
        }
        Ok(())
    }
}

/// An endpoint that makes every byte of its messages in private memory, and reads every byte after it was copied there: what
/// [`InPlace`] does, with the copies.
struct MadeAndRead<R>(Copied<R>);

impl<R: Copies> Messenger for MadeAndRead<R> {
    #[inline(always)]
    fn send(&mut self, number: u64) -> Outcome<()> {
        let Self(copied) = self;
        copied.memory[copied.outgoing.clone()].fill(number as u8);
        copied.send(number)
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> Outcome<()> {
        let Self(copied) = self;
        copied.receive(number)?;
        let filled = &copied.memory[copied.incoming.clone()][8..];
        if sys::touch::are_all(filled, number as u8) { Ok(()) } else { Err(wrong(number)) }
    }
}

/// An endpoint that fills its messages where they travel, and reads every byte where it came.
struct InPlace {
    ring: RingEndpoint<SpinWait>,
    size_bytes: usize,
}

impl Messenger for InPlace {
    #[inline(always)]
    fn send(&mut self, number: u64) -> Outcome<()> {
        let mut sent = 0;
        while sent < self.size_bytes {
            let part = self.ring.reserve(self.size_bytes - sent).map_err(refused)?;
            part.fill(number as u8);
            if sent == 0 {
                part[..8].copy_from_slice(&number.to_le_bytes());
            }
            let bytes = part.len();
            self.ring.commit(bytes).map_err(refused)?;
            sent += bytes;
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> Outcome<()> {
        let mut received = 0;
        while received < self.size_bytes {
            let part = self.ring.peek(self.size_bytes - received).map_err(refused)?;
            let filled = if received == 0 {
                verify(part, number)?;
                &part[8..]
            } else {
                part
            };
            if !sys::touch::are_all(filled, number as u8) {
                return Err(wrong(number));
            }
            let bytes = part.len();
            self.ring.release(bytes).map_err(refused)?;
            received += bytes;
        }
        Ok(())
    }
}

/// The ring, with messages that are copied.
pub(super) fn ring(size_bytes: usize) -> Outcome<Pair> {
    over_ring(move |ring| Copied::new(ring, size_bytes))
}

/// The ring, with messages that are made, copied and read.
pub(super) fn ring_made_and_read(size_bytes: usize) -> Outcome<Pair> {
    over_ring(move |ring| MadeAndRead(Copied::new(ring, size_bytes)))
}

/// The ring, with messages in place.
pub(super) fn ring_in_place(size_bytes: usize) -> Outcome<Pair> {
    over_ring(move |ring| InPlace { ring, size_bytes })
}

fn over_ring<E: Messenger + 'static>(
    endpoint: impl Fn(RingEndpoint<SpinWait>) -> E + Clone + Send + 'static,
) -> Outcome<Pair> {
    let geometry = RingGeometry::with_bulk(CAPACITY_BYTES);
    let (client, fd) = SharedMemory::create("bench-ring", geometry.memory_bytes()).map_err(text)?;
    let server = SharedMemory::open(&fd, geometry.memory_bytes()).map_err(text)?;
    Ok([(client, MemorySide::Client), (server, MemorySide::Server)].map(|(memory, side)| {
        let endpoint = endpoint.clone();
        let maker: Maker = Box::new(move || {
            let ring = RingEndpoint::claim(memory, geometry, side, SpinWait).map_err(text)?;
            Ok(Box::new(endpoint(ring)))
        });
        maker
    }))
}

fn text(failure: impl std::fmt::Display) -> String {
    failure.to_string()
}

// ---- its floor ----

/// A cache line in shared memory that both endpoints write in turn.
struct CacheLine {
    memory: SharedMemory,
    hand_overs: u64,
}

impl Messenger for CacheLine {
    #[inline(always)]
    fn send(&mut self, _: u64) -> Outcome<()> {
        self.hand_overs += 1;
        self.memory.u64_at(0).store(self.hand_overs, Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, _: u64) -> Outcome<()> {
        self.hand_overs += 1;
        while self.memory.u64_at(0).load(Ordering::Acquire) != self.hand_overs {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// The least for a round trip of eight bytes.
pub(super) fn cache_line() -> Outcome<Pair> {
    let (client, fd) = SharedMemory::create("bench-cache-line", 4096).map_err(text)?;
    let server = SharedMemory::open(&fd, 4096).map_err(text)?;
    Ok([client, server].map(|memory| {
        let maker: Maker = Box::new(move || Ok(Box::new(CacheLine { memory, hand_overs: 0 })));
        maker
    }))
}

/// Slots that both endpoints share, read and written where they are.
struct SharedCopy {
    slots: SlotEndpoint,
    size_bytes: usize,
}

impl Messenger for SharedCopy {
    #[inline(always)]
    fn send(&mut self, number: u64) -> Outcome<()> {
        let message = self.slots.reserve(self.size_bytes).map_err(refused)?;
        message.fill(number as u8);
        message[..8].copy_from_slice(&number.to_le_bytes());
        self.slots.commit(self.size_bytes).map_err(refused)
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> Outcome<()> {
        let message = self.slots.peek(self.size_bytes).map_err(refused)?;
        verify(message, number)?;
        if !sys::touch::are_all(&message[8..], number as u8) {
            return Err(wrong(number));
        }
        self.slots.release();
        Ok(())
    }
}

/// Slots into which messages are copied, and out of which: with its two copies and one hand-over it is the least that any ring does
/// whose messages are copied whole.
impl Copies for SlotEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.reserve(bytes.len()).map_err(refused)?.copy_from_slice(bytes);
        self.commit(bytes.len()).map_err(refused)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Outcome<()> {
        into.copy_from_slice(self.peek(into.len()).map_err(refused)?);
        self.release();
        Ok(())
    }
}

/// The least for larger messages: what ipcmark has as the floor `shared-copy`.
pub(super) fn shared_copy(traffic: Traffic, size_bytes: usize) -> Outcome<Pair> {
    over_slots(traffic, size_bytes, move |slots| SharedCopy { slots, size_bytes })
}

/// The least for larger messages that are copied in and out.
pub(super) fn bare_copies(traffic: Traffic, size_bytes: usize) -> Outcome<Pair> {
    over_slots(traffic, size_bytes, move |slots| Copied::new(slots, size_bytes))
}

fn over_slots<E: Messenger + 'static>(
    traffic: Traffic,
    size_bytes: usize,
    endpoint: impl Fn(SlotEndpoint) -> E + Clone + Send + 'static,
) -> Outcome<Pair> {
    let geometry = match traffic {
        Traffic::RoundTrip => SlotGeometry::alternating(size_bytes),
        Traffic::Stream => SlotGeometry::of_stream(size_bytes),
    };
    let (client, fd) = SharedMemory::create("bench-slots", geometry.memory_bytes()).map_err(text)?;
    let server = SharedMemory::open(&fd, geometry.memory_bytes()).map_err(text)?;
    Ok([(client, MemorySide::Client), (server, MemorySide::Server)].map(|(memory, side)| {
        let endpoint = endpoint.clone();
        let maker: Maker = Box::new(move || {
            let slots = SlotEndpoint::claim(memory, geometry, side).map_err(text)?;
            Ok(Box::new(endpoint(slots)))
        });
        maker
    }))
}

// ---- rtrb ----

/// A message that is aligned to a cache line. Where rtrb's slots lie is else left to the allocator, and copies of such
/// messages then take up to four times as long.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct OnLine<const N: usize>([u8; N]);

/// What rtrb carries.
pub(super) trait RtrbMessage: Copy + Send + 'static {
    const ZERO: Self;
    fn bytes(&mut self) -> &mut [u8];
}

impl<const N: usize> RtrbMessage for [u8; N] {
    const ZERO: Self = [0; N];
    #[inline(always)]
    fn bytes(&mut self) -> &mut [u8] {
        self
    }
}

impl<const N: usize> RtrbMessage for OnLine<N> {
    const ZERO: Self = Self([0; N]);
    #[inline(always)]
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Two queues of whole messages, one for each direction, and private memory for a message of each.
struct Rtrb<T> {
    producer: rtrb::Producer<T>,
    consumer: rtrb::Consumer<T>,
    outgoing: Box<[T; 1]>,
    incoming: Box<[T; 1]>,
}

impl<T: RtrbMessage> Messenger for Rtrb<T> {
    #[inline(always)]
    fn send(&mut self, number: u64) -> Outcome<()> {
        self.outgoing[0].bytes()[..8].copy_from_slice(&number.to_le_bytes());
        // One copy, from the private memory to the slot. (`push` takes the message by value, which may cost another.)
        while self.producer.push_entire_slice(&*self.outgoing).is_err() {
            std::hint::spin_loop();
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, number: u64) -> Outcome<()> {
        while self.consumer.pop_entire_slice(&mut *self.incoming).is_err() {
            std::hint::spin_loop();
        }
        verify(self.incoming[0].bytes(), number)
    }
}

/// rtrb, with a slot for each message.
pub(super) fn rtrb<T: RtrbMessage>() -> Pair {
    let (requests, server) = rtrb::RingBuffer::<T>::new(capacity(size_of::<T>()));
    let (replies, client) = rtrb::RingBuffer::<T>::new(capacity(size_of::<T>()));
    [(requests, client), (replies, server)].map(|(producer, consumer)| {
        let maker: Maker = Box::new(move || {
            let (outgoing, incoming) = (Box::new([T::ZERO]), Box::new([T::ZERO]));
            Ok(Box::new(Rtrb { producer, consumer, outgoing, incoming }))
        });
        maker
    })
}

// ---- iceoryx2 ----

/// A publisher and a subscriber, each of a service of its own.
struct Iceoryx {
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
}

impl Copies for Iceoryx {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        let sample = self.publisher.loan_slice_uninit(bytes.len()).map_err(text)?;
        sample.write_from_slice(bytes).send().map(drop).map_err(text)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Outcome<()> {
        loop {
            if let Some(sample) = self.subscriber.receive().map_err(text)? {
                into.copy_from_slice(sample.payload());
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }
}

/// iceoryx2, publish and subscribe between what could be two processes.
pub(super) fn iceoryx2(size_bytes: usize) -> Pair {
    set_log_level(LogLevel::Error);
    let names = ["requests", "replies"]
        .map(|direction| format!("ipcmark/bench/{}/{size_bytes}/{direction}", std::process::id()));
    let [requests, replies] = names;
    [(requests.clone(), replies.clone()), (replies, requests)].map(|(outgoing, incoming)| {
        let maker: Maker = Box::new(move || {
            let ring = Iceoryx::open(&outgoing, &incoming, size_bytes).map_err(text)?;
            Ok(Box::new(Copied::new(ring, size_bytes)))
        });
        maker
    })
}

impl Iceoryx {
    fn open(outgoing: &str, incoming: &str, size_bytes: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let service = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
            Ok(node
                .service_builder(&ServiceName::new(name)?)
                .publish_subscribe::<[u8]>()
                // A full ring makes its producer wait, as in the others.
                .enable_safe_overflow(false)
                .subscriber_max_buffer_size(capacity(size_bytes))
                .history_size(0)
                .max_publishers(1)
                .max_subscribers(1)
                .open_or_create()?)
        };
        let publisher = service(outgoing)?
            .publisher_builder()
            .initial_max_slice_len(size_bytes)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()?;
        let subscriber = service(incoming)?.subscriber_builder().create()?;
        Ok(Self { publisher, subscriber })
    }
}
