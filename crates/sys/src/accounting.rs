//! The older ways in which a process asks for the time, or for what it used. What `rustix` lacks.

use crate::Errno;
use crate::libc_call::checked;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// gettimeofday(2).
#[inline(always)]
pub fn gettimeofday() -> Result<(), Errno> {
    let mut now = MaybeUninit::<libc::timeval>::uninit();
    // SAFETY: `now` is valid for writes; the time zone is not asked for.
    checked(unsafe { libc::gettimeofday(now.as_mut_ptr(), std::ptr::null_mut()) })?;
    black_box(now);
    Ok(())
}

/// times(2).
#[inline(always)]
pub fn times() -> Result<(), Errno> {
    let mut used = MaybeUninit::<libc::tms>::uninit();
    // SAFETY: `used` is valid for writes. Any value may be returned: it fails for a bad address only.
    unsafe { libc::times(used.as_mut_ptr()) };
    black_box(used);
    Ok(())
}

/// getrusage(2) of the process.
#[inline(always)]
pub fn getrusage() -> Result<(), Errno> {
    let mut used = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `used` is valid for writes.
    checked(unsafe { libc::getrusage(libc::RUSAGE_SELF, used.as_mut_ptr()) })?;
    black_box(used);
    Ok(())
}
