//! One TCP connection over loopback whose sender's pages go into the socket's queue by way of a pipe.
//!
//! vmsplice(2) puts references to the pages into a pipe of the sender's own, and splice(2) moves these references to
//! the socket. The receiver copies, as always. When the pages may be written again is said in `zero_copy`.

use crate::connection::NODELAY;
use crate::contract::ACCESS;
use crate::inet_stream::InetStream;
use crate::tcp::Tcp;
use crate::zero_copy::{FIXED_SNDBUF, Way, drain};
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
pub struct TcpVmsplice {
    /// Empty between calls.
    from_pool: OwnedFd,
    to_socket: OwnedFd,
}

/// What limits the rows that keep the rule over a connection.
pub(crate) const LIMITS: &str = "any message size, in parts of 64K; SO_SNDBUF up to net.core.wmem_max, half of it up to net.core.rmem_max; a pool of at most 64M";

impl Way for TcpVmsplice {
    const CARD: Card = Card {
        name: "tcp-vmsplice",
        summary: "TCP over loopback: pages go by vmsplice to a pipe, and to the socket",
        params: &[NODELAY, FIXED_SNDBUF, ACCESS],
        limits: LIMITS,
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
