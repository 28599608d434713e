//! Two pipes, one for each direction.

use crate::contract::Mechanism;
use crate::descriptor::{Fds, Pair, WAIT, supported};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Workload};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use sys::{Failure, OrFail};

/// pipe(2).
#[derive(Debug)]
pub struct Pipe;

/// The parameter by which pipes and FIFOs are sized.
pub(crate) const CAPACITY: Param = Param {
    name: "capacity",
    summary: "bytes that a pipe holds (F_SETPIPE_SZ), or match for the message's size; the kernel rounds up to a power of two of pages",
    domain: Domain::SizeOrMatch,
    default: None,
};

/// What limits pipes and FIFOs.
pub(crate) const LIMITS: &str = "any message size; capacity up to /proc/sys/fs/pipe-max-size, and /proc/sys/fs/pipe-user-pages-soft in all";

impl Pair for Pipe {
    const CARD: Card = Card {
        name: "pipe",
        kind: CardKind::Mechanism,
        summary: "anonymous pipes, one for each direction",
        framing: Framing::Stream,
        reach: Reach::Related,
        payload: Payload::Bytes,
        fds: false,
        hangup: true,
        polled: true,
        one_endpoint: false,
        empty: false,
        params: &[CAPACITY, WAIT],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: LIMITS,
        man: &["pipe(2)", "pipe(7)"],
    };

    fn probe(params: &Params) -> Support {
        supported(Self::open(params))
    }

    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        pipe_pair(params, &<Self as Mechanism>::CARD)
    }
}

/// A pipe for each direction: client's ends, server's, and their capacity.
pub(crate) fn pipe_pair(params: &Params, card: &Card) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
    let (server_input, client_output) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", card.name)?;
    let (client_input, server_output) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", card.name)?;
    let capacity = set_capacity(&[&client_output, &client_input], params, card)?;
    let client = Fds { input: client_input, output: client_output };
    Ok((client, Fds { input: server_input, output: server_output }, vec![capacity]))
}

/// Sets the capacity of `pipes`, if one is asked for (fcntl(2), `F_SETPIPE_SZ`), and says what they have.
pub(crate) fn set_capacity(pipes: &[&OwnedFd], params: &Params, card: &Card) -> Result<Setting, Failure> {
    let asked = params.size(card, CAPACITY.name);
    let mut got = 0;
    for pipe in pipes {
        if let Some(size) = asked {
            fcntl_setpipe_size(pipe, size.as_usize())
                .or_fail("fcntl(F_SETPIPE_SZ)", format!("{}:capacity={size}", card.name))?;
        }
        got = fcntl_getpipe_size(pipe).or_fail("fcntl(F_GETPIPE_SZ)", card.name)?;
    }
    Ok(Setting {
        name: "pipe capacity".to_owned(),
        asked: asked.map(|size| size.to_string()),
        got: got.to_string(),
        clamped: asked.is_some_and(|size| size.as_usize() != got),
    })
}
