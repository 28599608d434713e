//! What ioctl(2) does with events of perf_event_open(2) and the library over that call does not offer: which records of a
//! tracepoint are wanted, into whose ring they go, and by which descriptor one waits for them. It opens and reads no event.

use crate::Errno;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::ioctl::{IntegerSetter, Opcode, ioctl, opcode};
use std::ffi::{CStr, c_char};

/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: Opcode = opcode::none(b'$', 5);
/// `PERF_EVENT_IOC_SET_FILTER`.
const SET_FILTER: Opcode = opcode::write::<*const c_char>(b'$', 6);

/// Has the tracepoint `event` count and record only what `filter` matches, which is written as tracefs takes it
/// (perf_event_open(2), `PERF_EVENT_IOC_SET_FILTER`).
pub fn set_filter(event: &impl AsRawFd, filter: &CStr) -> Result<(), Errno> {
    // SAFETY: the descriptor is open as long as `event` is borrowed. The kernel copies the string, which ends with a zero byte and
    // is not written to, before the call returns; what is no event answers with an error.
    unsafe {
        let event = BorrowedFd::borrow_raw(event.as_raw_fd());
        ioctl(event, IntegerSetter::<SET_FILTER>::new_pointer(filter.as_ptr().cast_mut().cast()))
    }
}

/// Has the records of `event` go into the ring of `owner`, which must be on the same CPU and stamped by the same clock
/// (perf_event_open(2), `PERF_EVENT_IOC_SET_OUTPUT`).
pub fn set_output(event: &impl AsRawFd, owner: &impl AsRawFd) -> Result<(), Errno> {
    let owner = usize::try_from(owner.as_raw_fd()).map_err(|_| Errno::BADF)?;
    // SAFETY: both descriptors are open as long as they are borrowed. The call takes a number, no address.
    unsafe {
        let event = BorrowedFd::borrow_raw(event.as_raw_fd());
        ioctl(event, IntegerSetter::<SET_OUTPUT>::new_usize(owner))
    }
}

/// The descriptor of `event`, to be polled for records.
pub fn descriptor(event: &impl AsRawFd) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open as long as `event` is borrowed, and so is what is returned.
    unsafe { BorrowedFd::borrow_raw(event.as_raw_fd()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_event_answers_with_an_error() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(set_filter(&file, c"common_pid==1"), Err(Errno::NOTTY));
        assert_eq!(set_output(&file, &file), Err(Errno::NOTTY));
    }
}
