//! Two pipes, one for each direction, written and read through io_uring.

use crate::descriptor::{Fds, Pair, supported};
use crate::pipe::{CAPACITY, pipe_pair};
use crate::uring::{BUFFERS, RECEIVE, SQPOLL};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Params, Workload};
use sys::Failure;

/// pipe(2) with `IORING_OP_WRITE` and `IORING_OP_READ`, io_uring_enter(2).
#[derive(Debug)]
pub struct PipeUring;

impl Pair for PipeUring {
    const CARD: Card = Card {
        name: "pipe-uring",
        kind: CardKind::Mechanism,
        summary: "anonymous pipes, written and read through io_uring",
        framing: Framing::Stream,
        reach: Reach::Related,
        payload: Payload::Bytes,
        fds: false,
        hangup: true,
        polled: false,
        one_endpoint: false,
        empty: false,
        params: &[RECEIVE, BUFFERS, SQPOLL, CAPACITY],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "any message size; capacity as for pipe; Linux 6.1, for multishot 6.7, and kernel.io_uring_disabled=0; rings and registered buffers count against RLIMIT_MEMLOCK",
        man: &["pipe(7)", "io_uring(7)", "io_uring_enter(2)"],
    };

    fn probe(params: &Params) -> Support {
        supported(Self::open(params))
    }

    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        pipe_pair(params, &Self::CARD)
    }
}
