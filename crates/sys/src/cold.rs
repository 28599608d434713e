//! Memory that is given back to the kernel while it stays mapped, so that the next touch of each page is its first (madvise(2)).

use crate::Errno;
use rustix::mm::{Advice, madvise};

/// Gives back the whole pages of `memory`, which is of the heap: they are zeros when they are touched again.
pub fn discard(memory: &mut [u8]) -> Result<(), Errno> {
    let page = rustix::param::page_size();
    let start = memory.as_ptr().align_offset(page).min(memory.len());
    let whole = (memory.len() - start) / page * page;
    let pages = &mut memory[start..start + whole];
    if pages.is_empty() {
        return Ok(());
    }
    // SAFETY: these are whole pages of memory that is borrowed for writing, and any byte is a valid u8. The heap's memory is
    // private and anonymous, so that what is read there afterwards is 0 and nothing else of the process changes.
    unsafe { madvise(pages.as_mut_ptr().cast(), pages.len(), Advice::LinuxDontNeed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::of_this_thread;

    #[test]
    fn whole_pages_are_zeros_and_fault_again_and_their_neighbours_stay() {
        let page = rustix::param::page_size();
        let mut memory = vec![7_u8; 70 * page];
        let start = memory.as_ptr().align_offset(page);
        discard(&mut memory[start + 1..start + 65 * page]).unwrap();
        let before = of_this_thread();
        let zeros = memory.iter().filter(|byte| **byte == 0).count();
        let faults = of_this_thread().minor_faults - before.minor_faults;
        assert_eq!(zeros, 64 * page);
        assert!(faults > 0 && memory[start] == 7 && memory[start + 65 * page] == 7, "{faults}");
        discard(&mut memory[start + 1..start + page]).unwrap();
        assert_eq!(memory[start + 1], 7, "less than a page");
    }
}
