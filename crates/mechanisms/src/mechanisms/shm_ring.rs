//! A pair of rings in shared memory, one for each direction: the fastest way between two processes.
//!
//! The ring itself is `sys::ring`, because its copies are unsafe. This file has its parameters, and how its endpoints
//! connect.

use crate::contract::{ACCESS, Endpoint, InPlace, Mechanism, Ticket, TrialContext};
use crate::support::backing::{MEMORY, MemoryRequest, Pending};
use crate::support::cards::UNPOLLED_STREAM;
use crate::support::sleeper::{SPINS, Sleeper, WAIT};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Size};
use sys::ring::{FutexWait, RingEndpoint, RingGeometry, SpinWait, WaitStrategy};
use sys::shared_memory::SharedMemory;
use sys::side::MemorySide;
use sys::{Errno, Failure};

/// Rings over `sys::shared_memory`.
#[derive(Debug)]
pub(crate) struct ShmRing;

/// An endpoint of `sys::ring`, by how it waits. The match in every call takes a branch that never changes.
#[derive(Debug)]
enum Waiting {
    SpinWait(RingEndpoint<SpinWait>),
    FutexWait(RingEndpoint<FutexWait>),
    Other(RingEndpoint<Sleeper>),
}

/// Makes the same call of whichever endpoint it is.
macro_rules! endpoint {
    ($ring:ident, $endpoint:ident => $call:expr) => {
        match &mut $ring.waiting {
            Waiting::SpinWait($endpoint) => $call,
            Waiting::FutexWait($endpoint) => $call,
            Waiting::Other($endpoint) => $call,
        }
    };
}

/// One endpoint of the pair.
#[derive(Debug)]
pub(crate) struct ShmRingEndpoint {
    waiting: Waiting,
    in_place: InPlace,
    settings: Vec<Setting>,
}

impl Mechanism for ShmRing {
    const CARD: Card = Card {
        name: "shm-ring",
        summary: "rings in shared memory, one for each direction",
        params: &[
            Param {
                name: "capacity",
                summary: "bytes of long messages that each direction holds; rounded up to a power of two from 4K to 1G",
                domain: Domain::Size,
                default: Some("256K"),
            },
            MEMORY,
            WAIT,
            SPINS,
            ACCESS,
        ],
        limits: "any message size: a larger message goes in pieces; memory=huge as vm.nr_hugepages allows, \
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
        ..UNPOLLED_STREAM
    };
    type Bound = (ShmRingEndpoint, Pending);
    type End = ShmRingEndpoint;

    fn probe(params: &Params) -> Support {
        match Sleeper::probe(params, &Self::CARD) {
            Support::Yes { .. } => memory(params).probe(),
            no => no,
        }
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let mut ticket = Ticket::default();
        let (memory, pending) = memory(trial.params).bind(trial, &mut ticket)?;
        let sleeper = Sleeper::bind(trial, &Self::CARD, &mut ticket)?;
        Ok(((ShmRingEndpoint::new(memory, trial.params, MemorySide::Client, sleeper)?, pending), ticket))
    }

    fn accept((endpoint, pending): Self::Bound) -> Result<ShmRingEndpoint, Failure> {
        pending.wait_for_server()?;
        Ok(endpoint)
    }

    fn connect(trial: &TrialContext<'_>, mut ticket: Ticket) -> Result<ShmRingEndpoint, Failure> {
        let memory = memory(trial.params).connect(trial, &mut ticket)?;
        let sleeper = Sleeper::connect(trial, &Self::CARD, &mut ticket)?;
        ShmRingEndpoint::new(memory, trial.params, MemorySide::Server, sleeper)
    }
}

fn memory(params: &Params) -> MemoryRequest<'_> {
    let kind = params.text(&ShmRing::CARD, MEMORY.name);
    MemoryRequest { kind, name: ShmRing::CARD.name, len_bytes: geometry(params).memory_bytes() }
}

fn geometry(params: &Params) -> RingGeometry {
    // The card has a default, so that there is always a size.
    RingGeometry::with_bulk(params.size(&ShmRing::CARD, "capacity").map_or(0, Size::as_usize))
}

impl ShmRingEndpoint {
    fn new(
        memory: SharedMemory,
        params: &Params,
        side: MemorySide,
        sleeper: Sleeper,
    ) -> Result<Self, Failure> {
        let geometry = geometry(params);
        let in_place = InPlace::from_params(params, &ShmRing::CARD);
        let waiting = match params.text(&ShmRing::CARD, WAIT.name) {
            Some("spin") => Waiting::SpinWait(claim(memory, geometry, side, SpinWait, in_place)?),
            Some("futex") => Waiting::FutexWait(claim(memory, geometry, side, FutexWait, in_place)?),
            _ => Waiting::Other(claim(memory, geometry, side, sleeper, in_place)?),
        };
        Ok(Self { waiting, in_place, settings: settings(params, geometry) })
    }
}

fn claim<W: WaitStrategy>(
    memory: SharedMemory,
    geometry: RingGeometry,
    side: MemorySide,
    wait: W,
    in_place: InPlace,
) -> Result<RingEndpoint<W>, Failure> {
    let endpoint = RingEndpoint::claim(memory, geometry, side, wait)?;
    Ok(if in_place.incoming && !in_place.touched { endpoint.without_dirtying() } else { endpoint })
}

fn settings(params: &Params, geometry: RingGeometry) -> Vec<Setting> {
    let asked = params.size(&ShmRing::CARD, "capacity");
    let got = Size(geometry.bulk_bytes() as u64);
    let fixed = |name: &str, got: String| Setting {
        name: name.to_owned(),
        asked: None,
        got,
        clamped: false,
        usual: None,
    };
    vec![
        Setting {
            name: "ring capacity".to_owned(),
            asked: asked.map(|size| size.to_string()),
            got: got.to_string(),
            clamped: asked.is_some_and(|size| size != got),
            usual: None,
        },
        fixed("ring slots", geometry.slots().to_string()),
        fixed("ring piece", Size(geometry.piece_bytes() as u64).to_string()),
    ]
}

impl Endpoint for ShmRingEndpoint {
    const IN_PLACE: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        endpoint!(self, endpoint => endpoint.send(bytes))
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        endpoint!(self, endpoint => endpoint.receive(into))
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn in_place(&self) -> InPlace {
        self.in_place
    }

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        endpoint!(self, endpoint => endpoint.reserve(most_bytes))
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        endpoint!(self, endpoint => endpoint.commit(bytes))
    }

    #[inline(always)]
    fn peek(&mut self, most_bytes: usize) -> Result<&[u8], Errno> {
        endpoint!(self, endpoint => endpoint.peek(most_bytes))
    }

    #[inline(always)]
    fn release(&mut self, bytes: usize) -> Result<(), Errno> {
        endpoint!(self, endpoint => endpoint.release(bytes))
    }
}
