//! POSIX message queues (mq_overview(7)). They outlive their makers: see [`crate::name`].

use crate::fork::Child;
use crate::libc_call::checked;
use crate::seccomp::explained;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::retry_on_intr;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, RandomState};

/// A message queue, which on Linux is a descriptor.
#[derive(Debug)]
pub struct PosixMessageQueue {
    fd: OwnedFd,
    /// The priority of each message that this endpoint sends.
    priority: u32,
    /// Messages come here if the caller has too little room: the kernel refuses to receive into less than the queue's
    /// largest message.
    buffer: Vec<u8>,
}

impl AsFd for PosixMessageQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PosixMessageQueue {
    /// Makes the queue `name`, which holds `depth` messages of at most `most_bytes` (mq_open(3)).
    pub fn create(name: &str, depth: u32, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(name, most_bytes, |path| create(path, depth, most_bytes))
    }

    /// Opens the queue that another made.
    pub fn open(name: &str, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(name, most_bytes, |path| {
            // SAFETY: the name ends with a zero byte; without O_CREAT the call takes nothing more.
            checked(unsafe { libc::mq_open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) })
        })
    }

    fn get(
        name: &str,
        most_bytes: usize,
        open: impl FnOnce(&CStr) -> Result<libc::mqd_t, Errno>,
    ) -> Result<Self, Failure> {
        let path = CString::new(name).map_err(|_| Errno::INVAL);
        let fd = path.and_then(|path| open(&path)).or_fail("mq_open", name).map_err(with_limits)?;
        // SAFETY: the kernel has just made the descriptor, and nobody else has it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, priority: 0, buffer: vec![0; most_bytes] })
    }

    /// The same queue, which sends messages with `priority` (mq_overview(7)).
    pub fn with_priority(self, priority: u32) -> Self {
        Self { priority, ..self }
    }

    /// Sends one message; sleeps while the queue is full (mq_send(3)).
    #[inline(always)]
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let fd = self.fd.as_raw_fd();
        retry_on_intr(|| {
            // SAFETY: the bytes are valid through the call.
            checked(unsafe { libc::mq_send(fd, bytes.as_ptr().cast(), bytes.len(), self.priority) })
        })?;
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

fn create(path: &CStr, depth: u32, most_bytes: usize) -> Result<libc::mqd_t, Errno> {
    // SAFETY: a zeroed mq_attr is a valid one.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    attributes.mq_maxmsg = libc::c_long::from(depth);
    attributes.mq_msgsize = most_bytes as libc::c_long;
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_CREAT | libc::O_EXCL;
    // SAFETY: the name ends with a zero byte; the mode and the attributes are what O_CREAT reads.
    checked(unsafe { libc::mq_open(path.as_ptr(), flags, 0o600 as libc::mode_t, &raw const attributes) })
}

fn with_limits(failure: Failure) -> Failure {
    Failure {
        next: "see /proc/sys/fs/mqueue and 'ulimit -q' for the limits of this host".to_owned(),
        ..failure
    }
}

/// Raises the limit of the bytes that all queues of this process's user have together, as far as this process may.
/// Returns the limit; `None` means that there is none (setrlimit(2), `RLIMIT_MSGQUEUE`).
///
/// How much of it the user's other queues already take cannot be found out. It may be all of a lower limit.
pub fn raise_quota() -> Result<Option<u64>, Errno> {
    let set =
        |limit| setrlimit(Resource::Msgqueue, Rlimit { current: limit, maximum: limit }).map(|()| limit);
    match set(None) {
        // To go above the hard limit takes CAP_SYS_RESOURCE.
        Err(Errno::PERM) => set(getrlimit(Resource::Msgqueue).maximum),
        other => other,
    }
}

/// How many bytes two queues count against that limit: for each message its bytes, a `struct msg_msg` and, at most, a
/// `struct posix_msg_tree_node` (getrlimit(2)). Each of the two has 48 bytes where a pointer has 8.
pub fn two_queues_charge_bytes(depth: u32, most_bytes: usize) -> u64 {
    u64::from(depth).saturating_mul(2 * (most_bytes as u64 + 96))
}

