//! Two pipes, one for each direction, which receive duplicates of what is in a pipe that only the sender has
//! (tee(2)).
//!
//! The sender puts its pages into its own pipe by vmsplice(2), so that no copy adds to what is measured. tee(2)
//! duplicates the references into the pipe that the receiver reads, and splice(2) moves the originals to /dev/null.
//! Compared with `pipe-vmsplice` this adds the duplication and the removal of the original. `zero_copy` says when a
//! page may be written again.

use crate::contract::{ACCESS, Mechanism};
use crate::mechanisms::pipe::Pipe;
use crate::support::pipes::{CAPACITY, LIMITS};
use crate::support::zero_copy::{PAGE_BYTES, PageTransfer, drain, transfer_all};
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
pub(crate) struct Tee {
    /// Empty between calls.
    from_pool: OwnedFd,
    original: OwnedFd,
    nowhere: OwnedFd,
}

impl PageTransfer for Tee {
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
        // Remove what was duplicated: the next tee begins at the front of the pipe again.
        transfer_all(0..count, |left| {
            let duplicated = tee(&self.original, output, left.len(), SpliceFlags::empty())?;
            drain(&self.original, &self.nowhere, duplicated)?;
            Ok(duplicated)
        })?;
        Ok(count)
    }
}
