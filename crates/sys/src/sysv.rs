//! System V message queues, semaphores and shared memory (sysvipc(7)). They outlive their makers: see [`crate::name`].

use crate::libc_call::checked;
use crate::shared_memory::{Origin, SharedMemory};
use crate::{Errno, Failure, OrFail};
use rustix::io::retry_on_intr;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr::NonNull;
use std::str::FromStr;

/// The key of an object. Never `IPC_PRIVATE`, so that whoever knows it finds the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(libc::key_t);

impl Key {
    /// The key that belongs to `what`.
    pub fn of(what: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(((hasher.finish() & 0x7fff_ffff) as libc::key_t).max(1))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Key {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// What a fresh object is asked for: to be new, and for its owner alone.
const CREATE: libc::c_int = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;

/// A message queue.
#[derive(Debug)]
pub struct MessageQueue {
    id: libc::c_int,
    /// A message as the kernel wants it: its type in the first word, then its text.
    buffer: Vec<u64>,
}

impl MessageQueue {
    /// Makes the queue `key` for messages of at most `most_bytes` (msgget(2)).
    pub fn create(key: Key, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(key, CREATE, most_bytes)
    }

    /// Opens the queue that another made.
    pub fn open(key: Key, most_bytes: usize) -> Result<Self, Failure> {
        Self::get(key, 0, most_bytes)
    }

    fn get(key: Key, flags: libc::c_int, most_bytes: usize) -> Result<Self, Failure> {
        // SAFETY: the call takes numbers only.
        let id = checked(unsafe { libc::msgget(key.0, flags) }).or_fail("msgget", format!("key {key}"))?;
        Ok(Self { id, buffer: vec![1; 1 + most_bytes.div_ceil(8)] })
    }

    fn text_bytes(&self) -> usize {
        8 * (self.buffer.len() - 1)
    }

    /// Sends one message; sleeps while the queue is full (msgsnd(2)).
    ///
    /// One above the limits of the kernel or of this queue is refused with `Errno::MSGSIZE`.
    #[inline(always)]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.len() > self.text_bytes() {
            return Err(Errno::MSGSIZE);
        }
        // SAFETY: the text begins after the first word and has room for `bytes`, which is other memory.
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

    /// Receives one message, of which `into` must hold all; sleeps until there is one (msgrcv(2)).
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

/// An object that is removed while one sleeps in it, or before, is a peer that closed.
#[cold]
fn gone(errno: Errno) -> Errno {
    if matches!(errno, Errno::IDRM | Errno::INVAL) { Errno::PIPE } else { errno }
}

/// A set of semaphores.
#[derive(Debug)]
pub struct Semaphores {
    id: libc::c_int,
    flags: libc::c_short,
}

impl Semaphores {
    /// Makes the set `key` of `count` semaphores, all zero (semget(2)). With `undo` the kernel notes each
    /// operation, to undo it when the process ends (`SEM_UNDO`, semop(2)).
    pub fn create(key: Key, count: u16, undo: bool) -> Result<Self, Failure> {
        Self::get(key, count, CREATE, undo)
    }

    /// Opens the set that another made.
    pub fn open(key: Key, count: u16, undo: bool) -> Result<Self, Failure> {
        Self::get(key, count, 0, undo)
    }

    fn get(key: Key, count: u16, flags: libc::c_int, undo: bool) -> Result<Self, Failure> {
        // SAFETY: the call takes numbers only.
        let id = checked(unsafe { libc::semget(key.0, count.into(), flags) })
            .or_fail("semget", format!("key {key}"))?;
        Ok(Self { id, flags: if undo { libc::SEM_UNDO as libc::c_short } else { 0 } })
    }

    /// Adds `change` to semaphore `at`; sleeps while that would make it negative (semop(2)).
    #[inline(always)]
    pub fn add(&self, at: u16, change: i16) -> Result<(), Errno> {
        let mut operation = libc::sembuf { sem_num: at, sem_op: change, sem_flg: self.flags };
        // SAFETY: one operation is valid through the call.
        retry_on_intr(|| checked(unsafe { libc::semop(self.id, &raw mut operation, 1) }))
            .map_err(gone)
            .map(drop)
    }
}

/// Makes the segment `key` of `len_bytes` and attaches it (shmget(2), shmat(2)).
pub fn create_memory(key: Key, len_bytes: usize) -> Result<SharedMemory, Failure> {
    attach(key, len_bytes, CREATE)
}

/// Attaches the segment that another made, which has at least `len_bytes`: the kernel refuses a smaller one.
pub fn open_memory(key: Key, len_bytes: usize) -> Result<SharedMemory, Failure> {
    attach(key, len_bytes, 0)
}

fn attach(key: Key, len_bytes: usize, flags: libc::c_int) -> Result<SharedMemory, Failure> {
    // SAFETY: the call takes numbers only.
    let id = checked(unsafe { libc::shmget(key.0, len_bytes, flags) })
        .or_fail("shmget", format!("{len_bytes} bytes, key {key}"))
        .map_err(|failure| Failure {
            next: "see kernel.shmmax and kernel.shmall for the limits of this host".to_owned(),
            ..failure
        })?;
    // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
    let base = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    // It answers -1 as a pointer.
    checked(base as isize).or_fail("shmat", format!("key {key}"))?;
    let base = NonNull::new(base.cast::<u8>()).ok_or_else(|| Failure::of("shmat", key, Errno::FAULT))?;
    // SAFETY: the kernel attached so many bytes there, aligned to a page, for this value alone to detach.
    let memory = unsafe { SharedMemory::new(base, len_bytes, Origin::Attached) };
    memory.populate();
    Ok(memory)
}

/// Removes the segment `key`, which lives on until it is detached everywhere (shmctl(2), `IPC_RMID`).
pub(crate) fn remove_memory(key: Key) -> Result<(), Errno> {
    // SAFETY: the calls take numbers; IPC_RMID ignores the buffer.
    unsafe {
        let id = checked(libc::shmget(key.0, 0, 0))?;
        checked(libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut())).map(drop)
    }
}

/// Removes the queue `key`, wherever it came from (msgctl(2), `IPC_RMID`).
pub(crate) fn remove_queue(key: Key) -> Result<(), Errno> {
    // SAFETY: the calls take numbers; IPC_RMID ignores the buffer.
    unsafe {
        let id = checked(libc::msgget(key.0, 0))?;
        checked(libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut())).map(drop)
    }
}

/// Removes the set `key` (semctl(2), `IPC_RMID`).
pub(crate) fn remove_semaphores(key: Key) -> Result<(), Errno> {
    // SAFETY: the calls take numbers; IPC_RMID needs no argument.
    unsafe {
        let id = checked(libc::semget(key.0, 0, 0))?;
        checked(libc::semctl(id, 0, libc::IPC_RMID)).map(drop)
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use crate::name::Name;
    use std::sync::atomic::Ordering;

    #[test]
    fn keys_differ_and_survive_their_text() {
        let keys: std::collections::BTreeSet<i32> = (0..1000).map(|number| Key::of(number).0).collect();
        assert!(keys.len() > 998 && keys.iter().all(|key| *key > 0), "{} of 1000", keys.len());
        assert_eq!(Key::of(1).to_string().parse(), Ok(Key::of(1)));
    }

    #[test]
    fn a_queue_that_is_removed_is_a_peer_that_closed() {
        let key = Key::of((std::process::id(), "a queue"));
        let mut near = MessageQueue::create(key, 8).unwrap();
        let mut far = MessageQueue::open(key, 8).unwrap();
        assert_eq!(near.send(b"12345678"), Ok(8));
        let mut into = [0; 8];
        assert_eq!((far.receive(&mut into), &into), (Ok(8), b"12345678"));
        assert_eq!(near.send(&[0; 9]), Err(Errno::MSGSIZE));
        Name::SysvMsg(key).remove().unwrap();
        assert_eq!(far.receive(&mut into), Err(Errno::PIPE));
    }

    #[test]
    fn a_segment_lives_without_its_name_until_nobody_has_it() {
        let key = Key::of((std::process::id(), "a segment"));
        let near = create_memory(key, 10_000).unwrap();
        assert!(create_memory(key, 10_000).is_err(), "a segment was made twice");
        assert!(open_memory(key, 100_000).is_err(), "a smaller segment was attached");
        let far = open_memory(key, 10_000).unwrap();
        Name::SysvShm(key).remove().unwrap();
        assert!(open_memory(key, 10_000).is_err(), "the name is still there");
        near.u64_at(9_992).store(7, Ordering::Relaxed);
        assert_eq!(far.u64_at(9_992).load(Ordering::Relaxed), 7);
        let attached = || std::fs::read_to_string("/proc/self/maps").unwrap().matches("/SYSV").count();
        let before = attached();
        drop((near, far));
        assert_eq!(attached(), before - 2);
    }

    #[test]
    fn semaphores_count() {
        let key = Key::of((std::process::id(), "a set"));
        let near = Semaphores::create(key, 2, true).unwrap();
        let far = Semaphores::open(key, 2, false).unwrap();
        near.add(1, 2).unwrap();
        far.add(1, -1).unwrap();
        far.add(1, -1).unwrap();
        Name::SysvSem(key).remove().unwrap();
        assert_eq!(far.add(1, -1), Err(Errno::PIPE));
    }
}
