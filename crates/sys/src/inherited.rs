//! Descriptors that a process has from its start, by their numbers.

use crate::{Failure, OrFail};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::sync::Mutex;
use std::sync::PoisonError;

/// Those that were taken: a number is handed out once.
static TAKEN: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// The descriptor `number`, which whoever started this process left open, closed on exec from now on.
///
/// Standard streams are refused, for others of this process use them, and so is one that was taken before.
pub fn take(number: i32) -> Result<OwnedFd, Failure> {
    let name = || format!("descriptor {number}");
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if number <= 2 || taken.contains(&number) {
        return Err(Failure::new("take", name(), "it is in use by this process", "report this bug"));
    }
    // SAFETY: it is only asked about here, and a number that is no descriptor is an error of the call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(borrowed).or_fail("fcntl(F_GETFD)", name())?;
    // One that this process opened by itself is closed on exec, and has an owner.
    if flags.contains(FdFlags::CLOEXEC) {
        return Err(Failure::new("take", name(), "it was not inherited", "report this bug"));
    }
    taken.push(number);
    // SAFETY: it is open, was inherited, and nobody else in this process has taken it.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(owned.as_fd(), FdFlags::CLOEXEC).or_fail("fcntl(F_SETFD)", name())?;
    Ok(owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::IntoRawFd;

    #[test]
    fn an_inherited_descriptor_is_taken_once_and_no_other_at_all() {
        let own = std::fs::File::open("/dev/null").unwrap();
        let inherited = rustix::io::dup(&own).unwrap().into_raw_fd();
        let taken = take(inherited).unwrap();
        assert!(fcntl_getfd(&taken).unwrap().contains(FdFlags::CLOEXEC));
        let refused = |number| take(number).unwrap_err().answer;
        assert!(refused(inherited).contains("in use"));
        assert!(refused(0).contains("in use"));
        assert!(refused(rustix::fd::AsRawFd::as_raw_fd(&own)).contains("not inherited"));
        take(1_000_000).unwrap_err();
    }
}
