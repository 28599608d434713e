//! Two FIFOs, one for each direction, known to both ends by name until both have opened them.

use crate::contract::{Mechanism, Ticket, Trial};
use crate::descriptor::{DescriptorEnd, Fds, WAIT};
use crate::names::names_have_a_place;
use crate::pipe::{CAPACITY, LIMITS, set_capacity};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Params, Workload};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open, unlink};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use sys::{Failure, OrFail};

/// fifo(7).
#[derive(Debug)]
pub struct Fifo;

/// Client's reading end, the FIFO that it will write, and both names.
#[derive(Debug)]
pub struct Bound {
    input: OwnedFd,
    names: Names,
    params: Params,
}

#[derive(Debug)]
struct Names {
    to_server: PathBuf,
    to_client: PathBuf,
}

impl Names {
    fn of(trial: &Path) -> Self {
        Self { to_server: trial.with_extension("to-server"), to_client: trial.with_extension("to-client") }
    }
}

impl Mechanism for Fifo {
    const CARD: Card = Card {
        name: "fifo",
        kind: CardKind::Mechanism,
        summary: "named pipes, one for each direction",
        framing: Framing::Stream,
        reach: Reach::Host,
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
        man: &["fifo(7)", "mkfifo(3)", "pipe(7)"],
    };
    type Bound = Bound;
    type End = DescriptorEnd;

    fn probe(_: &Params) -> Support {
        // A FIFO made on trial would be left behind by a process that is killed before it is unlinked.
        names_have_a_place()
    }

    fn bind(trial: &Trial<'_>) -> Result<(Bound, Ticket), Failure> {
        let path = trial.path();
        let names = Names::of(&path);
        make(&names.to_server)?;
        make(&names.to_client)?;
        let input = open_reader(&names.to_client)?;
        let address = path.into_os_string().into_encoded_bytes();
        Ok((Bound { input, names, params: trial.params.clone() }, Ticket { address, fds: Vec::new() }))
    }

    fn accept(bound: Bound) -> Result<DescriptorEnd, Failure> {
        let Bound { input, names, params } = bound;
        // Sleeps until server reads; by then server writes too, for it opens its writing end first.
        let output = open_writer(&names.to_server)?;
        for name in [&names.to_server, &names.to_client] {
            unlink(name).or_fail("unlink", name.display())?;
        }
        let settings = vec![set_capacity(&[&input, &output], &params, &Self::CARD)?];
        end(input, output, &params, settings)
    }

    fn connect(trial: &Trial<'_>, ticket: Ticket) -> Result<DescriptorEnd, Failure> {
        let names = Names::of(Path::new(std::ffi::OsStr::from_bytes(&ticket.address)));
        let output = open_writer(&names.to_client)?;
        let input = open_reader(&names.to_server)?;
        end(input, output, trial.params, Vec::new())
    }
}

fn end(
    input: OwnedFd,
    output: OwnedFd,
    params: &Params,
    settings: Vec<Setting>,
) -> Result<DescriptorEnd, Failure> {
    DescriptorEnd::new(Fds { input, output }, params, &Fifo::CARD, settings)
}

fn make(name: &Path) -> Result<(), Failure> {
    mknodat(CWD, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).or_fail("mkfifo", name.display())
}

/// Opens the reading end without waiting for a writer (fifo(7)); [`DescriptorEnd`] sets how it waits later.
fn open_reader(name: &Path) -> Result<OwnedFd, Failure> {
    open(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        .or_fail("open", name.display())
}

/// Opens the writing end, asleep until there is a reader.
fn open_writer(name: &Path) -> Result<OwnedFd, Failure> {
    open(name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).or_fail("open", name.display())
}
