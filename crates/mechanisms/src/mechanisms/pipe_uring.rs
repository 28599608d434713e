//! Two pipes, one for each direction, written and read through io_uring.

use crate::support::cards::OF_PIPE;
use crate::support::cards::UNPOLLED_STREAM;
use crate::support::descriptor::Fds;
use crate::support::pair::Pair;
use crate::support::pipes::{CAPACITY, pipe_pair};
use crate::support::probe::support_of;
use crate::support::uring::{BUFFERS, RECEIVE, SQPOLL};
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use sys::Failure;

/// pipe(2) with `IORING_OP_WRITE` and `IORING_OP_READ`, io_uring_enter(2).
#[derive(Debug)]
pub(crate) struct PipeUring;

impl Pair for PipeUring {
    const CARD: Card = Card {
        name: "pipe-uring",
        summary: "anonymous pipes, written and read through io_uring",
        params: &[RECEIVE, BUFFERS, SQPOLL, CAPACITY],
        limits: "any message size; capacity as for pipe; Linux 6.1, for multishot 6.7, and kernel.io_uring_disabled=0; rings and registered buffers count against RLIMIT_MEMLOCK",
        semantics: OF_PIPE,
        man: &["pipe(7)", "io_uring(7)", "io_uring_enter(2)"],
        ..UNPOLLED_STREAM
    };

    fn probe(params: &Params) -> Support {
        support_of(Self::open(params))
    }

    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        pipe_pair(params, &Self::CARD)
    }
}
