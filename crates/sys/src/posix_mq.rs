//! POSIX message queues (mq_overview(7)). They outlive their makers: see [`crate::name`].

use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::io::retry_on_intr;
use std::ffi::CString;

/// A message queue, which on Linux is a descriptor.
#[derive(Debug)]
pub struct MessageQueue {
    fd: OwnedFd,
    /// The kernel refuses to receive into less than the queue's largest message.
    buffer: Vec<u8>,
}

impl MessageQueue {
    /// Makes the queue `name`, which holds `depth` messages of at most `most_bytes` (mq_open(3)).
    pub fn create(name: &str, depth: u32, most_bytes: usize) -> Result<Self, Failure> {
        // SAFETY: a zeroed mq_attr is a valid one.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = libc::c_long::from(depth);
        attributes.mq_msgsize = most_bytes as libc::c_long;
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_CREAT | libc::O_EXCL;
        Self::get(name, flags, Some(&attributes), most_bytes)
    }

    /// Opens the queue that another made.
    pub fn open(name: &str, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(name, libc::O_RDWR | libc::O_CLOEXEC, None, most_bytes)
    }

    fn get(
        name: &str,
        flags: libc::c_int,
        attributes: Option<&libc::mq_attr>,
        most_bytes: usize,
    ) -> Result<Self, Failure> {
        let path = CString::new(name).map_err(|_| Failure::of("mq_open", name, Errno::INVAL))?;
        let attributes = attributes.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the name ends with a zero byte; the mode and the attributes are what O_CREAT reads.
        let fd = checked(unsafe { libc::mq_open(path.as_ptr(), flags, 0o600 as libc::mode_t, attributes) })
            .or_fail("mq_open", name)
            .map_err(|failure| Failure {
                next: "see /proc/sys/fs/mqueue and 'ulimit -q' for the limits of this host".to_owned(),
                ..failure
            })?;
        // SAFETY: the kernel made the descriptor just now, and nobody else has it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, buffer: vec![0; most_bytes] })
    }

    /// Sends one message of priority 0; sleeps while the queue is full (mq_send(3)).
    #[inline(always)]
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let fd = self.fd.as_raw_fd();
        // SAFETY: the bytes are valid through the call.
        retry_on_intr(|| checked(unsafe { libc::mq_send(fd, bytes.as_ptr().cast(), bytes.len(), 0) }))?;
        Ok(bytes.len())
    }

    /// Receives one message; sleeps until there is one (mq_receive(3)).
    #[inline(always)]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let fd = self.fd.as_raw_fd();
        let fits = into.len() >= self.buffer.len();
        let to = if fits { &mut *into } else { &mut self.buffer[..] };
        let count = retry_on_intr(|| {
            // SAFETY: `to` is valid for writes of its length.
            checked(unsafe { libc::mq_receive(fd, to.as_mut_ptr().cast(), to.len(), std::ptr::null_mut()) })
        })? as usize;
        if !fits {
            let into = into.get_mut(..count).ok_or(Errno::MSGSIZE)?;
            into.copy_from_slice(&self.buffer[..count]);
        }
        Ok(count)
    }
}

/// Removes the name of a queue, which lives on until it is closed everywhere (mq_unlink(3)).
pub(crate) fn unlink(name: &str) -> Result<(), Errno> {
    let path = CString::new(name).map_err(|_| Errno::INVAL)?;
    // SAFETY: the name ends with a zero byte.
    checked(unsafe { libc::mq_unlink(path.as_ptr()) }).map(drop)
}
