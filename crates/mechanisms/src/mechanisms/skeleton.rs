//! The skeleton of a mechanism: copy this file, replace what it does, and keep what each function promises.
//!
//! It is no entry of the registry, so that no user sees it; the conformance suite runs over it all the same. It moves
//! bytes over a pair of Unix sockets, in the most direct way.
//!
//! To add the mechanism `foo`:
//!
//! 1. Copy this file to `mechanisms/foo.rs` and replace `Skeleton` and `skeleton`. The first lines of the file say what
//!    the mechanism is, and what it is not if a reader could expect it to be.
//! 2. Add `pub(crate) mod foo;` to `mechanisms/mod.rs`, and `mechanisms::foo::Foo,` to `registry.rs`.
//! 3. Run `IPCMARK_TEST_MECHANISMS=foo cargo test -p mechanisms --test conformance`, then `cargo xtask docs`.
//!
//! Most mechanisms need less than this file, because `support/` has the rest of it. If both endpoints are descriptors
//! that exist from the start, implement `support::pair::Pair` (see `pipe.rs`). If sockets listen and connect, implement
//! `support::connection::Connection` (see `unix_stream.rs`). If nothing but a wake-up is sent, implement
//! `support::wake::Waker` (see `posix_sem.rs`).

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::STREAM;
use crate::support::probe::support_of;
use crate::support::socket::{RCVBUF, SNDBUF, unix_pair};
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{read, retry_on_intr, write};
use rustix::net::SocketType;
use sys::{Errno, Failure};

/// The manual page that defines it: here unix(7).
#[derive(Debug)]
pub(crate) struct Skeleton;

impl Mechanism for Skeleton {
    /// Starts from the base card in `support/cards.rs` that is nearest, and says only what differs. Every field of the
    /// card is a promise that the conformance suite checks.
    const CARD: Card = Card {
        // The name on the command line and in results. Never change it once results exist.
        name: "skeleton",
        // Under 75 characters, without a full stop.
        summary: "Unix stream sockets, as the example of a mechanism",
        // What a user can set. A parameter is data: its name, values, default and one sentence.
        params: &[SNDBUF, RCVBUF],
        // The manual pages or documents that define the mechanism.
        man: &["unix(7)", "socketpair(2)"],
        ..STREAM
    };

    /// What the client keeps between `bind` and `accept`. If the client's endpoint is complete in `bind`, that endpoint.
    type Bound = SkeletonEndpoint;
    type End = SkeletonEndpoint;

    /// Tries the mechanism for real, because version numbers and configuration files do not tell. Leaves nothing
    /// behind, even if the process is killed meanwhile: make no names here.
    ///
    /// Returns a reason and a remedy if it does not work, and the largest message if there is a limit. The reason names
    /// the call that failed; `support_of` makes it from a `Failure`.
    fn probe(params: &Params) -> Support {
        support_of(unix_pair(SocketType::STREAM, params, &Self::CARD))
    }

    /// Runs in the client. Makes the kernel objects, and the ticket with which the server reaches them: descriptors, or
    /// the bytes of an address.
    ///
    /// A name outside of the file system must be registered first (`trial.register`), so that it is removed even if
    /// this process is killed. A file belongs in the directory of the run (`trial.path()`).
    fn bind(trial: &TrialContext<'_>) -> Result<(SkeletonEndpoint, Ticket), Failure> {
        let (client, server, settings) = unix_pair(SocketType::STREAM, trial.params, &Self::CARD)?;
        let endpoint = SkeletonEndpoint { socket: client, settings };
        Ok((endpoint, Ticket { address: Vec::new(), fds: vec![server] }))
    }

    /// Runs in the client after it has sent the ticket. Waits for the server if it must, and removes names that both
    /// endpoints no longer need.
    fn accept(bound: SkeletonEndpoint) -> Result<SkeletonEndpoint, Failure> {
        Ok(bound)
    }

    /// Runs in the server, with the ticket. Descriptors may have been lost on their way; `descriptors` reports that.
    fn connect(_: &TrialContext<'_>, ticket: Ticket) -> Result<SkeletonEndpoint, Failure> {
        let [socket] = ticket.descriptors(Self::CARD.name)?;
        Ok(SkeletonEndpoint { socket, settings: Vec::new() })
    }
}

/// One endpoint: what `send` and `receive` need, and nothing that they would have to look up.
#[derive(Debug)]
pub(crate) struct SkeletonEndpoint {
    socket: OwnedFd,
    settings: Vec<Setting>,
}

impl Endpoint for SkeletonEndpoint {
    /// Runs in the measured loop: it does not allocate, read a clock or use `dyn`. It does only what a good program
    /// would do with this mechanism.
    ///
    /// May take a part of the bytes, because this is a stream. A signal must not lose or repeat anything: calls that
    /// were interrupted are made again. A peer that is gone is `Errno::PIPE` or `Errno::CONNRESET`.
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        retry_on_intr(|| write(&self.socket, bytes))
    }

    /// Waits until there is something, and returns how many bytes there were. `Errno::PIPE` when the peer has closed.
    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match retry_on_intr(|| read(&self.socket, &mut *into)) {
            Ok(0) | Err(Errno::CONNRESET) => Err(Errno::PIPE),
            received => received,
        }
    }

    /// What was asked of the kernel and what it gave: a value that the kernel changed must be visible in the record.
    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    /// What poll(2) waits for. Required here, because the base card says `polled`.
    fn input(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}
