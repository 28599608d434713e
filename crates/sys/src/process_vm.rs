//! Bytes of another process, copied directly from its memory (process_vm_readv(2)).
//!
//! How one learns where the bytes lie, and that they stay there until they are copied, is the caller's business.

use crate::fork::Child;
use crate::libc_call::checked;
use crate::seccomp::explained;
use crate::signal::ThreadId;
use crate::{Errno, Failure, OrFail};
use rustix::fd::AsRawFd;
use rustix::io::{read as read_fd, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PTracer, Pid, set_ptracer};

/// Where bytes lie in the memory of the process that made the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: usize,
    len_bytes: usize,
}

impl AddressRange {
    /// The length of the value as bytes.
    pub const BYTES: usize = 2 * size_of::<usize>();

    /// The range of `bytes`.
    #[inline(always)]
    pub fn from_slice(bytes: &[u8]) -> Self {
        // Exposed, because the kernel reads the bytes by this number.
        Self { address: bytes.as_ptr().expose_provenance(), len_bytes: bytes.len() }
    }

    /// How many bytes lie there.
    #[inline(always)]
    pub fn len_bytes(self) -> usize {
        self.len_bytes
    }

    /// The value as bytes for a message.
    #[inline(always)]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (address, len) = bytes.split_at_mut(size_of::<usize>());
        address.copy_from_slice(&self.address.to_ne_bytes());
        len.copy_from_slice(&self.len_bytes.to_ne_bytes());
        bytes
    }

    /// The value that [`Self::to_bytes`] made bytes of.
    #[inline(always)]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| {
            let mut word = [0; size_of::<usize>()];
            word.copy_from_slice(&bytes[at..at + size_of::<usize>()]);
            usize::from_ne_bytes(word)
        };
        Self { address: word(0), len_bytes: word(size_of::<usize>()) }
    }
}

/// Copies the bytes at `from` in the process of `thread` into `into` (process_vm_readv(2)).
///
/// `Errno::MSGSIZE` when `into` is shorter, `Errno::FAULT` when not all of `from` is memory of that process.
#[inline(always)]
pub fn read(thread: ThreadId, from: AddressRange, into: &mut [u8]) -> Result<usize, Errno> {
    let into = into.get_mut(..from.len_bytes).ok_or(Errno::MSGSIZE)?;
    copy_from(thread.pid, from.address, into)?;
    Ok(from.len_bytes)
}

/// Fills `into` from `address` in the memory of the process `pid`.
#[inline(always)]
fn copy_from(pid: libc::pid_t, address: usize, into: &mut [u8]) -> Result<(), Errno> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = elsewhere(address, into.len());
    let count = retry_on_intr(|| {
        // SAFETY: `local` is valid for writes through the call. Only the kernel follows `remote`, and it checks it.
        checked(unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) })
    })?;
    if count as usize == into.len() { Ok(()) } else { Err(Errno::FAULT) }
}

/// Copies what lies at `address` in the memory of `process` into `into` (process_vm_readv(2)); `Errno::FAULT` where not all of it is memory.
pub fn read_at(process: Pid, address: u64, into: &mut [u8]) -> Result<(), Errno> {
    if into.is_empty() {
        return Ok(());
    }
    copy_from(process.as_raw_nonzero().get(), address as usize, into)
}

/// Copies `bytes` to `address` in the memory of `process` (process_vm_writev(2)); `Errno::FAULT` where it has no such memory, or may not
/// write it.
pub fn write_at(process: Pid, address: u64, bytes: &[u8]) -> Result<(), Errno> {
    if bytes.is_empty() {
        return Ok(());
    }
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = elsewhere(address as usize, bytes.len());
    let pid = process.as_raw_nonzero().get();
    let count = retry_on_intr(|| {
        // SAFETY: the kernel reads `local`, which is valid through the call. Only the kernel follows `remote`, and it checks it.
        checked(unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) })
    })?;
    if count as usize == bytes.len() { Ok(()) } else { Err(Errno::FAULT) }
}

/// Memory of another process, which means nothing in this one.
#[inline(always)]
fn elsewhere(address: usize, length: usize) -> libc::iovec {
    libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: length }
}

/// Lets the process of `reader` read the memory of this one even if Yama allows that to its ancestors only (prctl(2),
/// `PR_SET_PTRACER`). Without Yama nothing needs to be done.
pub fn allow(reader: ThreadId) -> Result<(), Failure> {
    let reader = Pid::from_raw(reader.pid).ok_or(Errno::INVAL);
    match reader.and_then(|pid| set_ptracer(PTracer::ProcessID(pid))) {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        refused => refused.or_fail("prctl(PR_SET_PTRACER)", "this process"),
    }
}

/// Lets a child read the memory of this process, to see whether that is possible.
pub fn probe() -> Result<(), Failure> {
    const OBJECT: &str = "the memory of another process";
    let this = ThreadId::current();
    let bytes = [1, 2, 3];
    let (allowed, to_allow) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", OBJECT)?;
    let work = || {
        let mut read_bytes = [0; 3];
        // SAFETY: the child closes its own copy and ends without using it. With the copy open, it would wait for
        // itself for ever if this process were killed now.
        unsafe { rustix::io::close(to_allow.as_raw_fd()) };
        read_fd(&allowed, &mut read_bytes[..1])?;
        read(this, AddressRange::from_slice(&bytes), &mut read_bytes)?;
        if read_bytes == bytes { Ok(()) } else { Err(Errno::FAULT) }
    };
    // SAFETY: the child makes system calls only.
    let child = unsafe { Child::start(work) }.or_fail("fork", OBJECT)?;
    let outcome = allow(child.thread()).and_then(|()| write(&to_allow, &[1]).or_fail("write", OBJECT));
    drop(to_allow);
    let read = child.outcome().or_fail("process_vm_readv", OBJECT);
    outcome.and(read).map_err(|failure| explained(Failure {
        next: "set kernel.yama.ptrace_scope to 0 or 1, take a kernel with CONFIG_CROSS_MEMORY_ATTACH, or allow the \
               call in the container (CAP_SYS_PTRACE)"
            .to_owned(),
        ..failure
    }))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_by_their_address() {
        let bytes: Vec<u8> = (0..10_000).map(|at| (at * 7) as u8).collect();
        let range = AddressRange::from_bytes(AddressRange::from_slice(&bytes).to_bytes());
        assert_eq!(range, AddressRange::from_slice(&bytes));
        let mut into = vec![0; 12_000];
        assert_eq!(read(ThreadId::current(), range, &mut into), Ok(10_000));
        assert_eq!(into[..10_000], bytes);
        assert!(into[10_000..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn ranges_that_do_not_fit_or_are_not_mapped_are_refused() {
        let mut into = [0; 8];
        assert_eq!(
            read(ThreadId::current(), AddressRange::from_slice(&[1; 9]), &mut into),
            Err(Errno::MSGSIZE)
        );
        let nowhere = AddressRange { address: 8, len_bytes: 8 };
        assert_eq!(read(ThreadId::current(), nowhere, &mut into), Err(Errno::FAULT));
    }

    #[test]
    fn a_child_reads_what_its_parent_allows() {
        let forbidden = crate::sysctl::number("kernel/yama/ptrace_scope").is_some_and(|scope| scope > 1);
        assert_eq!(probe().is_err(), forbidden && !rustix::process::geteuid().is_root());
    }
}
