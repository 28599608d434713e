//! One TCP connection over loopback. The sender's pages go into the socket's queue through a pipe.
//!
//! vmsplice(2) puts references to the pages into a pipe that only the sender has, and splice(2) moves these
//! references to the socket. The receiver copies, as always. `zero_copy` says when the pages may be written again.

use crate::contract::ACCESS;
use crate::mechanisms::tcp::Tcp;
use crate::support::connection::NODELAY;
use crate::support::inet_stream::InetStream;
use crate::support::zero_copy::{CONNECTION_LIMITS, FIXED_SNDBUF, PageTransfer, TUNING, drain};
use model::Params;
use model::card::Card;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ops::Range;
use sys::page_pool::{PagePool, VmspliceMode};
use sys::{Errno, Failure, OrFail};

/// vmsplice(2) and splice(2) to a socket.
#[derive(Debug)]
pub(crate) struct TcpVmsplice {
    /// Empty between calls.
    from_pool: OwnedFd,
    to_socket: OwnedFd,
}

impl PageTransfer for TcpVmsplice {
    const CARD: Card = Card {
        name: "tcp-vmsplice",
        summary: "TCP over loopback: pages go by vmsplice to a pipe, and to the socket",
        params: &[NODELAY, FIXED_SNDBUF, TUNING, ACCESS],
        limits: CONNECTION_LIMITS,
        man: &["vmsplice(2)", "splice(2)", "tcp(7)"],
        ..Tcp::CARD
    };

    fn open(_: &Params) -> Result<Self, Failure> {
        let (to_socket, from_pool) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", Self::CARD.name)?;
        Ok(Self { from_pool, to_socket })
    }

    #[inline(always)]
    fn commit(
        &mut self,
        pool: &mut PagePool,
        range: Range<usize>,
        output: BorrowedFd<'_>,
    ) -> Result<usize, Errno> {
        let count = retry_on_intr(|| pool.vmsplice(range.clone(), &self.from_pool, VmspliceMode::Loan))?;
        drain(&self.to_socket, output, count)?;
        Ok(count)
    }
}
