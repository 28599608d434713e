//! A pair of rings in shared memory, one for each direction: the fastest way that two processes have.
//!
//! The ring itself is `sys::ring`, because its copies are unsafe. Here are its parameters and how its ends meet.

use crate::backing::{MEMORY, Memory, Pending};
use crate::contract::{ACCESS, Endpoint, InPlace, Mechanism, Ticket, Trial};
use crate::sleeper::{LOOKS, Sleeper, WAIT};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Size, Workload};
use sys::ring::{End, Futex, Geometry, Side, Spin, Wait};
use sys::shared_memory::SharedMemory;
use sys::{Errno, Failure};

/// Rings over `sys::shared_memory`.
#[derive(Debug)]
pub struct ShmRing;

/// One end, by how it waits. The match on every call is on a branch that never changes.
#[derive(Debug)]
enum Waiting {
    Spin(End<Spin>),
    Futex(End<Futex>),
    Other(End<Sleeper>),
}

/// The same call of whichever end it is.
macro_rules! end {
    ($ring:ident, $end:ident => $call:expr) => {
        match &mut $ring.waiting {
            Waiting::Spin($end) => $call,
            Waiting::Futex($end) => $call,
            Waiting::Other($end) => $call,
        }
    };
}

/// One end of the pair.
#[derive(Debug)]
pub struct ShmRingEnd {
    waiting: Waiting,
    in_place: InPlace,
    settings: Vec<Setting>,
}

impl Mechanism for ShmRing {
    const CARD: Card = Card {
        name: "shm-ring",
        kind: CardKind::Mechanism,
        summary: "rings in shared memory, one for each direction",
        framing: Framing::Stream,
        reach: Reach::Related,
        payload: Payload::Bytes,
        fds: false,
        hangup: true,
        polled: false,
        one_endpoint: false,
        empty: false,
        params: &[
            Param {
                name: "capacity",
                summary: "bytes of long messages that each direction holds; rounded up to a power of two from 4K to 1G",
                domain: Domain::Size,
                default: Some("256K"),
            },
            MEMORY,
            WAIT,
            LOOKS,
            ACCESS,
        ],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "any message size: what is larger than a piece goes in pieces; memory=huge as vm.nr_hugepages allows, \
                 memory=sysv as kernel.shmmax and kernel.shmall do",
        man: &[
            "memfd_create(2)",
            "shm_open(3)",
            "shmget(2)",
            "mmap(2)",
            "futex(2)",
            "eventfd(2)",
            "semop(2)",
            "sem_overview(7)",
            "pthread_cond_init(3)",
        ],
    };
    type Bound = (ShmRingEnd, Pending);
    type End = ShmRingEnd;

    fn probe(params: &Params) -> Support {
        match Sleeper::probe(params, &Self::CARD) {
            Support::Yes { .. } => memory(params).probe(),
            lacking => lacking,
        }
    }

    fn bind(trial: &Trial<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let mut ticket = Ticket::default();
        let (memory, pending) = memory(trial.params).bind(trial, &mut ticket)?;
        let sleeper = Sleeper::bind(trial, &Self::CARD, &mut ticket)?;
        Ok(((ShmRingEnd::new(memory, trial.params, Side::Client, sleeper)?, pending), ticket))
    }

    fn accept((end, pending): Self::Bound) -> Result<ShmRingEnd, Failure> {
        pending.server_has_it()?;
        Ok(end)
    }

    fn connect(trial: &Trial<'_>, mut ticket: Ticket) -> Result<ShmRingEnd, Failure> {
        let memory = memory(trial.params).connect(trial, &mut ticket)?;
        let sleeper = Sleeper::connect(trial, &Self::CARD, &mut ticket)?;
        ShmRingEnd::new(memory, trial.params, Side::Server, sleeper)
    }
}

fn memory(params: &Params) -> Memory<'_> {
    let kind = params.text(&ShmRing::CARD, MEMORY.name);
    Memory { kind, name: ShmRing::CARD.name, len_bytes: geometry(params).memory_bytes() }
}

fn geometry(params: &Params) -> Geometry {
    // The card has a default, so that there is always a size.
    Geometry::with_bulk(params.size(&ShmRing::CARD, "capacity").map_or(0, Size::as_usize))
}

impl ShmRingEnd {
    fn new(memory: SharedMemory, params: &Params, side: Side, sleeper: Sleeper) -> Result<Self, Failure> {
        let geometry = geometry(params);
        let in_place = InPlace::asked(params, &ShmRing::CARD);
        let waiting = match params.text(&ShmRing::CARD, WAIT.name) {
            Some("spin") => Waiting::Spin(claim(memory, geometry, side, Spin, in_place)?),
            Some("futex") => Waiting::Futex(claim(memory, geometry, side, Futex, in_place)?),
            _ => Waiting::Other(claim(memory, geometry, side, sleeper, in_place)?),
        };
        Ok(Self { waiting, in_place, settings: settings(params, geometry) })
    }
}

fn claim<W: Wait>(
    memory: SharedMemory,
    geometry: Geometry,
    side: Side,
    wait: W,
    in_place: InPlace,
) -> Result<End<W>, Failure> {
    let end = End::claim(memory, geometry, side, wait)?;
    Ok(if in_place.incoming && !in_place.touched { end.untouched() } else { end })
}

fn settings(params: &Params, geometry: Geometry) -> Vec<Setting> {
    let asked = params.size(&ShmRing::CARD, "capacity");
    let got = Size(geometry.bulk_bytes() as u64);
    let fixed = |name: &str, got: String| Setting { name: name.to_owned(), asked: None, got, clamped: false };
    vec![
        Setting {
            name: "ring capacity".to_owned(),
            asked: asked.map(|size| size.to_string()),
            got: got.to_string(),
            clamped: asked.is_some_and(|size| size != got),
        },
        fixed("ring slots", geometry.slots().to_string()),
        fixed("ring piece", Size(geometry.piece_bytes() as u64).to_string()),
    ]
}

impl Endpoint for ShmRingEnd {
    const IN_PLACE: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        end!(self, end => end.send(bytes))
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        end!(self, end => end.receive(into))
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn in_place(&self) -> InPlace {
        self.in_place
    }

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        end!(self, end => end.reserve(most_bytes))
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        end!(self, end => end.commit(bytes))
    }

    #[inline(always)]
    fn peek(&mut self, most_bytes: usize) -> Result<&[u8], Errno> {
        end!(self, end => end.peek(most_bytes))
    }

    #[inline(always)]
    fn release(&mut self, bytes: usize) -> Result<(), Errno> {
        end!(self, end => end.release(bytes))
    }
}
