//! Two pipes, one for each direction, whose slots refer to the sender's pages (vmsplice(2)). The receiver copies.
//!
//! Each piece begins on a page, because each page takes a slot, even if only a part of it is used. `zero_copy` says
//! when a page may be written again. A gift is meant to be final. Here its page is reused, because the receiver reads
//! it, which copies; only a receiver that moves the page on by splice(2) would keep it.

use crate::contract::{ACCESS, Mechanism};
use crate::mechanisms::pipe::Pipe;
use crate::support::pipes::{CAPACITY, LIMITS};
use crate::support::zero_copy::{PAGE_BYTES, PageTransfer};
use model::card::Card;
use model::{Domain, Param, Params};
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::page_pool::{PagePool, VmspliceMode};
use sys::{Errno, Failure};

/// vmsplice(2), with or without `SPLICE_F_GIFT`.
#[derive(Debug)]
pub(crate) struct PipeVmsplice {
    gift: bool,
}

const GIFT: Param = Param {
    name: "gift",
    summary: "give whole pages to the kernel as a gift (SPLICE_F_GIFT)",
    domain: Domain::Choice(&["off", "on"]),
    default: Some("off"),
};

impl PageTransfer for PipeVmsplice {
    const CARD: Card = Card {
        name: "pipe-vmsplice",
        summary: "pipes that refer to the sender's pages, one for each direction",
        params: &[CAPACITY, GIFT, ACCESS],
        limits: LIMITS,
        man: &["vmsplice(2)", "pipe(7)"],
        ..<Pipe as Mechanism>::CARD
    };
    const ALIGN_BYTES: usize = PAGE_BYTES;

    fn open(params: &Params) -> Result<Self, Failure> {
        Ok(Self { gift: params.text(&Self::CARD, GIFT.name) == Some("on") })
    }

    /// Whole pages first, so that they can be gifts. The rest of a message cannot be one.
    #[inline(always)]
    fn part_bytes(&self, most_bytes: usize) -> usize {
        if self.gift && most_bytes > PAGE_BYTES { most_bytes - most_bytes % PAGE_BYTES } else { most_bytes }
    }

    #[inline(always)]
    fn commit(
        &mut self,
        pool: &mut PagePool,
        range: Range<usize>,
        output: BorrowedFd<'_>,
    ) -> Result<usize, Errno> {
        let whole = range.len().is_multiple_of(PAGE_BYTES);
        pool.vmsplice(range, output, if self.gift && whole { VmspliceMode::Gift } else { VmspliceMode::Loan })
    }
}
