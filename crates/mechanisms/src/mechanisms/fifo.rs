//! Two FIFOs, one for each direction. They have names until both endpoints have opened them.

use crate::contract::{Mechanism, Ticket, TrialContext};
use crate::support::cards::OF_PIPE;
use crate::support::cards::STREAM;
use crate::support::descriptor::{DescriptorEndpoint, Fds};
use crate::support::names::probe_names;
use crate::support::pipes::{CAPACITY, LIMITS, set_capacity};
use crate::support::wait::WAIT;
use model::Params;
use model::card::{ByName, Card, Reach, Support};
use model::record::Setting;
use model::semantics::{Lifetime, Namespace, Naming, OtherUsers, Semantics};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open, unlink};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use sys::{Failure, OrFail};

/// fifo(7).
#[derive(Debug)]
pub(crate) struct Fifo;

/// The client's descriptor for reading, the parameters, and the names of both FIFOs.
#[derive(Debug)]
pub(crate) struct Bound {
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
    fn in_trial(trial: &Path) -> Self {
        Self { to_server: trial.with_extension("to-server"), to_client: trial.with_extension("to-client") }
    }
}

impl Mechanism for Fifo {
    const CARD: Card = Card {
        name: "fifo",
        summary: "named pipes, one for each direction",
        reach: Reach::Host,
        by_name: ByName::Always,
        params: &[CAPACITY, WAIT],
        limits: LIMITS,
        semantics: Semantics {
            naming: Naming::Path,
            other_users: OtherUsers::ByPermission,
            namespace: Namespace::Mount,
            lifetime: Lifetime::NameStays,
            ..OF_PIPE
        },
        man: &["fifo(7)", "mkfifo(3)", "pipe(7)"],
        ..STREAM
    };
    type Bound = Bound;
    type End = DescriptorEndpoint;

    fn probe(_: &Params) -> Support {
        // Does not make a FIFO: it would remain if this process were killed.
        probe_names()
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Bound, Ticket), Failure> {
        let path = trial.path();
        let names = Names::in_trial(&path);
        make(&names.to_server)?;
        make(&names.to_client)?;
        let input = open_reader(&names.to_client)?;
        let address = path.into_os_string().into_encoded_bytes();
        Ok((Bound { input, names, params: trial.params.clone() }, Ticket { address, fds: Vec::new() }))
    }

    fn accept(bound: Bound) -> Result<DescriptorEndpoint, Failure> {
        let Bound { input, names, params } = bound;
        // Sleeps until the server reads. By then the server can write too, because it opens for writing first.
        let output = open_writer(&names.to_server)?;
        for name in [&names.to_server, &names.to_client] {
            unlink(name).or_fail("unlink", name.display())?;
        }
        let settings = vec![set_capacity(&[&input, &output], &params, &Self::CARD)?];
        endpoint(input, output, &params, settings)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<DescriptorEndpoint, Failure> {
        let names = Names::in_trial(Path::new(std::ffi::OsStr::from_bytes(&ticket.address)));
        let output = open_writer(&names.to_client)?;
        let input = open_reader(&names.to_server)?;
        endpoint(input, output, trial.params, Vec::new())
    }
}

fn endpoint(
    input: OwnedFd,
    output: OwnedFd,
    params: &Params,
    settings: Vec<Setting>,
) -> Result<DescriptorEndpoint, Failure> {
    DescriptorEndpoint::new(Fds { input, output }, params, &Fifo::CARD, settings)
}

fn make(name: &Path) -> Result<(), Failure> {
    mknodat(CWD, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).or_fail("mkfifo", name.display())
}

/// Opens `name` for reading without waiting for a writer (fifo(7)). [`DescriptorEndpoint`] sets later how it waits.
fn open_reader(name: &Path) -> Result<OwnedFd, Failure> {
    open(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        .or_fail("open", name.display())
}

/// Opens `name` for writing. Sleeps until there is a reader.
fn open_writer(name: &Path) -> Result<OwnedFd, Failure> {
    open(name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).or_fail("open", name.display())
}
