//! Two pipes, one for each direction, whose slots refer to pages of a file in memory (splice(2)). The receiver
//! copies.
//!
//! Each piece begins on a page, because each page takes a slot, even if only a part of it is used. `zero_copy` says
//! when a page may be written again.

use crate::contract::{ACCESS, Mechanism};
use crate::mechanisms::pipe::Pipe;
use crate::support::pipes::{CAPACITY, LIMITS};
use crate::support::zero_copy::{PAGE_BYTES, PageTransfer};
use model::Params;
use model::card::Card;
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::page_pool::PagePool;
use sys::{Errno, Failure};

/// splice(2) from a memfd that the sender has mapped.
#[derive(Debug)]
pub(crate) struct PipeSplice;

impl PageTransfer for PipeSplice {
    const CARD: Card = Card {
        name: "pipe-splice",
        summary: "pipes that refer to pages of a mapped memfd, one for each direction",
        params: &[CAPACITY, ACCESS],
        limits: LIMITS,
        man: &["splice(2)", "memfd_create(2)", "pipe(7)"],
        ..<Pipe as Mechanism>::CARD
    };
    const ALIGN_BYTES: usize = PAGE_BYTES;

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
        pool.splice(range, output)
    }
}
