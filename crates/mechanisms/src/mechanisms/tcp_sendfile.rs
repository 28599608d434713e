//! One TCP connection over loopback. The sender's messages lie in a file in memory, and sendfile(2) sends them.
//!
//! The socket's queue refers to the pages of the file. `zero_copy` says when they may be written again.

use crate::contract::ACCESS;
use crate::mechanisms::tcp::Tcp;
use crate::support::connection::NODELAY;
use crate::support::inet_stream::InetStream;
use crate::support::zero_copy::{CONNECTION_LIMITS, FIXED_SNDBUF, PageTransfer, TUNING};
use model::Params;
use model::card::Card;
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::page_pool::PagePool;
use sys::{Errno, Failure};

/// sendfile(2) from a memfd that the sender has mapped.
#[derive(Debug)]
pub(crate) struct TcpSendfile;

impl PageTransfer for TcpSendfile {
    const CARD: Card = Card {
        name: "tcp-sendfile",
        summary: "TCP over loopback: pages of a mapped memfd go to the socket by sendfile",
        params: &[NODELAY, FIXED_SNDBUF, TUNING, ACCESS],
        limits: CONNECTION_LIMITS,
        man: &["sendfile(2)", "memfd_create(2)", "tcp(7)"],
        ..Tcp::CARD
    };

    fn open(_: &Params) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline(always)]
    fn commit(
        &mut self,
        pool: &mut PagePool,
        range: Range<usize>,
        output: BorrowedFd<'_>,
    ) -> Result<usize, Errno> {
        pool.sendfile(range, output)
    }
}
