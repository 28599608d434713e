//! System V message queues: made, opened, used and removed.

use super::key::{CREATE, SysvKey, check_ours, gone};
use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use rustix::io::retry_on_intr;

/// A message queue.
#[derive(Debug)]
pub struct SysvMessageQueue {
    id: libc::c_int,
    /// A message as the kernel wants it: its type in the first word, then its text.
    buffer: Vec<u64>,
}

impl SysvMessageQueue {
    /// Makes the queue `key` for messages of at most `most_bytes` (msgget(2)).
    pub fn create(key: SysvKey, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(key, CREATE, most_bytes)
    }

    /// Opens the queue that a peer has made.
    pub fn open(key: SysvKey, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(key, 0, most_bytes)
    }

    fn get(key: SysvKey, flags: libc::c_int, most_bytes: usize) -> Result<Self, Failure> {
        // SAFETY: the call takes numbers only.
        let id = checked(unsafe { libc::msgget(key.0, flags) }).or_fail("msgget", format!("key {key}"))?;
        Ok(Self { id, buffer: vec![1; 1 + most_bytes.div_ceil(8)] })
    }

    /// Sets how many bytes of messages the queue holds to `asked_bytes`, if that is given, and returns how many it
    /// holds now. At first it holds kernel.msgmnb. To set more takes CAP_SYS_RESOURCE; without it nothing changes
    /// (msgctl(2), `IPC_SET`).
    pub fn set_capacity(&self, asked_bytes: Option<u64>) -> Result<u64, Failure> {
        let control = |command, status: &mut libc::msqid_ds| {
            // SAFETY: the status is valid for reads and writes through the call.
            checked(unsafe { libc::msgctl(self.id, command, std::ptr::from_mut(status)) })
        };
        // SAFETY: a zeroed msqid_ds is valid.
        let mut status: libc::msqid_ds = unsafe { std::mem::zeroed() };
        control(libc::IPC_STAT, &mut status).or_fail("msgctl(IPC_STAT)", "a queue")?;
        let had_bytes = status.msg_qbytes;
        let Some(asked_bytes) = asked_bytes else { return Ok(had_bytes) };
        status.msg_qbytes = asked_bytes;
        match control(libc::IPC_SET, &mut status) {
            Err(Errno::PERM) => Ok(had_bytes),
            other => other.or_fail("msgctl(IPC_SET)", "a queue").map(|_| asked_bytes),
        }
    }

    fn text_bytes(&self) -> usize {
        8 * (self.buffer.len() - 1)
    }

    /// Sends one message. Sleeps while the queue is full (msgsnd(2)).
    ///
    /// `Errno::MSGSIZE` when the message is above the limits of the kernel or of this queue.
    #[inline(always)]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.len() > self.text_bytes() {
            return Err(Errno::MSGSIZE);
        }
        // SAFETY: the text begins after the first word and has room for `bytes`, which are other memory.
        unsafe {
            let text = self.buffer.as_mut_ptr().add(1).cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), text, bytes.len());
        }
        let sent = retry_on_intr(|| {
            // SAFETY: the buffer holds the type and `bytes.len()` bytes of text.
            checked(unsafe { libc::msgsnd(self.id, self.buffer.as_ptr().cast(), bytes.len(), 0) })
        });
        match sent {
            Ok(_) => Ok(bytes.len()),
            Err(Errno::INVAL) => Err(Errno::MSGSIZE),
            Err(errno) => Err(gone(errno)),
        }
    }

    /// Receives one message, all of which must fit into `into`. Sleeps until there is one (msgrcv(2)).
    #[inline(always)]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let most = into.len().min(self.text_bytes());
        let count = retry_on_intr(|| {
            // SAFETY: the buffer has room for the type and `most` bytes of text.
            checked(unsafe { libc::msgrcv(self.id, self.buffer.as_mut_ptr().cast(), most, 0, 0) })
        })
        .map_err(gone)? as usize;
        // SAFETY: the kernel wrote `count` bytes of text, at most `into.len()`, into other memory than `into`.
        unsafe {
            let text = self.buffer.as_ptr().add(1).cast::<u8>();
            std::ptr::copy_nonoverlapping(text, into.as_mut_ptr(), count);
        }
        Ok(count)
    }
}

/// Removes the queue `key`, if this user made it, and not before `since_s` (msgctl(2), `IPC_STAT`, `IPC_RMID`). An
/// identifier is never used twice, so that what is removed is what was checked.
pub(crate) fn remove_queue(key: SysvKey, since_s: i64) -> Result<(), Errno> {
    // SAFETY: a zeroed msqid_ds is valid, and is valid for writes through the call; IPC_RMID ignores the buffer.
    unsafe {
        let id = checked(libc::msgget(key.0, 0))?;
        let mut status: libc::msqid_ds = std::mem::zeroed();
        checked(libc::msgctl(id, libc::IPC_STAT, &raw mut status))?;
        check_ours(&status.msg_perm, status.msg_ctime, since_s)?;
        checked(libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut())).map(drop)
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_removal_of_a_queue_is_reported_as_a_closed_peer() {
        let key = SysvKey::hashed((std::process::id(), "a queue"));
        let mut client = SysvMessageQueue::create(key, 8).unwrap();
        let mut server = SysvMessageQueue::open(key, 8).unwrap();
        assert_eq!(client.send(b"12345678"), Ok(8));
        let mut into = [0; 8];
        assert_eq!((server.receive(&mut into), &into), (Ok(8), b"12345678"));
        assert_eq!(client.send(&[0; 9]), Err(Errno::MSGSIZE));
        remove_queue(key, 0).unwrap();
        assert_eq!(server.receive(&mut into), Err(Errno::PIPE));
    }

    #[test]
    fn a_queue_has_the_capacity_that_it_reports() {
        let key = SysvKey::hashed((std::process::id(), "a small queue"));
        let mut queue = SysvMessageQueue::create(key, 8).unwrap();
        assert_eq!(Some(queue.set_capacity(None).unwrap()), crate::sysctl::number("kernel/msgmnb"));
        assert_eq!(queue.set_capacity(Some(16)).unwrap(), 16);
        assert_eq!(queue.set_capacity(None).unwrap(), 16);
        // With or without the capability.
        let got = queue.set_capacity(Some(1 << 30)).unwrap();
        assert_eq!(queue.set_capacity(None).unwrap(), got);
        assert_eq!(queue.set_capacity(Some(16)).unwrap(), 16);
        queue.send(&[1; 8]).unwrap();
        queue.send(&[2; 8]).unwrap();
        // SAFETY: the buffer holds the type and 8 bytes of text.
        let full =
            checked(unsafe { libc::msgsnd(queue.id, queue.buffer.as_ptr().cast(), 8, libc::IPC_NOWAIT) });
        remove_queue(key, 0).unwrap();
        assert_eq!(full, Err(Errno::AGAIN));
    }
}
