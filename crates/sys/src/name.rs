//! Names outside of the file system, of kernel objects that outlive their makers, and their removal.
//!
//! A note of each is written before the object is made, so that whoever clears up after a process that was
//! killed knows what to remove. Where notes are kept is not known here.

use crate::sysv::{self, Key};
use crate::{Errno, posix_mq};
use std::fmt;
use std::str::FromStr;

/// What the names of ours begin with: no other is ever removed.
const OURS: &str = "/ipcmark-";

/// The name of a kernel object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// A System V message queue.
    SysvMsg(Key),
    /// A set of System V semaphores.
    SysvSem(Key),
    /// A System V shared memory segment.
    SysvShm(Key),
    /// A POSIX message queue.
    PosixMq(String),
    /// POSIX shared memory, or another file beside it (shm_overview(7)).
    PosixShm(String),
}

impl Name {
    /// Removes the object. One that is gone, or never was, is as good as removed.
    pub fn remove(&self) -> Result<(), Errno> {
        let removed = match self {
            Name::SysvMsg(key) => sysv::remove_queue(*key),
            Name::SysvSem(key) => sysv::remove_semaphores(*key),
            Name::SysvShm(key) => sysv::remove_memory(*key),
            Name::PosixMq(name) => posix_mq::unlink(name),
            Name::PosixShm(name) => rustix::shm::unlink(name),
        };
        match removed {
            Err(Errno::NOENT | Errno::IDRM) => Ok(()),
            other => other,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::SysvMsg(key) => write!(f, "sysv-msg {key}"),
            Name::SysvSem(key) => write!(f, "sysv-sem {key}"),
            Name::SysvShm(key) => write!(f, "sysv-shm {key}"),
            Name::PosixMq(name) => write!(f, "posix-mq {name}"),
            Name::PosixShm(name) => write!(f, "posix-shm {name}"),
        }
    }
}

impl FromStr for Name {
    type Err = ();

    /// What [`Display`](fmt::Display) wrote.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, name) = text.split_once(' ').ok_or(())?;
        let key = || name.parse().map_err(drop);
        match kind {
            "sysv-msg" => key().map(Name::SysvMsg),
            "sysv-sem" => key().map(Name::SysvSem),
            "sysv-shm" => key().map(Name::SysvShm),
            "posix-mq" if name.starts_with(OURS) => Ok(Name::PosixMq(name.to_owned())),
            "posix-shm" if name.starts_with(OURS) => Ok(Name::PosixShm(name.to_owned())),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for name in [
            Name::SysvMsg(Key::of("a")),
            Name::SysvSem(Key::of("b")),
            Name::SysvShm(Key::of("c")),
            Name::PosixMq("/ipcmark-1".to_owned()),
            Name::PosixShm("/ipcmark-2".to_owned()),
        ] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for foreign in
            ["", "posix-mq /other", "posix-shm /other", "sysv-msg x", "sysv-shm x", "file /etc/passwd"]
        {
            assert_eq!(foreign.parse::<Name>(), Err(()), "{foreign}");
        }
    }

    #[test]
    fn what_is_not_there_is_as_good_as_removed() {
        assert_eq!(Name::SysvSem(Key::of("no such set, by all likelihood")).remove(), Ok(()));
        assert_eq!(Name::SysvShm(Key::of("no such segment, by all likelihood")).remove(), Ok(()));
        assert_eq!(Name::PosixShm("/ipcmark-no-such-object".to_owned()).remove(), Ok(()));
    }

    #[cfg(all(not(miri), not(loom)))]
    #[test]
    fn a_posix_object_is_removed_by_its_name() {
        use rustix::shm::{Mode, OFlags, open};
        let name = format!("/ipcmark-test-{}", std::process::id());
        open(&name, OFlags::CREATE | OFlags::EXCL | OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
        Name::PosixShm(name.clone()).remove().unwrap();
        assert_eq!(open(&name, OFlags::RDWR, Mode::empty()).unwrap_err(), Errno::NOENT);
    }
}
