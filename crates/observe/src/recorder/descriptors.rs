//! The descriptors of a process, followed through the calls that make, copy and close them: what short-lived processes hold is
//! gone from /proc before anybody can read it there. It opens nothing.
//!
//! The kernel gives each new descriptor the lowest free number. pipe(2) and socketpair(2) return theirs in memory that a
//! recorder does not read: they are the two lowest free ones of a table that is complete.

use std::collections::BTreeMap;

/// More descriptors of one process are not followed.
const MOST_DESCRIPTORS: usize = 1 << 20;

/// To what a descriptor refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Referent {
    /// It is to be found out, at first use.
    Unknown,
    /// Something with a path. It is a file, unless a FIFO or a queue is found at first use.
    Opened,
    /// Nothing that processes communicate through.
    Other,
    /// A process, to which signals are sent through it.
    Process(u32),
    /// An object, by its index. Which side it is of a pipe or a queue, the call tells.
    OneWay(u32),
    /// A side of a pair of sockets.
    Side(u32, u8),
}

/// A descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    referent: Referent,
    /// Whether it is closed when the process becomes another program.
    closes: bool,
}

/// The descriptors of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Descriptors {
    entries: BTreeMap<u32, Entry>,
    /// Whether there are no others, so that it is known which numbers are free.
    is_complete: bool,
}

impl Descriptors {
    /// Those of a process of which all will be told.
    pub(super) fn complete() -> Self {
        Self { is_complete: true, ..Self::default() }
    }

    /// To what `fd` refers.
    pub(super) fn get(&self, fd: u32) -> Referent {
        self.entries.get(&fd).map_or(Referent::Unknown, |entry| entry.referent)
    }

    /// There is a descriptor `fd` from now on, of `referent`.
    pub(super) fn open(&mut self, fd: u32, referent: Referent, closes: bool) {
        if self.entries.len() < MOST_DESCRIPTORS {
            self.entries.insert(fd, Entry { referent, closes });
        }
    }

    /// It was found out that `fd` refers to `referent`.
    pub(super) fn learn(&mut self, fd: u32, referent: Referent) {
        let closes = self.entries.get(&fd).is_some_and(|entry| entry.closes);
        self.open(fd, referent, closes);
    }

    /// The descriptors `first` to `last` are closed.
    pub(super) fn close(&mut self, first: u32, last: u32) {
        if first == last {
            self.entries.remove(&first);
        } else {
            self.entries.retain(|fd, _| !(first..=last).contains(fd));
        }
    }

    /// The descriptors `first` to `last` will be closed when the process becomes another program.
    pub(super) fn close_later(&mut self, first: u32, last: u32, closes: bool) {
        self.entries
            .iter_mut()
            .filter(|(fd, _)| (first..=last).contains(*fd))
            .for_each(|(_, entry)| entry.closes = closes);
    }

    /// `to` refers to what `from` does.
    pub(super) fn copy(&mut self, from: u32, to: u32, closes: bool) {
        let referent = self.get(from);
        if from != to {
            self.open(to, referent, closes);
        }
    }

    /// The process becomes another program.
    pub(super) fn exec(&mut self) {
        self.entries.retain(|_, entry| !entry.closes);
    }

    /// The two lowest free numbers, where they are known.
    pub(super) fn two_free(&self) -> Option<[u32; 2]> {
        if !self.is_complete {
            return None;
        }
        let mut free = [0, 0];
        let (mut found, mut next) = (0, 0);
        let mut taken = self.entries.keys().copied().peekable();
        while found < 2 {
            if taken.peek() == Some(&next) {
                taken.next();
            } else {
                free[found] = next;
                found += 1;
            }
            next += 1;
        }
        Some(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PIPE: Referent = Referent::OneWay(7);

    fn standard() -> Descriptors {
        let mut table = Descriptors::complete();
        (0..3).for_each(|fd| table.open(fd, Referent::Other, false));
        table
    }

    #[test]
    fn a_shell_gives_its_child_the_end_of_a_pipe() {
        let mut shell = standard();
        let [read, write] = shell.two_free().unwrap();
        assert_eq!([read, write], [3, 4]);
        shell.open(read, PIPE, false);
        shell.open(write, PIPE, false);
        let mut child = shell.clone();
        child.copy(write, 1, false);
        child.close(read, read);
        child.close(write, write);
        child.exec();
        assert_eq!([child.get(1), child.get(3), child.get(4)], [PIPE, Referent::Unknown, Referent::Unknown]);
        assert_eq!(child.two_free(), Some([3, 4]));
        assert_eq!(Descriptors::default().two_free(), None);
    }

    #[test]
    fn another_program_has_what_was_not_to_be_closed() {
        let mut table = standard();
        table.open(3, PIPE, true);
        table.copy(3, 9, false);
        table.close_later(1, 2, true);
        table.exec();
        assert_eq!(
            [table.get(0), table.get(1), table.get(3), table.get(9)],
            [Referent::Other, Referent::Unknown, Referent::Unknown, PIPE]
        );
        table.close(0, u32::MAX);
        assert_eq!(table, Descriptors::complete());
    }

    proptest! {
        #[test]
        fn free_numbers_are_the_lowest(taken in proptest::collection::btree_set(0..20u32, 0..20)) {
            let mut table = Descriptors::complete();
            taken.iter().for_each(|fd| table.open(*fd, Referent::Other, false));
            let free: Vec<u32> = (0..).filter(|fd| !taken.contains(fd)).take(2).collect();
            prop_assert_eq!(table.two_free().unwrap().to_vec(), free);
        }
    }
}
