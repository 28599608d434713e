//! The contract that every row of the table keeps, and that the conformance tests check.

use model::card::{Card, Support};
use model::record::Setting;
use model::{Params, Workload};
use rustix::fd::OwnedFd;
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};
use sys::name::Name;
use sys::{Errno, Failure, OrFail};

/// What the endpoints are going to carry; a mechanism may size its kernel objects by it.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The size of a message, in bytes.
    pub size_bytes: usize,
    /// What the endpoints do.
    pub workload: Workload,
}

/// What one launch gives its mechanism.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The parameters, checked against the card.
    pub params: &'a Params,
    /// What will be carried.
    pub shape: Shape,
    /// The directory of the run, for names in the file system. It is removed with all in it on every way out.
    pub directory: &'a Path,
    /// The number of this launch in the run.
    pub number: u64,
}

impl Launch<'_> {
    /// A path in the run's directory whose name no other launch begins its names with.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(self.number.to_string())
    }

    /// Notes in the run's directory that `name` is about to be made, so that whoever clears up after this process
    /// removes it too.
    pub(crate) fn register(&self, name: Name) -> Result<Registered, Failure> {
        let mut note = self.path().into_os_string();
        note.push(format!(".{}.{NOTE}", name.to_string().replace([' ', '/'], "-")));
        let note = PathBuf::from(note);
        std::fs::write(&note, name.to_string()).or_fail("write", note.display())?;
        Ok(Registered { name, note })
    }
}

/// How the file names of notes end.
const NOTE: &str = "name";

/// A name that is removed when this is dropped.
#[derive(Debug)]
pub struct Registered {
    name: Name,
    note: PathBuf,
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.name.remove().is_ok() {
            // If it stays, whoever clears up finds nothing to remove.
            let _ = std::fs::remove_file(&self.note);
        }
    }
}

/// What the notes in `directory` name.
pub fn noted(directory: &Path) -> Vec<Name> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let notes =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == NOTE));
    notes.filter_map(|note| std::fs::read_to_string(note).ok()?.parse().ok()).collect()
}

/// Whether a run can have a directory, without which nothing may have a name that outlives its maker.
pub(crate) fn names_have_a_place() -> Support {
    let directory = std::env::temp_dir();
    let writable = access(&directory, Access::WRITE_OK | Access::EXEC_OK);
    match writable.or_fail("access", directory.display()) {
        Ok(()) => Support::UNLIMITED,
        Err(failure) => Support::No {
            reason: format!("{} {}: {}", failure.operation, failure.object, failure.answer),
            remedy: "set TMPDIR to a directory that you may write".to_owned(),
        },
    }
}

/// What near hands to far so that far can connect: address bytes and descriptors.
///
/// It crosses a Unix socket, so that anonymous, named and network mechanisms look alike.
#[derive(Debug, Default)]
pub struct Ticket {
    /// At most 4 KiB, in a form of the mechanism's own.
    pub address: Vec<u8>,
    /// At most 8 descriptors.
    pub fds: Vec<OwnedFd>,
}

impl Ticket {
    /// Exactly `N` descriptors, or the failure of a ticket that lost some on its way.
    pub(crate) fn descriptors<const N: usize>(self, name: &str) -> Result<[OwnedFd; N], Failure> {
        self.fds.try_into().map_err(|fds: Vec<OwnedFd>| {
            let answer = format!("{} descriptors arrived instead of {N}", fds.len());
            Failure::new("take the ticket of", name, answer, "raise 'ulimit -n'")
        })
    }
}

/// A way to move bytes, or a wake-up, between two endpoints.
///
/// Near calls [`bind`](Self::bind), sends the ticket to far, and calls [`accept`](Self::accept);
/// far calls [`connect`](Self::connect) with the ticket. `accept` and `connect` may wait for each
/// other. When either end is dropped, or its process dies, the other's calls must not wait forever
/// where the kernel can tell; where it cannot (spinning on shared memory), the coordinator's
/// deadline ends them.
pub trait Mechanism {
    /// What it declares about itself.
    const CARD: Card;
    /// What near holds between `bind` and `accept`.
    type Bound;
    /// A connected end.
    type End: Endpoint;

    /// Whether it works on this host with `params`, by trying, and its largest message.
    fn probe(params: &Params) -> Support;

    /// Makes the kernel objects, and the ticket that lets far connect to them. Near's side.
    fn bind(launch: &Launch<'_>) -> Result<(Self::Bound, Ticket), Failure>;

    /// Near's end, once far holds the ticket. Names in the file system are unlinked here.
    fn accept(bound: Self::Bound) -> Result<Self::End, Failure>;

    /// Far's end.
    fn connect(launch: &Launch<'_>, ticket: Ticket) -> Result<Self::End, Failure>;
}

/// A connected end. Calls happen inside the measured loop: no allocation, no clock, no `dyn`, and
/// `#[inline(always)]`, so that a turn is one piece of code.
pub trait Endpoint {
    /// Hands over a first part of `bytes`, which is not empty; waits as the end's `wait` says.
    ///
    /// Returns how many bytes were taken, at least 1. Where the card's framing is `message`, all
    /// are. A message of the workload is over when all its bytes were taken: an end that gathers
    /// bytes must hand them over by then.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Receives at least 1 byte into `into`, which is not empty; waits likewise.
    ///
    /// Returns how many bytes arrived. Where the card's framing is `message`, one whole message.
    /// When the peer has closed, `Errno::PIPE`.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno>;

    /// What was asked of the kernel for this end and what it gave. Read before and after the turns, never within.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }
}

/// One primitive that needs no peer, timed alone.
pub trait Operation: Sized {
    /// What it declares about itself.
    const CARD: Card;

    /// Whether it works on this host with `params`, by trying; unless it is said here, everywhere.
    fn probe(_params: &Params) -> Support {
        Support::UNLIMITED
    }

    /// Makes ready what [`call`](Self::call) needs.
    fn prepare(launch: &Launch<'_>) -> Result<Self, Failure>;

    /// Does it once. Its result must be kept alive, so that the compiler keeps the work.
    fn call(&mut self) -> Result<(), Errno>;
}
