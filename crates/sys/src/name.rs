//! Names of kernel objects that outlive the process which made them, and how to remove the objects. Not paths of
//! files.
//!
//! A trial writes down each name before it makes the object, so that whoever cleans up after a killed process knows
//! what to remove. Where the names are kept is not known here.

use crate::sysv::{self, SysvKey};
use crate::{Errno, posix_mq};
use rustix::fs::{AtFlags, CWD, FileType, statat};
use rustix::process::geteuid;
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
    /// Removes the object, which this process has made. It is no error if there is none.
    ///
    /// A key may have gone to another user since: `Errno::PERM` then.
    pub fn remove(&self) -> Result<(), Errno> {
        self.remove_sysv(i64::MIN)
            .unwrap_or_else(|| match self {
                ObjectName::PosixMq(name) => posix_mq::unlink(name),
                ObjectName::PosixShm(name) => rustix::shm::unlink(name),
                _ => Ok(()),
            })
            .or_else(gone_is_removed)
    }

    /// Removes the object that a process of this user has made, or was about to make, after the moment `since_s`, in
    /// seconds of the Unix epoch. It is no error if there is none. `Errno::PERM` if it belongs to another user, or was
    /// there before.
    pub fn remove_noted(&self, since_s: i64) -> Result<(), Errno> {
        self.remove_sysv(since_s)
            .unwrap_or_else(|| match self {
                ObjectName::PosixMq(name) => posix_mq::unlink_own(name),
                ObjectName::PosixShm(name) => unlink_own_memory(name),
                _ => Ok(()),
            })
            .or_else(gone_is_removed)
    }

    /// Removes a System V object; `None` of others.
    fn remove_sysv(&self, since_s: i64) -> Option<Result<(), Errno>> {
        Some(match self {
            ObjectName::SysvMsg(key) => sysv::remove_queue(*key, since_s),
            ObjectName::SysvSem(key) => sysv::remove_semaphores(*key, since_s),
            ObjectName::SysvShm(key) => sysv::remove_memory(*key, since_s),
            ObjectName::PosixMq(_) | ObjectName::PosixShm(_) => return None,
        })
    }

    /// Whether it is a name that the run `run` gives. A System V key has no text that could tell.
    pub fn is_of(&self, run: &str) -> bool {
        match self {
            ObjectName::PosixMq(name) | ObjectName::PosixShm(name) => name
                .strip_prefix('/')
                .and_then(|name| name.strip_prefix(run))
                .is_some_and(|rest| rest.starts_with('-')),
            _ => true,
        }
    }
}

fn gone_is_removed(errno: Errno) -> Result<(), Errno> {
    if matches!(errno, Errno::NOENT | Errno::IDRM) { Ok(()) } else { Err(errno) }
}

/// Removes the POSIX object `name` if it is a file of this user. It is not opened: a FIFO or a device could stand there.
/// The directory is sticky, so that nobody else can put another file in its place meanwhile (shm_overview(7)).
fn unlink_own_memory(name: &str) -> Result<(), Errno> {
    let path = format!("/dev/shm/{}", name.trim_start_matches('/'));
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_ours =
        FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_uid == geteuid().as_raw();
    if is_ours { rustix::shm::unlink(name) } else { Err(Errno::PERM) }
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
            "posix-mq" if is_ours(name) => Ok(ObjectName::PosixMq(name.to_owned())),
            "posix-shm" if is_ours(name) => Ok(ObjectName::PosixShm(name.to_owned())),
            _ => Err(()),
        }
    }
}

/// Whether `name` begins as ours do, and is one name and no path.
fn is_ours(name: &str) -> bool {
    name.strip_prefix(OURS).is_some_and(|rest| !rest.contains(['/', '\0']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_its_text() {
        for name in [
            ObjectName::SysvMsg(SysvKey::hashed("a")),
            ObjectName::SysvSem(SysvKey::hashed("b")),
            ObjectName::SysvShm(SysvKey::hashed("c")),
            ObjectName::PosixMq("/ipcmark-1".to_owned()),
            ObjectName::PosixShm("/ipcmark-2".to_owned()),
        ] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for foreign in [
            "",
            "posix-mq /other",
            "posix-shm /ipcmark-/../x",
            "posix-mq /ipcmark-a\0b",
            "posix-shm /other",
            "sysv-msg x",
            "sysv-shm x",
            "file /etc/passwd",
        ] {
            assert_eq!(foreign.parse::<ObjectName>(), Err(()), "{foreign}");
        }
    }

    #[test]
    fn it_is_no_error_to_remove_what_is_not_there() {
        assert_eq!(ObjectName::SysvSem(SysvKey::hashed("no such set, by all likelihood")).remove(), Ok(()));
        assert_eq!(
            ObjectName::SysvShm(SysvKey::hashed("no such segment, by all likelihood")).remove(),
            Ok(())
        );
        assert_eq!(ObjectName::PosixShm("/ipcmark-no-such-object".to_owned()).remove(), Ok(()));
    }

    #[cfg(not(miri))]
    #[test]
    fn a_posix_object_is_removed_by_its_name() {
        use rustix::shm::{Mode, OFlags, open};
        let name = format!("/ipcmark-test-{}", std::process::id());
        open(&name, OFlags::CREATE | OFlags::EXCL | OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
        ObjectName::PosixShm(name.clone()).remove().unwrap();
        assert_eq!(open(&name, OFlags::RDWR, Mode::empty()).unwrap_err(), Errno::NOENT);
    }
}
