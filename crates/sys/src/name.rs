//! Names of kernel objects that outlive the process which made them, and how to remove the objects. Not paths of
//! files.
//!
//! A trial writes down each name before it makes the object, so that whoever cleans up after a killed process knows
//! what to remove. Where the names are kept is not known here.

use crate::sysv::{self, SysvKey};
use crate::{Errno, posix_mq};
use std::fmt;
use std::str::FromStr;

/// What all names of ipcmark begin with. Objects of other names are never removed.
const OURS: &str = "/ipcmark-";

/// The name of a kernel object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectName {
    /// A System V message queue.
    SysvMsg(SysvKey),
    /// A set of System V semaphores.
    SysvSem(SysvKey),
    /// A System V shared memory segment.
    SysvShm(SysvKey),
    /// A POSIX message queue.
    PosixMq(String),
    /// A POSIX shared memory object, or another file in the same place (shm_overview(7)).
    PosixShm(String),
}

impl ObjectName {
    /// Removes the object. It is no error if there is none.
    pub fn remove(&self) -> Result<(), Errno> {
        let removed = match self {
            ObjectName::SysvMsg(key) => sysv::remove_queue(*key),
            ObjectName::SysvSem(key) => sysv::remove_semaphores(*key),
            ObjectName::SysvShm(key) => sysv::remove_memory(*key),
            ObjectName::PosixMq(name) => posix_mq::unlink(name),
            ObjectName::PosixShm(name) => rustix::shm::unlink(name),
        };
        match removed {
            Err(Errno::NOENT | Errno::IDRM) => Ok(()),
            other => other,
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectName::SysvMsg(key) => write!(f, "sysv-msg {key}"),
            ObjectName::SysvSem(key) => write!(f, "sysv-sem {key}"),
            ObjectName::SysvShm(key) => write!(f, "sysv-shm {key}"),
            ObjectName::PosixMq(name) => write!(f, "posix-mq {name}"),
            ObjectName::PosixShm(name) => write!(f, "posix-shm {name}"),
        }
    }
}

impl FromStr for ObjectName {
    type Err = ();

    /// Parses what [`Display`](fmt::Display) wrote.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, name) = text.split_once(' ').ok_or(())?;
        let key = || name.parse().map_err(drop);
        match kind {
            "sysv-msg" => key().map(ObjectName::SysvMsg),
            "sysv-sem" => key().map(ObjectName::SysvSem),
            "sysv-shm" => key().map(ObjectName::SysvShm),
            "posix-mq" if name.starts_with(OURS) => Ok(ObjectName::PosixMq(name.to_owned())),
            "posix-shm" if name.starts_with(OURS) => Ok(ObjectName::PosixShm(name.to_owned())),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_its_text() {
        for name in [
            ObjectName::SysvMsg(SysvKey::of("a")),
            ObjectName::SysvSem(SysvKey::of("b")),
            ObjectName::SysvShm(SysvKey::of("c")),
            ObjectName::PosixMq("/ipcmark-1".to_owned()),
            ObjectName::PosixShm("/ipcmark-2".to_owned()),
        ] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for foreign in
            ["", "posix-mq /other", "posix-shm /other", "sysv-msg x", "sysv-shm x", "file /etc/passwd"]
        {
            assert_eq!(foreign.parse::<ObjectName>(), Err(()), "{foreign}");
        }
    }

    #[test]
    fn it_is_no_error_to_remove_what_is_not_there() {
        assert_eq!(ObjectName::SysvSem(SysvKey::of("no such set, by all likelihood")).remove(), Ok(()));
        assert_eq!(ObjectName::SysvShm(SysvKey::of("no such segment, by all likelihood")).remove(), Ok(()));
        assert_eq!(ObjectName::PosixShm("/ipcmark-no-such-object".to_owned()).remove(), Ok(()));
    }

    #[cfg(all(not(miri), not(loom)))]
    #[test]
    fn a_posix_object_is_removed_by_its_name() {
        use rustix::shm::{Mode, OFlags, open};
        let name = format!("/ipcmark-test-{}", std::process::id());
        open(&name, OFlags::CREATE | OFlags::EXCL | OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
        ObjectName::PosixShm(name.clone()).remove().unwrap();
        assert_eq!(open(&name, OFlags::RDWR, Mode::empty()).unwrap_err(), Errno::NOENT);
    }
}
