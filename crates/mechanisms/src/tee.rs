//! Two pipes, one for each direction, that receive duplicates of what is in a pipe of the sender's own (tee(2)).
//!
//! The sender hands its pages to its own pipe by vmsplice(2), so that no copy is in the way of what is measured, has
//! tee(2) duplicate the references to them into the pipe that the receiver reads, and moves its own to /dev/null.
//! What it costs more than `pipe-vmsplice` is the duplicate and getting rid of the original. When a page may be
//! written again is said in `zero_copy`.

use crate::contract::{ACCESS, Mechanism};
use crate::pipe::{CAPACITY, LIMITS, Pipe};
use crate::zero_copy::{PAGE_BYTES, Way, drain, in_parts};
use model::Params;
use model::card::Card;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};
use std::ops::Range;
use sys::page_pool::{PagePool, VmspliceMode};
use sys::{Errno, Failure, OrFail};

/// vmsplice(2), tee(2) and splice(2) to /dev/null.
#[derive(Debug)]
pub struct Tee {
    /// Empty between calls.
    from_pool: OwnedFd,
    original: OwnedFd,
    nowhere: OwnedFd,
}

impl Way for Tee {
    const CARD: Card = Card {
        name: "tee",
        summary: "pipes that receive duplicates, by tee, of what is in the sender's own",
        params: &[CAPACITY, ACCESS],
        limits: LIMITS,
        man: &["tee(2)", "vmsplice(2)", "splice(2)", "pipe(7)"],
        ..<Pipe as Mechanism>::CARD
    };
    const ALIGN_BYTES: usize = PAGE_BYTES;

    fn open(_: &Params) -> Result<Self, Failure> {
        let (original, from_pool) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", Self::CARD.name)?;
        let nowhere = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .or_fail("open", "/dev/null")?;
        Ok(Self { from_pool, original, nowhere })
    }

    #[inline(always)]
    fn commit(
        &mut self,
        pool: &mut PagePool,
        range: Range<usize>,
        output: BorrowedFd<'_>,
    ) -> Result<usize, Errno> {
        let count = retry_on_intr(|| pool.vmsplice(range.clone(), &self.from_pool, VmspliceMode::Loan))?;
        // What was duplicated must leave before the next tee, which begins at the front again.
        in_parts(0..count, |left| {
            let duplicated = tee(&self.original, output, left.len(), SpliceFlags::empty())?;
            drain(&self.original, &self.nowhere, duplicated)?;
            Ok(duplicated)
        })?;
        Ok(count)
    }
}
