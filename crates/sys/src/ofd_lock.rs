//! Locks that belong to an open file description (fcntl(2), "Open file description locks"). Those that belong to a
//! process, and flock(2), are in `rustix`.

use crate::Errno;
use crate::libc_call::checked;
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::retry_on_intr;

/// Locks all of the file, for writing; sleeps while another description has it (`F_OFD_SETLKW`).
#[inline(always)]
pub fn lock(file: impl AsFd) -> Result<(), Errno> {
    set(file, libc::F_WRLCK as libc::c_short)
}

/// Gives up what [`lock`] took.
#[inline(always)]
pub fn unlock(file: impl AsFd) -> Result<(), Errno> {
    set(file, libc::F_UNLCK as libc::c_short)
}

#[inline(always)]
fn set(file: impl AsFd, kind: libc::c_short) -> Result<(), Errno> {
    // SAFETY: a zeroed flock is a valid one; from 0, for 0 bytes, is all of the file.
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    whole.l_type = kind;
    whole.l_whence = libc::SEEK_SET as libc::c_short;
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the lock is valid for reads through the call.
    retry_on_intr(|| checked(unsafe { libc::fcntl(fd, libc::F_OFD_SETLKW, &raw const whole) })).map(drop)
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, open};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn another_description_waits_until_it_is_unlocked() {
        let path = std::env::temp_dir().join(format!("ipcmark-test-{}-ofd", std::process::id()));
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        let [near, far] = [(); 2].map(|()| open(&path, flags, Mode::RUSR | Mode::WUSR).unwrap());
        std::fs::remove_file(&path).unwrap();
        lock(&near).unwrap();
        let unlocked = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                lock(&far).unwrap();
                assert!(unlocked.load(Ordering::SeqCst));
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            unlocked.store(true, Ordering::SeqCst);
            unlock(&near).unwrap();
        });
    }
}
