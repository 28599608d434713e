//! The older ways in which a process asks for the time, or for what it used. What `rustix` lacks.

use crate::Errno;
use crate::libc_call::checked;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// gettimeofday(2): microseconds since the Epoch.
#[inline(always)]
pub fn gettimeofday() -> Result<u64, Errno> {
    let mut now = MaybeUninit::<libc::timeval>::uninit();
    // SAFETY: `now` is valid for writes; the time zone is not asked for.
    checked(unsafe { libc::gettimeofday(now.as_mut_ptr(), std::ptr::null_mut()) })?;
    // SAFETY: the call succeeded, so that `now` was written.
    let now = unsafe { now.assume_init() };
    Ok(micros(now))
}

/// times(2): clock ticks since some time in the past, as the call returns them.
#[inline(always)]
pub fn times() -> u64 {
    let mut used = MaybeUninit::<libc::tms>::uninit();
    // SAFETY: `used` is valid for writes. Any value may be returned: it fails for a bad address only.
    let ticks = unsafe { libc::times(used.as_mut_ptr()) };
    black_box(used);
    ticks as u64
}

/// getrusage(2) of the process: its CPU time, user and system, in microseconds.
#[inline(always)]
pub fn getrusage() -> Result<u64, Errno> {
    let mut used = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `used` is valid for writes.
    checked(unsafe { libc::getrusage(libc::RUSAGE_SELF, used.as_mut_ptr()) })?;
    // SAFETY: the call succeeded, so that `used` was written.
    let used = unsafe { used.assume_init() };
    Ok(micros(used.ru_utime) + micros(used.ru_stime))
}

fn micros(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_time_of_day_is_that_of_the_system() {
        // A file system keeps the time of day of a write, though coarsely.
        let path = std::env::temp_dir().join(format!("ipcmark-test-{}-now", std::process::id()));
        std::fs::write(&path, "now").unwrap();
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::remove_file(&path).unwrap();
        let written = written.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = Duration::from_micros(gettimeofday().unwrap());
        assert!(now.abs_diff(written) < Duration::from_secs(60), "{now:?} {written:?}");
    }

    #[test]
    fn work_is_accounted_for() {
        let (used, ticks) = (getrusage().unwrap(), times());
        while getrusage().unwrap() < used + 20_000 {}
        // 20 ms of CPU time are at least one tick of at most 10 ms of the clock on the wall.
        assert!(times() > ticks);
    }
}
