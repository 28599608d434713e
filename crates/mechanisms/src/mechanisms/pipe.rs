//! Two pipes, one for each direction.

use crate::contract::Mechanism;
use crate::support::cards::OF_PIPE;
use crate::support::cards::STREAM;
use crate::support::cold::MESSAGE_MEMORY;
use crate::support::descriptor::Fds;
use crate::support::pair::Pair;
use crate::support::pipes::{CAPACITY, LIMITS, pipe_pair};
use crate::support::probe::support_of;
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use sys::Failure;

/// pipe(2).
#[derive(Debug)]
pub(crate) struct Pipe;

impl Pair for Pipe {
    const CARD: Card = Card {
        name: "pipe",
        summary: "anonymous pipes, one for each direction",
        params: &[CAPACITY, WAIT, MESSAGE_MEMORY],
        limits: LIMITS,
        semantics: OF_PIPE,
        man: &["pipe(2)", "pipe(7)"],
        ..STREAM
    };

    fn probe(params: &Params) -> Support {
        support_of(Self::open(params))
    }

    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        pipe_pair(params, &<Self as Mechanism>::CARD)
    }
}
