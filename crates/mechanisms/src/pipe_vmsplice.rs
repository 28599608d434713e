//! Two pipes, one for each direction, whose slots refer to the sender's pages (vmsplice(2)); the receiver copies.
//!
//! Each part begins on a page, because a page, or what is used of it, takes a slot. When a page may be written again
//! is said in `zero_copy`. A gift is meant for ever; here it comes back, because the receiver reads it, which copies,
//! instead of moving it on by splice(2), for which alone it matters.

use crate::contract::{ACCESS, Mechanism};
use crate::pipe::{CAPACITY, LIMITS, Pipe};
use crate::zero_copy::{PAGE_BYTES, Way};
use model::card::Card;
use model::{Domain, Param, Params};
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::page_pool::{PagePool, VmspliceMode};
use sys::{Errno, Failure};

/// vmsplice(2), with or without `SPLICE_F_GIFT`.
#[derive(Debug)]
pub struct PipeVmsplice {
    gift: bool,
}

const GIFT: Param = Param {
    name: "gift",
    summary: "say of whole pages that they are a gift to the kernel (SPLICE_F_GIFT)",
    domain: Domain::Choice(&["off", "on"]),
    default: Some("off"),
};

impl Way for PipeVmsplice {
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

    /// Whole pages first, so that they can be a gift; what is left of a message cannot.
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
