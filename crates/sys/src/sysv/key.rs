//! What System V objects of all kinds have in common: the key, the flags to make one, and the error when it is gone.

use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

/// The key of an object. Never `IPC_PRIVATE`, so that a process that knows the key finds the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SysvKey(pub(super) libc::key_t);

impl SysvKey {
    /// The key that belongs to `what`.
    pub fn hashed(what: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(((hasher.finish() & 0x7fff_ffff) as libc::key_t).max(1))
    }
}

impl fmt::Display for SysvKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for SysvKey {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SysvKind {
    /// Message queues.
    Queue,
    /// Sets of semaphores.
    Semaphores,
    /// Segments of shared memory.
    Memory,
}

/// Whether the kernel has objects of `kind`, and lets this process have some. It looks for one, and makes none (msgget(2), semget(2),
/// shmget(2)).
pub fn probe(kind: SysvKind) -> Result<(), Failure> {
    const KEY: libc::key_t = libc::key_t::MAX;
    // SAFETY: the calls take numbers only.
    let (call, found) = unsafe {
        match kind {
            SysvKind::Queue => ("msgget", libc::msgget(KEY, 0)),
            SysvKind::Semaphores => ("semget", libc::semget(KEY, 0, 0)),
            SysvKind::Memory => ("shmget", libc::shmget(KEY, 0, 0)),
        }
    };
    match checked(found) {
        // Mostly there is none; one of another user is none of this one's.
        Ok(_) | Err(Errno::NOENT | Errno::ACCESS) => Ok(()),
        Err(errno) => Err(errno).or_fail(call, "an object that there is not"),
    }
}

/// The flags that make an object: it must be new, and it is for its owner alone.
pub(super) const CREATE: libc::c_int = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;

/// Whether what the kernel says of an object, its creator and when it was made or last changed, allows to remove it.
///
/// A key is a number that anybody may have chosen before: what another user made, or what was there before `since_s`, in
/// seconds of the Unix epoch, is somebody else's.
pub(super) fn check_ours(permissions: &libc::ipc_perm, changed_s: i64, since_s: i64) -> Result<(), Errno> {
    let is_ours = permissions.cuid == rustix::process::geteuid().as_raw() && changed_s >= since_s;
    if is_ours { Ok(()) } else { Err(Errno::PERM) }
}

/// The error of an object that was removed, before the call or during its sleep, is that of a peer that has closed.
#[cold]
pub(super) fn gone(errno: Errno) -> Errno {
    if matches!(errno, Errno::IDRM | Errno::INVAL) { Errno::PIPE } else { errno }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_survive_their_text() {
        let keys: std::collections::BTreeSet<i32> =
            (0..1000).map(|number| SysvKey::hashed(number).0).collect();
        assert!(keys.len() > 998 && keys.iter().all(|key| *key > 0), "{} of 1000", keys.len());
        assert_eq!(SysvKey::hashed(1).to_string().parse(), Ok(SysvKey::hashed(1)));
    }
}
