//! ptrace(2) as the kernel has it. C libraries differ in the types of its requests, and not all of them know the newest. Who is traced,
//! and what a stop means, is for `tracee` and `tracees` to say.

use crate::Errno;
use crate::libc_call::checked;
pub(crate) use linux_raw_sys::ptrace::{
    PTRACE_CONT, PTRACE_DETACH, PTRACE_INTERRUPT, PTRACE_LISTEN, PTRACE_SEIZE, PTRACE_SYSCALL,
};
use linux_raw_sys::ptrace::{
    PTRACE_GET_SYSCALL_INFO, PTRACE_GETEVENTMSG, PTRACE_SYSCALL_INFO_ENTRY, PTRACE_SYSCALL_INFO_EXIT,
    PTRACE_SYSCALL_INFO_SECCOMP, ptrace_syscall_info,
};
use std::mem::MaybeUninit;

/// The call at which a thread has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoppedCall {
    /// It is about to make it.
    Entry { number: u64, arguments: [u64; 6] },
    /// It has ended.
    Exit { value: i64 },
    /// The thread has stopped for another reason.
    None,
}

/// Asks for `request` of the thread `tid`: one of those that read and write no memory of this process.
pub(crate) fn request(tid: libc::pid_t, request: u32, data: usize) -> Result<(), Errno> {
    // SAFETY: the request reads and writes no memory of this process.
    unsafe { ptrace(tid, request, 0, data) }
}

/// What the stop of `tid` is about (`PTRACE_GETEVENTMSG`).
pub(crate) fn message(tid: libc::pid_t) -> Result<u64, Errno> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one long, which is valid for writes.
    unsafe { ptrace(tid, PTRACE_GETEVENTMSG, 0, (&raw mut message).expose_provenance())? };
    Ok(message)
}

/// The call at which `tid` has stopped (`PTRACE_GET_SYSCALL_INFO`).
pub(crate) fn stopped_call(tid: libc::pid_t) -> Result<StoppedCall, Errno> {
    let mut info = MaybeUninit::<ptrace_syscall_info>::zeroed();
    let size = size_of::<ptrace_syscall_info>();
    // SAFETY: the kernel writes at most as many bytes as the size says.
    unsafe { ptrace(tid, PTRACE_GET_SYSCALL_INFO, size, info.as_mut_ptr().expose_provenance())? };
    // SAFETY: all zeros are valid, and the kernel wrote over them. `op` says which part of the union it wrote.
    unsafe {
        let info = info.assume_init();
        let call = info.__bindgen_anon_1;
        Ok(match u32::from(info.op) {
            PTRACE_SYSCALL_INFO_ENTRY => {
                StoppedCall::Entry { number: call.entry.nr, arguments: call.entry.args }
            }
            PTRACE_SYSCALL_INFO_SECCOMP => {
                StoppedCall::Entry { number: call.seccomp.nr, arguments: call.seccomp.args }
            }
            PTRACE_SYSCALL_INFO_EXIT => StoppedCall::Exit { value: call.exit.rval },
            _ => StoppedCall::None,
        })
    }
}

/// # Safety
///
/// What `request` makes of `address` and `data` must be valid.
unsafe fn ptrace(tid: libc::pid_t, request: u32, address: usize, data: usize) -> Result<(), Errno> {
    // SAFETY: as the caller promises.
    let answer = unsafe { libc::syscall(libc::SYS_ptrace, libc::c_long::from(request), tid, address, data) };
    checked(answer).map(drop)
}
