//! Where an endpoint has its program, its heap and its stack. It starts the command that it is given, and knows nothing of
//! what that is.
//!
//! The kernel draws these addresses anew for each process, and a round trip depends on them: two trials of `eventfd` on one
//! CPU differed by 3%, as long as they lived. What compares two cases compares them at the same addresses.

use std::io;
use std::process::{Child, Command};
use sys::Errno;
use sys::personality::FixedAddresses;

/// Where endpoints have their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressLayout {
    /// Where the kernel puts it by chance, as of any program.
    Random,
    /// At the same addresses in both trials of a pair, whose numbers are 2n and 2n + 1. In the next pair the stack begins elsewhere,
    /// so that no one place of the stack favours a side in all of them.
    Alike,
}

/// The variable of the environment that moves the stack, at whose top the environment lies.
const PADDING: &str = "IPCMARK_STACK_PADDING";
/// By how much at most: a page.
const MOST_PADDING: u64 = 4096;

impl AddressLayout {
    /// Starts `command` for the trial `number`. Where the kernel does not let it choose, addresses are random: see
    /// [`why_random`].
    pub(super) fn start(self, command: &mut Command, number: u64) -> io::Result<Child> {
        match self {
            Self::Random => command.spawn(),
            Self::Alike => {
                let _fixed = FixedAddresses::begin().ok();
                command.env(PADDING, "x".repeat(padding(number / 2))).spawn()
            }
        }
    }
}

/// Why endpoints cannot have their memory at the same addresses, if so.
pub fn why_random() -> Option<Errno> {
    FixedAddresses::begin().err()
}

/// How far the stack of the pair of trials with this number is moved: any distance up to [`MOST_PADDING`] is as likely (a
/// multiplicative hash, Knuth, *The Art of Computer Programming*, 6.4).
fn padding(pair: u64) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    (pair.wrapping_mul(GOLDEN) >> (u64::BITS - MOST_PADDING.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    /// Where a process of the trial `number` has what `name` says.
    fn address(layout: AddressLayout, number: u64, name: &str) -> String {
        let mut command = Command::new("cat");
        command.arg("/proc/self/maps").stdout(Stdio::piped());
        let said = layout.start(&mut command, number).unwrap().wait_with_output().unwrap();
        let maps = String::from_utf8(said.stdout).unwrap();
        maps.lines().find(|line| line.ends_with(name)).unwrap().to_owned()
    }

    #[test]
    fn both_trials_of_a_pair_have_the_same_addresses() {
        for name in ["[stack]", "[heap]", "cat"] {
            let alike = [4, 5, 4, 5].map(|number| address(AddressLayout::Alike, number, name));
            assert!(alike.iter().all(|address| *address == alike[0]), "{alike:?}");
            let random = [4, 5, 4, 5].map(|number| address(AddressLayout::Random, number, name));
            assert!(random.iter().any(|address| *address != random[0]), "{random:?}");
        }
        assert_eq!(why_random(), None);
    }

    #[test]
    fn the_stacks_of_pairs_begin_all_over_a_page() {
        let paddings: Vec<usize> = (0..400).map(padding).collect();
        for quarter in 0..4 {
            let within = paddings.iter().filter(|padding| **padding / 1024 == quarter).count();
            assert!((90..=110).contains(&within), "{quarter}: {within}");
        }
        assert!(paddings.iter().all(|padding| *padding < 4096));
    }
}
