//! The answers of C functions as results. Not a wrapper of any of them.

use crate::Errno;

/// What a call returned, or the errno that it left when that is -1.
#[inline(always)]
pub(crate) fn checked<T: PartialEq + From<i8>>(returned: T) -> Result<T, Errno> {
    if returned == T::from(-1) { Err(last_errno()) } else { Ok(returned) }
}

/// The errno of the call before.
#[cold]
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
