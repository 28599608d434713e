//! An entry of another process's epoll set (epoll_ctl(2)), exchanged for one of another file. Which sets have which entries, /proc tells.

use crate::Errno;
use crate::libc_call::checked;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::{DupFlags, dup3, fcntl_dupfd_cloexec};

/// An entry of an epoll set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpollEntry {
    /// The number by which its owner refers to it.
    pub number: RawFd,
    /// The events that it waits for.
    pub events: u32,
    /// What comes back with an event.
    pub data: u64,
}

/// Removes `entry` of the file `old` from `set`, and puts `new` in its place.
///
/// An entry is known by its file and by its number, the one in the table of descriptors of who asks: so it is asked for by a thread with a
/// table of its own, in which the files have the number that their owner uses.
pub fn exchange(
    set: BorrowedFd<'_>,
    entry: EpollEntry,
    old: BorrowedFd<'_>,
    new: BorrowedFd<'_>,
) -> Result<(), Errno> {
    let in_own_table = || {
        // SAFETY: the descriptors of this thread, which no other code uses until it ends, are a copy from now on.
        checked(unsafe { libc::unshare(libc::CLONE_FILES) })?;
        // None of the three may be closed by a copy to the number.
        let beyond = entry.number.saturating_add(1);
        let [set, old, new] = [set, old, new].map(|file| fcntl_dupfd_cloexec(file, beyond));
        let (set, old, new) = (set?, old?, new?);
        at_number(&old, entry.number, |old| epoll::delete(&set, old))?;
        let flags = EventFlags::from_bits_retain(entry.events);
        at_number(&new, entry.number, |new| epoll::add(&set, new, EventData::new_u64(entry.data), flags))
    };
    std::thread::scope(|scope| scope.spawn(in_own_table).join().unwrap_or(Err(Errno::INVAL)))
}

/// Does `work` on `file` with this `number` in the table of this thread.
fn at_number(
    file: &OwnedFd,
    number: RawFd,
    work: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    // SAFETY: whatever has the number in this table, a copy, is closed, and refers to the file from the next line on. It is never closed by
    // its drop, so that nobody uses it afterwards.
    let mut at = std::mem::ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    if file.as_raw_fd() != number {
        dup3(file, &mut at, DupFlags::CLOEXEC)?;
    }
    work(at.as_fd())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use rustix::event::Timespec;
    use rustix::io::write;
    use rustix::pipe::pipe;

    #[test]
    fn events_of_the_new_file_come_with_the_old_data_and_none_of_the_old_file() {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let ((old, old_end), (new, new_end)) = (pipe().unwrap(), pipe().unwrap());
        epoll::add(&set, &old, EventData::new_u64(7), EventFlags::IN).unwrap();
        let number = old.as_raw_fd();
        let entry = EpollEntry { number, events: EventFlags::IN.bits(), data: 7 };
        exchange(set.as_fd(), entry, old.as_fd(), new.as_fd()).unwrap();
        write(&old_end, b"x").unwrap();
        let waited = |limit: &Timespec| {
            let mut events = Vec::with_capacity(4);
            epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), Some(limit)).unwrap();
            events.iter().map(|event| event.data.u64()).collect::<Vec<_>>()
        };
        let (now, long) = (Timespec { tv_sec: 0, tv_nsec: 0 }, Timespec { tv_sec: 60, tv_nsec: 0 });
        assert_eq!(waited(&now), []);
        write(&new_end, b"x").unwrap();
        assert_eq!(waited(&long), [7]);
    }
}
