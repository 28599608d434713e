//! The return values of C functions as results. Not a wrapper of any function.

use crate::Errno;

/// What a call returned; the errno that it left when it returned -1.
#[inline(always)]
pub(crate) fn checked<T: PartialEq + From<i8>>(returned: T) -> Result<T, Errno> {
    if returned == T::from(-1) { Err(last_errno()) } else { Ok(returned) }
}

/// The errno of the call before this.
#[cold]
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