/// Whether this process may make two queues of `depth` messages of at most `most_bytes`.
///
/// This tries it, but makes nothing that a killed process could leave behind. A child tries, and has set its own
/// limit to zero. The kernel first checks whether the queue as such is too large, and only then the limit.
pub fn allows_two_queues(depth: u32, most_bytes: usize) -> Result<bool, Failure> {
    // A name that nobody can have taken beforehand: with one that is known, any user could end this for all others.
    let random = RandomState::new().hash_one(std::process::id());
    let name = format!("/ipcmark-probe-{random:016x}");
    let path = CString::new(name.as_str()).map_err(|_| Errno::INVAL).or_fail("mq_open", &name)?;
    let ask = || {
        if raise_quota()?.is_some_and(|quota| quota < two_queues_charge_bytes(depth, most_bytes)) {
            return Err(Errno::INVAL);
        }
        setrlimit(Resource::Msgqueue, Rlimit { current: Some(0), maximum: Some(0) })?;
        create(&path, depth, most_bytes).map(drop)
    };
    // SAFETY: the child makes system calls only.
    let answer = unsafe { Child::start(ask) }.and_then(Child::outcome);
    match answer {
        Err(Errno::MFILE) => Ok(true),
        Err(Errno::INVAL | Errno::OVERFLOW) => Ok(false),
        Err(errno) => Err(explained(with_limits(Failure::from_errno("mq_open", "a queue", errno)))),
        Ok(()) => unlink(&name).map(|()| true).or_fail("mq_unlink", &name),
    }
}

/// Whether messages can have `priority` here: it must be below `MQ_PRIO_MAX`. The kernel checks that before it looks
/// up the queue (mq_send(3)).
pub fn has_priority(priority: u32) -> bool {
    // SAFETY: the message is empty, and there is no such queue.
    let sent = checked(unsafe { libc::mq_send(-1, std::ptr::dangling(), 0, priority) });
    sent == Err(Errno::BADF)
}

/// Removes the name of a queue. The queue itself lives until everybody has closed it (mq_unlink(3)).
pub(crate) fn unlink(name: &str) -> Result<(), Errno> {
    let path = CString::new(name).map_err(|_| Errno::INVAL)?;
    // SAFETY: the name ends with a zero byte.
    checked(unsafe { libc::mq_unlink(path.as_ptr()) }).map(drop)
}

/// Removes the name of a queue that belongs to this user; `Errno::PERM` if it is another's.
///
/// Opening a queue neither waits nor follows anything. Its directory is sticky, so that nobody else can put another queue
/// in its place meanwhile.
pub(crate) fn unlink_own(name: &str) -> Result<(), Errno> {
    let path = CString::new(name).map_err(|_| Errno::INVAL)?;
    // SAFETY: the name ends with a zero byte; without O_CREAT the call takes nothing more.
    let queue = checked(unsafe {
        libc::mq_open(path.as_ptr(), libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC)
    })?;
    // SAFETY: the kernel has just made the descriptor, and nobody else has it.
    let queue = unsafe { OwnedFd::from_raw_fd(queue) };
    let is_ours = rustix::fs::fstat(&queue)?.st_uid == rustix::process::geteuid().as_raw();
    if is_ours { unlink(name) } else { Err(Errno::PERM) }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_higher_priority_overtakes_and_an_equal_one_does_not() {
        let name = format!("/ipcmark-test-{}", std::process::id());
        let low = PosixMessageQueue::create(&name, 4, 8).unwrap();
        let mut high = PosixMessageQueue::open(&name, 8).unwrap().with_priority(7);
        unlink(&name).unwrap();
        for (queue, byte) in [(&low, 1), (&high, 2), (&low, 3), (&high, 4)] {
            queue.send(&[byte]).unwrap();
        }
        let mut received = [0; 4];
        received.iter_mut().for_each(|byte| assert_eq!(high.receive(std::slice::from_mut(byte)), Ok(1)));
        assert_eq!(received, [2, 4, 1, 3]);
    }

    #[test]
    fn priorities_end_where_the_kernel_says() {
        assert!(has_priority(0) && has_priority(32_767) && !has_priority(32_768));
    }

    #[test]
    fn limits_are_found_without_making_a_queue() {
        assert_eq!(allows_two_queues(1, 1), Ok(true));
        assert_eq!(allows_two_queues(1, 1 << 40), Ok(false));
        assert_eq!(allows_two_queues(u32::MAX, 1), Ok(false));
    }
}
