//! The older system calls for the time and for CPU time, which `rustix` does not have. Not the clock of the harness.

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
    // SAFETY: `used` is valid for writes. The call fails for a bad address only, and any value may be a right one.
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

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn gettimeofday_agrees_with_the_clock_of_the_file_system() {
        // A file system keeps the time of day of a write, to some milliseconds.
        let path = std::env::temp_dir().join(format!("ipcmark-test-{}-now", std::process::id()));
        std::fs::write(&path, "now").unwrap();
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::remove_file(&path).unwrap();
        let written = written.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = Duration::from_micros(gettimeofday().unwrap());
        assert!(now.abs_diff(written) < Duration::from_secs(60), "{now:?} {written:?}");
    }

    #[test]
    fn cpu_time_and_ticks_grow_with_work() {
        let (used, ticks) = (getrusage().unwrap(), times());
        while getrusage().unwrap() < used + 400_000 {}
        // A tick takes at most 10 ms of wall-clock time, so that 400 ms of CPU time contain at least one: other tests use CPU time of this
        // process at the same time.
        assert!(times() > ticks);
    }
}
