//! One TCP connection over loopback whose sender's messages lie in a file in memory, which sendfile(2) sends.
//!
//! The socket's queue refers to the file's pages. When they may be written again is said in `zero_copy`.

use crate::connection::NODELAY;
use crate::contract::ACCESS;
use crate::inet_stream::InetStream;
use crate::tcp::Tcp;
use crate::tcp_vmsplice::LIMITS;
use crate::zero_copy::{FIXED_SNDBUF, Way};
use model::Params;
use model::card::Card;
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::page_pool::PagePool;
use sys::{Errno, Failure};

/// sendfile(2) from a memfd that the sender has mapped.
#[derive(Debug)]
pub struct TcpSendfile;

impl Way for TcpSendfile {
    const CARD: Card = Card {
        name: "tcp-sendfile",
        summary: "TCP over loopback: pages of a mapped memfd go to the socket by sendfile",
        params: &[NODELAY, FIXED_SNDBUF, ACCESS],
        limits: LIMITS,
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
