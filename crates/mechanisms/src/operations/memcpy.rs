//! A copy of n bytes, source and destination in cache if they fit: the floor of every copy on one CPU.

use crate::contract::{Operation, TrialContext};
use model::card::Card;
use std::ops::Range;
use sys::{Errno, Failure};

/// memcpy(3).
#[derive(Debug)]
pub(crate) struct Memcpy {
    memory: Vec<u8>,
    from: Range<usize>,
    /// Where the destination begins, behind the source.
    to: usize,
}

impl Operation for Memcpy {
    const CARD: Card = Card {
        name: "memcpy",
        summary: "a copy of n bytes from memory to memory of one process",
        sized: true,
        man: &["memcpy(3)"],
        ..Card::OPERATION
    };

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        Ok(Self::new(trial.shape.size_bytes))
    }

    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        let (before, behind) = self.memory.split_at_mut(self.to);
        let from = std::hint::black_box(&before[self.from.clone()]);
        let to = &mut behind[..from.len()];
        to.copy_from_slice(from);
        std::hint::black_box(to);
        Ok(())
    }
}

impl Memcpy {
    /// Aligned as the messages of endpoints are: on a cache line, and where they are as large as a page on a page. The
    /// alignment changes the speed of a copy by some percent, and would else be left to the allocator.
    fn new(size_bytes: usize) -> Self {
        const LINE_BYTES: usize = 64;
        const PAGE_BYTES: usize = 4096;
        let align = if size_bytes < PAGE_BYTES { LINE_BYTES } else { PAGE_BYTES };
        let to_offset = size_bytes.next_multiple_of(align);
        // Written, not only reserved: an untouched source would be the kernel's single page of zeros.
        let memory = vec![1; align + to_offset + size_bytes];
        let start = memory.as_ptr().align_offset(align);
        Self { memory, from: start..start + size_bytes, to: start + to_offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_and_destination_are_aligned_and_the_bytes_are_copied() {
        for (size_bytes, align) in [(1, 64), (100, 64), (4096, 4096), (10_000, 4096)] {
            let mut memcpy = Memcpy::new(size_bytes);
            let source = memcpy.from.clone();
            memcpy.memory[source].fill(7);
            memcpy.call().unwrap();
            assert_eq!(memcpy.memory[memcpy.to..][..size_bytes], vec![7; size_bytes]);
            for at in [memcpy.from.start, memcpy.to] {
                assert!((memcpy.memory.as_ptr().addr() + at).is_multiple_of(align), "{size_bytes}");
            }
        }
    }
}
